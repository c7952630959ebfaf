"""A batch is one transaction: all of its puts or none, and its reads see the state before them."""

import asyncio
import threading

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, Op, PutOp, SearchOp

from threadmark.errors import SerializationError
from threadmark_conformance.crashes import DeathError, Mortal
from threadmark_conformance.item_stores.own_worlds import OwnWorld

NS = ("accounts",)
BEFORE, AFTER = {"a": {"n": 0}, "gone": {"n": 0}}, {"a": {"n": 1}, "new": {"n": 1}}
CHANGE: list[Op] = [PutOp(NS, "a", {"n": 1}), PutOp(NS, "gone", None), PutOp(NS, "new", {"n": 1})]


async def _state(world: OwnWorld) -> dict[str, object]:
    return {item.key: item.value for item in await world.store().search(NS)}


async def _begin(world: OwnWorld) -> None:
    await world.store().batch([PutOp(NS, "a", {"n": 0}), PutOp(NS, "gone", {"n": 0}), PutOp(NS, "new", None)])
    assert await _state(world) == BEFORE


async def reads_of_a_batch_see_the_state_before_it(world: OwnWorld) -> None:
    await _begin(world)
    reads: list[Op] = [GetOp(NS, "a"), GetOp(NS, "gone"), GetOp(NS, "new"), SearchOp(NS), ListNamespacesOp()]
    for ops in ([*CHANGE, PutOp(("other",), "x", {}), *reads], [*reads, *CHANGE], [*reads[:2], *CHANGE, *reads[2:]]):
        await world.store().delete(("other",), "x")
        await _begin(world)
        answers = dict(zip(map(str, ops), await world.store().batch(ops), strict=True))
        one, gone, new, every, spaces = (answers[str(op)] for op in reads)
        assert isinstance(one, Item)
        assert isinstance(gone, Item)
        assert (one.value, gone.value, new, spaces) == ({"n": 0}, {"n": 0}, None, [NS])
        assert {item.key for item in every} == set(BEFORE)  # type: ignore[union-attr]  # items of a search
        assert await _state(world) == AFTER


async def a_driver_that_dies_leaves_the_old_or_the_new_state(world: OwnWorld) -> None:
    await _begin(world)
    store, mortal = world.over_driver(Mortal)
    await store.get(NS, "a")  # so that the tables exist
    for step in range(50):
        await _begin(world)
        mortal.steps_left = step
        try:
            await store.batch([GetOp(NS, "a"), *CHANGE])
        except DeathError:
            assert await _state(world) in (BEFORE, AFTER), step
        else:
            break
        finally:
            mortal.steps_left = None
    assert step > 2
    assert await _state(world) == AFTER


async def a_commit_without_an_answer_is_a_commit(world: OwnWorld) -> None:
    store, mortal = world.over_driver(Mortal)
    await store.delete(NS, "a")  # the first change of a store makes its tables, and looks at the keys of sealed items
    await _begin(world)
    mortal.answers_left = 0
    with pytest.raises(DeathError):
        await store.batch(CHANGE)
    assert await _state(world) == AFTER
    mortal.answers_left = None
    await store.batch(CHANGE)
    assert await _state(world) == AFTER


async def a_batch_with_a_mistake_stores_nothing(world: OwnWorld) -> None:
    await _begin(world)
    store = world.store()
    for bad, error in (
        (PutOp(NS, "bad", {"lock": threading.Lock()}), SerializationError),
        (PutOp(("a.b",), "bad", {}), InvalidNamespaceError),
        (PutOp(("a", ""), "bad", {}), InvalidNamespaceError),
        (GetOp(("a.b",), "bad"), InvalidNamespaceError),
        (SearchOp(("a.b",)), InvalidNamespaceError),
        (SearchOp(NS, {"v": {"$near": 1}}), ValueError),
        (SearchOp(NS, limit=-1), ValueError),
        (ListNamespacesOp(offset=-1), ValueError),
        ("get", ValueError),
    ):
        for ops in ([*CHANGE, bad], [bad, *CHANGE]):
            with pytest.raises(error):
                await store.batch(ops)  # type: ignore[arg-type]  # that is the point
            assert await _state(world) == BEFORE


async def readers_see_all_of_a_batch_or_nothing(world: OwnWorld) -> None:
    writers, readers = [world.store() for _ in range(2)], [world.store() for _ in range(2)]
    keys = [f"k{number}" for number in range(5)]
    await writers[0].batch([PutOp(NS, key, {"n": -1}) for key in keys])

    async def write(number: int) -> None:
        await writers[number % 2].batch([PutOp(NS, key, {"n": number}) for key in keys])

    async def read(number: int) -> None:
        reader = readers[number % 2]
        got, found = await reader.batch([GetOp(NS, keys[0]), SearchOp(NS)])
        assert isinstance(got, Item)
        assert isinstance(found, list)
        values = {item.value["n"] for item in found if isinstance(item, Item)}
        assert (len(found), len(values)) == (5, 1)
        assert values == {got.value["n"]}

    await asyncio.gather(*map(write, range(30)), *map(read, range(30)))
