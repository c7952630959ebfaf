"""Batches: several operations at once, whose results have their order."""

import asyncio
from collections.abc import Iterable
from typing import Any

from langgraph.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp

from threadmark_conformance.item_stores.worlds import Asked, StoreWorld

FOO, BAR = ("test", "foo"), ("test", "bar")


async def _two(world: StoreWorld) -> Asked:
    store = await world.store()
    await store.put(FOO, "one", {"data": "first"})
    await store.put(BAR, "two", {"data": "second"})
    return store


def _value(answer: Any) -> Any:
    assert isinstance(answer, Item)
    return answer.value


async def results_have_the_order_of_the_operations(world: StoreWorld) -> None:
    store = await _two(world)
    answers = await store.batch(
        [
            GetOp(FOO, "one"),
            PutOp(BAR, "two", {"data": "second"}),
            SearchOp(("test",), {"data": "first"}),
            ListNamespacesOp(),
            GetOp(("test",), "three"),
        ]
    )
    assert (len(answers), answers[1], answers[4]) == (5, None, None)
    assert _value(answers[0]) == {"data": "first"}
    assert [item.key for item in answers[2]] == ["one"]  # type: ignore[union-attr]  # items of a search
    assert isinstance(answers[3], list)
    assert (len(answers[3]), set(answers[3])) == (2, {BAR, FOO})


async def results_have_the_order_of_the_operations_in_any_order(world: StoreWorld) -> None:
    store = await _two(world)
    answers = await store.batch(
        [
            SearchOp(("test",), None, 5),
            GetOp(BAR, "two"),
            ListNamespacesOp(limit=5),
            PutOp(("test",), "three", {"data": "third"}),
            GetOp(FOO, "one"),
        ]
    )
    assert len(answers) == 5
    assert {item.key for item in answers[0]} >= {"one", "two"}  # type: ignore[union-attr]  # items of a search
    assert (_value(answers[1]), _value(answers[4])) == ({"data": "second"}, {"data": "first"})
    assert {BAR, FOO} <= set(answers[2])  # type: ignore[arg-type]  # namespaces
    assert answers[3] is None
    assert await store.value(("test",), "three") == {"data": "third"}


async def an_empty_batch_has_no_results(world: StoreWorld) -> None:
    store = await world.store()
    assert await store.batch([]) == []


async def a_batch_may_be_any_iterable(world: StoreWorld) -> None:
    store = await _two(world)
    given: list[Iterable[Op]] = [(GetOp(FOO, "one"),), iter([GetOp(FOO, "one")]), (GetOp(FOO, key) for key in ("one",))]
    for ops in given:
        (answer,) = await store.batch(ops)
        assert _value(answer) == {"data": "first"}


async def several_gets_have_several_answers(world: StoreWorld) -> None:
    store = await _two(world)
    asked = [GetOp(FOO, "one"), GetOp(BAR, "one"), GetOp(BAR, "two"), GetOp(FOO, "one"), GetOp(("none",), "one")]
    answers = await store.batch(asked)
    assert [answer and _value(answer) for answer in answers] == [
        {"data": "first"},
        None,
        {"data": "second"},
        {"data": "first"},
        None,
    ]


async def several_puts_are_all_stored(world: StoreWorld) -> None:
    store = await world.store()
    ops = [PutOp(FOO, "a", {"n": 1}), PutOp(FOO, "b", {"n": 2}), PutOp(BAR, "a", {"n": 3}), PutOp(FOO, "c", None)]
    assert await store.batch(ops) == [None] * 4
    found = [await store.value(*place) for place in ((FOO, "a"), (FOO, "b"), (BAR, "a"), (FOO, "c"))]
    assert found == [{"n": 1}, {"n": 2}, {"n": 3}, None]


async def the_last_put_of_a_key_counts(world: StoreWorld) -> None:
    store = await world.store()
    await store.put(FOO, "gone", {"n": 0})
    await store.batch(
        [
            *(PutOp(FOO, "a", {"n": number}) for number in range(3)),
            PutOp(FOO, "gone", {"n": 1}),
            PutOp(FOO, "gone", None),
            PutOp(FOO, "back", None),
            PutOp(FOO, "back", {"n": 2}),
            PutOp(BAR, "a", {"n": 3}),
        ]
    )
    found = [await store.value(*place) for place in ((FOO, "a"), (FOO, "gone"), (FOO, "back"), (BAR, "a"))]
    assert found == [{"n": 2}, None, {"n": 2}, {"n": 3}]


async def equal_puts_of_a_batch_store_one_item(world: StoreWorld) -> None:
    store = await world.store()
    assert await store.batch([PutOp(FOO, "a", {"n": 1})] * 3) == [None] * 3
    assert await store.keys() == ["a"]


async def several_searches_have_several_answers(world: StoreWorld) -> None:
    store = await world.store()
    for namespace, key, tag in ((FOO, "one", "a"), (BAR, "two", "a"), (("test", "baz"), "three", "b")):
        await store.put(namespace, key, {"tag": tag})
    by_tag, limited, below = await store.batch(
        [SearchOp(("test",), {"tag": "a"}), SearchOp(("test",), None, 2), SearchOp(FOO)]
    )
    assert {item.key for item in by_tag} == {"one", "two"}  # type: ignore[union-attr]  # items of a search
    assert len(limited) == 2  # type: ignore[arg-type]  # items of a search
    assert [(item.namespace, item.key) for item in below] == [(FOO, "one")]  # type: ignore[union-attr]  # see above


async def several_listings_have_several_answers(world: StoreWorld) -> None:
    store = await world.store()
    spaces = [("t", "docs", "public"), ("t", "docs", "private"), ("t", "images", "public"), ("p", "docs", "public")]
    for namespace in spaces:
        await store.put(namespace, "a", {})
    every, cut, ending = await store.batch(
        [
            ListNamespacesOp(limit=10),
            ListNamespacesOp(max_depth=2, limit=10),
            ListNamespacesOp((MatchCondition("suffix", ("public",)),), limit=10),
        ]
    )
    assert isinstance(every, list)
    assert isinstance(cut, list)
    assert isinstance(ending, list)
    assert (len(every), set(every)) == (len(spaces), set(spaces))
    assert (len(cut), set(cut)) == (3, {("p", "docs"), ("t", "docs"), ("t", "images")})
    assert len(ending) == 3


async def a_batch_may_be_large(world: StoreWorld) -> None:
    store = await world.store()
    await store.batch([PutOp(("many", str(number % 7)), f"k{number}", {"n": number}) for number in range(700)])
    answers = await store.batch([GetOp(("many", str(number % 7)), f"k{number}") for number in range(700)])
    assert [_value(answer) for answer in answers] == [{"n": number} for number in range(700)]
    await store.batch([PutOp(("many", str(number % 7)), f"k{number}", None) for number in range(1, 700)])
    assert await store.keys() == ["k0"]


async def calls_of_many_tasks_at_once_are_all_answered(world: StoreWorld) -> None:
    store = await world.store()

    async def one(number: int) -> None:
        namespace = ("test", "foo", str(number % 2))
        await store.put(namespace, f"k{number}", {"n": number})
        assert await store.value(namespace, f"k{number}") == {"n": number}
        assert len(await store.search(("test",), limit=3)) <= 3
        assert await store.namespaces(max_depth=2) == [("test", "foo")]
        await store.put(namespace, f"k{number}", {"n": -number})
        if number % 3:
            await store.delete(namespace, f"k{number}")

    await asyncio.gather(*map(one, range(60)))
    found = {item.key: item.value["n"] for item in await store.search(limit=100)}
    assert found == {f"k{number}": -number for number in range(0, 60, 3)}


async def puts_of_one_key_at_once_leave_one_whole_value(world: StoreWorld) -> None:
    store = await world.store()
    values = [{"n": number, "list": [number] * 100} for number in range(20)]
    await asyncio.gather(*(store.put(FOO, "a", value) for value in values))
    assert await store.value(FOO, "a") in values
    assert await store.keys() == ["a"]
