"""Items go to another backend and to LangGraph's store, and come back as they were."""

from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from threadmark.errors import ConfigError
from threadmark.memory import MemorySaver
from threadmark.model import Problem
from threadmark.program import Operation, read_itself, run
from threadmark_conformance.item_stores.operated import INDEX
from threadmark_conformance.item_stores.own_worlds import KEYRING, OwnWorld
from threadmark_conformance.item_stores.worlds import Asked
from threadmark_store import Store
from threadmark_store.operating import Page, Rows, existing, page_behind, rows_of

NS = ("users", "ann")
VALUES: dict[str, Any] = {
    "plain": {"text": "a", "n": 2**62, "list": [1.5, None, True]},
    "exact": {"text": "b", "at": datetime(2026, 11, 20, tzinfo=UTC), "pair": (1, 2), "set": {"x"}},
    "é\x00\ud800": {"text": "c\x00"},
}


async def _fill(store: Asked, **options: Any) -> Asked:
    for key, value in VALUES.items():
        await store.put(NS, key, value)
    await store.put(NS, "ends", {"text": "d"}, ttl=60)
    await store.put(NS, "chosen", {"text": "e", "other": "f"}, index=["other"])
    await store.put(NS, "hidden", {"text": "g"}, index=False)
    owner: Any = store.store
    ada = Store(owner.saver.for_owner("ada"), **options)
    await ada.aput(("ada's",), "k", {"text": "h"})
    return store


def _held(store: Asked) -> Page:
    """Return all rows with all that they are found by."""
    owner: Any = store.store
    found: Page = run(owner.saver._driver, _read(rows_of(owner.saver)))  # noqa: SLF001 - below the store
    return found._replace(vectors=sorted(found.vectors), words=sorted(found.words))


def _read(rows: Rows) -> Operation[Page]:
    there = yield from existing(rows)
    assert there is not None
    return (yield from read_itself(page_behind, there, None))


async def items_come_back_from_another_backend_exactly(world: OwnWorld) -> None:
    store = await _fill(world.with_keyring(None, index=INDEX), index=INDEX)
    before = _held(store)
    away = Asked(Store(MemorySaver()), world.api)
    moved = await store.call("export", away.store)
    assert moved == (7, 0, 0, [])
    assert _held(away) == before
    for row in before.items:
        await store.delete(tuple(row.key.namespace.split(".")), row.key.key)
    assert await away.call("export", store.store) == (7, 0, 0, [])
    assert _held(store) == before
    assert await away.call("export", store.store) == (0, 7, 0, [])


async def a_keyring_seals_what_comes_and_opens_what_goes(world: OwnWorld) -> None:
    plain = Asked(Store(MemorySaver(), index=INDEX), world.api)
    await plain.put(NS, "a", {"text": "secret", "pair": (1, 2)})
    sealed = world.with_keyring(KEYRING)
    assert (await plain.call("export", sealed.store)).items == 1
    stored = (await world.row(NS, "a")).value
    assert isinstance(stored, bytes)
    assert b"secret" not in stored
    assert await sealed.value(NS, "a") == {"text": "secret", "pair": (1, 2)}
    back = Asked(Store(MemorySaver(), index=INDEX), world.api)
    assert (await sealed.call("export", back.store)).items == 1
    assert _held(back) == _held(plain)
    assert (await sealed.call("verify", decode=True)).problems == []


async def the_later_version_stays(world: OwnWorld) -> None:
    store, away = world.store(), Asked(Store(MemorySaver()), world.api)
    for key, first, second in (("mine", away, store), ("theirs", store, away)):
        await first.put(NS, key, {"of": "first"})
        await second.put(NS, key, {"of": "second"})
    assert await store.call("export", away.store, dry_run=True) == (1, 0, 1, [])
    assert await away.value(NS, "mine") == {"of": "first"}
    assert await store.call("export", away.store) == (1, 0, 1, [])
    assert await away.value(NS, "mine") == await away.value(NS, "theirs") == {"of": "second"}
    assert {row.key.key: row.created_at for row in _held(away).items} == {
        "mine": (await world.row(NS, "mine")).created_at,
        "theirs": _held(away).items[1].created_at,
    }


async def a_damaged_item_stays_behind_and_is_named(world: OwnWorld) -> None:
    store, away = await _fill(world.store()), Asked(Store(MemorySaver()), world.api)
    row = await world.row(NS, "plain")
    await world.set_rows(row._replace(check=0))
    moved = await store.call("export", away.store)
    assert [(each.kind, each.location) for each in moved.problems] == [
        ("damaged", "item 'plain' of namespace 'users.ann'")
    ]
    assert moved.items == 6


async def an_owners_items_go_alone(world: OwnWorld) -> None:
    await _fill(world.store())
    away = Asked(Store(MemorySaver()), world.api)
    ada = world.of_owner("ada")
    assert (await ada.call("export", away.store)).items == 1
    assert [row.owner for row in _held(away).items] == ["ada"]
    with pytest.raises(ConfigError, match="a target without an owner"):
        await away.call("export", ada.store)


async def a_later_version_goes_to_langgraphs_store_also_if_it_looks_equal(world: OwnWorld) -> None:
    store, theirs = world.store(), InMemoryStore()
    for before, after in (({"done": 1}, {"done": True}), ({"n": 1}, {"n": 1.0}), ({"n": [0]}, {"n": [False]})):
        await store.put(NS, "a", before)
        assert await store.call("export", theirs) == (1, 0, 0, [])
        await store.put(NS, "a", after)
        assert await store.call("export", theirs) == (1, 0, 0, [])
        found = theirs.get(NS, "a")
        assert found is not None
        assert repr(found.value) == repr(after)
        assert await store.call("export", theirs) == (0, 1, 0, [])
        await store.put(NS, "a", after)  # no time of theirs would change
        assert await store.call("export", theirs) == (0, 1, 0, [])


async def items_go_to_langgraphs_store_and_back(world: OwnWorld) -> None:
    store, theirs = await _fill(world.store()), InMemoryStore()
    moved = await store.call("export", theirs)
    assert (moved.items, sorted(problem.location for problem in moved.problems)) == (
        5,
        sorted(f"item {key!r} of namespace 'users.ann'" for key in ("exact", "é\x00\ud800")),
    )
    assert all(isinstance(problem, Problem) and "JSON" in problem.problem for problem in moved.problems)
    assert (await store.call("export", theirs)).already_there == 5
    back = Asked(Store(MemorySaver()), world.api)
    assert await back.call("migrate", theirs) == (5, 0, 0, [])
    assert await back.value(NS, "plain") == VALUES["plain"]
    assert await world.of_owner("eve").call("migrate", InMemoryStore()) == (0, 0, 0, [])
    with pytest.raises(PermissionError, match="belongs to another owner than 'eve'"):
        await world.of_owner("eve").call("migrate", theirs)
    with pytest.raises(ConfigError, match=r"source\.export"):
        await store.call("migrate", back.store)
