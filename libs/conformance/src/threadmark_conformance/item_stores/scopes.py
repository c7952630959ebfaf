"""Which namespaces a search looks at: the one that you give, and those below it."""

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld


async def _over(world: StoreWorld, *spaces: tuple[str, ...]) -> Asked:
    store = await world.store()
    for namespace in spaces:
        await store.put(namespace, "k", {"at": list(namespace)})
    return store


async def _found(store: Asked, *prefix: str) -> set[tuple[str, ...]]:
    items = await store.search(prefix, limit=100)
    assert all(tuple(item.value["at"]) == item.namespace for item in items)
    found = [item.namespace for item in items]
    assert len(found) == len(set(found))
    return set(found)


async def a_search_finds_its_namespace_and_those_below(world: StoreWorld) -> None:
    deep = ("foo", "child", "deep")
    store = await _over(world, ("foo",), ("foo", "child"), deep, ("foobar",), ("foobar", "baz"), ("foo2",))
    assert await _found(store, "foo") == {("foo",), ("foo", "child"), deep}
    assert await _found(store, "foo", "child") == {("foo", "child"), deep}
    assert await _found(store, "foobar") == {("foobar",), ("foobar", "baz")}
    assert await _found(store, "foo2") == {("foo2",)}
    for prefix in (("fo",), ("foo", "chil"), ("child",), ("foo", "child", "deep", "er")):
        assert await _found(store, *prefix) == set()


async def an_empty_prefix_finds_everything(world: StoreWorld) -> None:
    spaces = ("a",), ("b", "c"), ("d", "e", "f")
    assert await _found(await _over(world, *spaces)) == set(spaces)


async def an_empty_store_has_nothing(world: StoreWorld) -> None:
    store = await world.store()
    assert await store.search() == []
    assert await store.search(("a",), filter={"n": 1}) == []


async def signs_in_labels_stand_for_themselves(world: StoreWorld) -> None:
    pairs = ("user_1", "userX1"), ("a%b", "axxb"), ("star*", "starX"), ("q?m", "qXm"), ("[ab]", "a"), ("a+", "aa")
    more = ("back\\", "back"), ("'", "''"), ("a/", "a"), ("a-", "a!"), ("a\n", "a"), ("^a$", "a")
    store = await _over(world, *{(label,) for pair in (*pairs, *more) for label in pair}, ("user_1", "child"))
    for label, _ in (*pairs, *more):
        assert await _found(store, label) == {(label,), *([("user_1", "child")] if label == "user_1" else [])}


async def labels_differ_in_case_and_in_accents(world: StoreWorld) -> None:
    labels = "foo", "Foo", "FOO", "é", "e\u0301", "E\u0301", "日本", "\U0001f600", "\uffff"
    store = await _over(world, *((label,) for label in labels), *((label, "below") for label in labels))
    for label in labels:
        assert await _found(store, label) == {(label,), (label, "below")}


async def a_namespace_may_have_many_and_long_labels(world: StoreWorld) -> None:
    many, long = tuple(f"l{number}" for number in range(40)), ("x" * 200, "y" * 200)
    store = await _over(world, many, long)
    assert await _found(store, *many[:39]) == {many}
    assert await _found(store, long[0]) == {long}
