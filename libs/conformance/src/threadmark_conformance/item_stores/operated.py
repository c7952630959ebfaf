"""Verify and stats: all damage is named, all rows are counted, and looking creates nothing."""

from collections.abc import Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

from langgraph.store.base import IndexConfig

from threadmark_conformance.item_stores.own_worlds import KEYRING, OwnWorld
from threadmark_conformance.item_stores.worlds import Asked
from threadmark_store.shapes import StoreStats, StoreVerifyReport
from threadmark_store.values import check_of

NS = ("users", "ann")
HERE = "of namespace 'users.ann'"


def lengths(texts: Sequence[str]) -> list[list[float]]:
    """Stand for a model."""
    return [[float(len(text)), 1.0] for text in texts]


INDEX: IndexConfig = {"dims": 2, "embed": lengths, "fields": ["text"]}


async def _fill(store: Asked) -> None:
    for number in range(6):
        value: dict[str, Any] = {"text": "a" * number, "n": number}
        await store.put(NS, str(number), value if number % 2 else {**value, "pair": (1, 2)})


async def _verified(store: Asked, **options: Any) -> tuple[dict[str, str], StoreVerifyReport]:
    """Return the locations of all problems with their kinds, and the report."""
    found: StoreVerifyReport = await store.call("verify", **options)
    return {problem.location: problem.kind for problem in (*found.problems, *found.unreadable)}, found


async def all_is_as_it_was_written(world: OwnWorld) -> None:
    for store in (world.store(index=INDEX), world.with_keyring(KEYRING)):
        await _fill(store)
        seen = SimpleQueue[tuple[int, int]]()
        problems, found = await _verified(store, decode=True, progress=partial(_note, seen))
        assert (problems, found.items, seen.get_nowait()) == ({}, 6, (6, 6))


def _note(seen: SimpleQueue[tuple[int, int]], done: int, count: int) -> None:
    seen.put((done, count))


async def each_damaged_item_is_named(world: OwnWorld) -> None:
    store = world.store()
    await _fill(store)
    rows = [await world.row(NS, str(number)) for number in range(4)]
    await world.set_rows(rows[0]._replace(check=rows[0].check ^ 1), rows[1]._replace(value='{"n":2}'))
    await world.set_rows(rows[2]._replace(value=rows[3].value, check=rows[3].check))
    await world.set_rows(rows[3]._replace(updated_at=2**62))
    problems, found = await _verified(store, decode=True)
    assert problems == dict.fromkeys((f"item '{number}' {HERE}" for number in range(4)), "damaged")
    assert found.items == 6


async def an_item_that_does_not_decode_is_unreadable(world: OwnWorld) -> None:
    store = world.store()
    await _fill(store)
    row = await world.row(NS, "0")
    value = b"\x01no such tag\x00\x00"
    await world.set_rows(row._replace(value=value, check=check_of(row.key, value)))
    assert (await _verified(store))[0] == {}
    assert (await _verified(store, decode=True))[0] == {f"item '0' {HERE}": "unreadable"}


async def a_vector_of_an_earlier_value_is_an_orphan(world: OwnWorld) -> None:
    store = world.store(index=INDEX)
    await _fill(store)
    value = '{"text":"another"}'
    row = await world.row(NS, "1")
    await world.set_rows(row._replace(value=value, check=check_of(row.key, value)))
    await world.in_items(lambda items: items.delete([row.key._replace(key="3")], None))
    problems, found = await _verified(store)
    assert set(problems.values()) == {"orphan"}
    assert len(found.problems) == 2
    assert (found.items, found.vectors) == (5, 5)
    await store.call("reindex")
    assert (await _verified(store))[0] == {}


async def an_owner_verifies_and_counts_own_items(world: OwnWorld) -> None:
    ada, eve = world.of_owner("ada"), world.of_owner("eve")
    await ada.put(NS, "a", {"n": 1})
    await eve.put(NS, "e", {"n": 1})
    row = await world.row(NS, "e")
    await world.set_rows(row._replace(check=0))
    problems, found = await _verified(ada)
    assert (problems, found.items, (await ada.call("stats")).items) == ({}, 1, 1)
    problems, found = await _verified(world.store())
    assert (problems, found.items) == ({f"item 'e' {HERE}": "damaged"}, 2)


async def stats_count_everything(world: OwnWorld) -> None:
    store = world.store(index=INDEX)
    await _fill(store)
    await store.put(("other",), "k", {"n": 1}, ttl=0.0000001)
    await store.put(("é",), "k", {})
    counted: StoreStats = await store.call("stats")
    places = [*((NS, str(number)) for number in range(6)), (("other",), "k"), (("é",), "k")]
    rows = [await world.row(*place) for place in places]
    size = sum(len(".".join(labels).encode()) + len(key) for labels, key in places)
    assert counted == StoreStats(8, 1, 3, size + sum(len(row.value) for row in rows), 6, 0, 0)


async def looking_creates_nothing(world: OwnWorld) -> None:
    before = await world.in_items(lambda items: items.exists())
    store = world.store()
    assert await store.call("stats") == StoreStats(0, 0, 0, 0, 0, 0, 0)
    assert await store.call("verify", decode=True) == StoreVerifyReport(0, 0, 0, [], [])
    assert await world.in_items(lambda items: items.exists()) == before
