"""The list of namespaces: conditions with wildcards, depths, pages."""

from typing import Any

from langgraph.store.base import ListNamespacesOp, MatchCondition

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld

LETTERS = (
    *(("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")),
    *(("users", "123"), ("users", "456", "settings"), ("admin", "users", "789")),
)
DOCUMENTS = (
    *(("test", "documents", "public", "x"), ("test", "documents", "private", "x"), ("test", "images", "public", "x")),
    *(("test", "images", "private", "x"), ("prod", "documents", "public", "x"), ("prod", "documents", "private", "x")),
    ("prod", "documents", "some", "nesting", "public", "x"),
)


async def _over(world: StoreWorld, *spaces: tuple[str, ...]) -> Asked:
    store = await world.store()
    for number, namespace in enumerate(spaces):
        await store.put(namespace, f"k{number}", {"n": number})
    return store


async def _listed(store: Asked, **options: Any) -> list[tuple[str, ...]]:
    """Return the namespaces in order. None may come twice."""
    found = await store.namespaces(**options)
    assert len(set(found)) == len(found)
    return sorted(found)


async def every_namespace_is_listed_once(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS, *LETTERS)
    assert await _listed(store) == sorted(LETTERS)


async def an_empty_store_has_no_namespaces(world: StoreWorld) -> None:
    store = await world.store()
    assert await store.namespaces() == []
    assert await store.get(("a",), "k") is None
    assert await store.search(("b",)) == []
    await store.delete(("c",), "k")
    assert await store.namespaces() == []


async def a_namespace_goes_with_its_last_item(world: StoreWorld) -> None:
    store = await _over(world, ("a",), ("a", "b"), ("a", "b"))
    await store.delete(("a", "b"), "k1")
    assert await _listed(store) == [("a",), ("a", "b")]
    await store.delete(("a", "b"), "k2")
    assert await _listed(store) == [("a",)]
    await store.delete(("a",), "k0")
    assert await _listed(store) == []


async def a_prefix_selects(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS)
    assert await _listed(store, prefix=("a", "b")) == sorted(LETTERS[:4])
    assert await _listed(store, prefix=("users", "123")) == [("users", "123")]
    assert await _listed(store, prefix=("a", "b", "d", "e")) == [("a", "b", "d", "e")]
    for prefix in (("none",), ("b", "c"), ("user",), ("a", "b", "d", "e", "x")):
        assert await _listed(store, prefix=prefix) == []


async def a_suffix_selects(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS)
    assert await _listed(store, suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert await _listed(store, suffix=("b", "f")) == [("a", "b", "f")]
    assert await _listed(store, suffix=("ings",)) == []
    assert await _listed(store, suffix=("x", "a", "b", "f")) == []


async def a_prefix_and_a_suffix_select_together(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS, *DOCUMENTS)
    assert await _listed(store, prefix=("a",), suffix=("f",)) == [("a", "b", "f"), ("a", "c", "f")]
    assert await _listed(store, prefix=("a", "b"), suffix=("b", "c")) == [("a", "b", "c")]  # they may overlap
    found = await _listed(store, prefix=("test",), suffix=("public", "x"))
    assert found == [("test", "documents", "public", "x"), ("test", "images", "public", "x")]


async def a_wildcard_of_a_prefix_stands_for_one_label(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS, *DOCUMENTS, ("uid", "users", "alice"), ("uid", "a", "b", "alice"))
    assert await _listed(store, prefix=("a", "*", "f")) == [("a", "b", "f"), ("a", "c", "f")]
    assert await _listed(store, prefix=("uid", "*", "alice")) == [("uid", "users", "alice")]
    assert len(await _listed(store, prefix=("*", "documents"))) == 5
    assert await _listed(store, prefix=("users", "*")) == [("users", "123"), ("users", "456", "settings")]
    assert await _listed(store, prefix=("*", "*", "*", "*", "*")) == [DOCUMENTS[-1]]


async def a_wildcard_of_a_suffix_stands_for_one_label(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS, *DOCUMENTS)
    assert await _listed(store, suffix=("*", "f")) == [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]
    assert len(await _listed(store, suffix=("*", "public", "x"))) == 4
    assert await _listed(store, suffix=("some", "*", "public", "x")) == [DOCUMENTS[-1]]
    assert await _listed(store, prefix=("*", "users"), suffix=("*", "settings")) == []
    assert await _listed(store, prefix=("*", "456"), suffix=("*", "settings")) == [("users", "456", "settings")]


async def several_conditions_of_a_kind_must_all_hold(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS)

    async def listed(*conditions: MatchCondition) -> Any:
        (answer,) = await store.batch([ListNamespacesOp(conditions)])
        return sorted(answer)  # type: ignore[arg-type]  # namespaces

    both = MatchCondition("prefix", ("a",)), MatchCondition("prefix", ("*", "b"))
    assert await listed(*both) == sorted(LETTERS[:4])
    assert await listed(*both, MatchCondition("suffix", ("d", "*"))) == [("a", "b", "d", "e"), ("a", "b", "d", "i")]
    assert await listed(MatchCondition("prefix", ("a",)), MatchCondition("prefix", ("b",))) == []
    assert await listed() == sorted(LETTERS)


async def conditions_hold_for_whole_labels(world: StoreWorld) -> None:
    spaces = ("foo",), ("foo", "child"), ("foobar",), ("uid", "alice"), ("uid", "malice"), ("uid", "alice\n")
    store = await _over(world, *spaces)
    assert await _listed(store, prefix=("foo",)) == [("foo",), ("foo", "child")]
    assert await _listed(store, suffix=("alice",)) == [("uid", "alice")]
    assert await _listed(store, prefix=("uid", "alice")) == [("uid", "alice")]
    assert await _listed(store, prefix=("*", "alice")) == [("uid", "alice")]


async def signs_in_conditions_stand_for_themselves(world: StoreWorld) -> None:
    pairs = ("star*", "starX"), ("q?m", "qXm"), ("br[ac]k", "brak"), ("user_1", "userX1"), ("a%b", "axxb"), ("p+", "pp")
    store = await _over(world, *((label,) for pair in pairs for label in pair), *((label, "x") for label, _ in pairs))
    for label, _ in pairs:
        assert await _listed(store, prefix=(label,)) == [(label,), (label, "x")]
        assert await _listed(store, suffix=(label,)) == [(label,)]
        assert await _listed(store, suffix=(label, "*")) == [(label, "x")]


async def conditions_differ_in_case(world: StoreWorld) -> None:
    store = await _over(world, ("foo", "x"), ("Foo", "x"), ("FOO", "X"))
    assert await _listed(store, prefix=("Foo",)) == [("Foo", "x")]
    assert await _listed(store, suffix=("X",)) == [("FOO", "X")]


async def a_depth_cuts_namespaces(world: StoreWorld) -> None:
    store = await _over(world, *LETTERS)
    expected = {depth: sorted({namespace[:depth] for namespace in LETTERS}) for depth in (1, 2, 3, 4, 9)}
    assert {depth: await _listed(store, max_depth=depth) for depth in expected} == expected
    assert await _listed(store, prefix=("a", "b"), max_depth=3) == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]


async def conditions_hold_for_the_whole_of_what_a_depth_cuts(world: StoreWorld) -> None:
    store = await _over(world, *DOCUMENTS)
    assert await _listed(store, suffix=("public", "x"), max_depth=2) == [
        ("prod", "documents"),
        ("test", "documents"),
        ("test", "images"),
    ]
    assert await _listed(store, prefix=("test", "*", "public"), max_depth=1) == [("test",)]


async def namespaces_come_in_order_and_in_pages(world: StoreWorld) -> None:
    spaces = [("namespace", f"sub_{number:02}") for number in range(20)]
    store = await _over(world, *reversed(spaces))
    assert await store.namespaces() == spaces
    for offset in (0, 5, 15, 18, 20):
        found = await store.namespaces(prefix=("namespace",), limit=5, offset=offset)
        assert found == spaces[offset : offset + 5]


async def pages_count_namespaces_that_were_cut(world: StoreWorld) -> None:
    store = await _over(world, *((f"n{number // 4}", str(number)) for number in range(12)))
    assert await store.namespaces(max_depth=1, limit=2) == [("n0",), ("n1",)]
    assert await store.namespaces(max_depth=1, limit=2, offset=2) == [("n2",)]


async def the_default_limit_of_namespaces_is_a_hundred(world: StoreWorld) -> None:
    store = await _over(world, *((f"n{number:03}",) for number in range(105)))
    assert len(await store.namespaces()) == 100
    assert len(await store.namespaces(offset=100)) == 5
