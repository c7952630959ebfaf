"""Damage is noticed: no read returns a value that was never put."""

from collections.abc import Iterator
from typing import Any

import pytest

from threadmark.errors import CorruptDataError
from threadmark_conformance.item_stores.own_worlds import KEYRING, OwnWorld
from threadmark_conformance.item_stores.worlds import Asked

NS = ("users", "ann")
_BEHIND_ALL_YEARS = 253_402_300_800_000_000
"""The first microsecond of the year 10,000."""
VALUES = {"json": {"n": 1234, "text": "abc"}, "typed": {"n": 1234, "set": {"abc"}}}


def _changes(value: str | bytes) -> Iterator[str | bytes]:
    """Yield damaged values. Text stays JSON, as a database may take no other."""
    if isinstance(value, str):
        yield from (value.replace("1234", "1235"), value.replace("abc", "abd"), value + " ", "{}", "[]", "1")
    else:
        for place in {0, 1, len(value) // 2, len(value) - 1}:
            yield value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
        yield from (value[:-1], value * 2, b"")


async def _is_noticed(store: Asked, key: str) -> None:
    with pytest.raises(CorruptDataError, match=f"'{key}' of namespace 'users.ann'"):
        await store.get(NS, key)
    with pytest.raises(CorruptDataError):
        await store.search(NS)
    with pytest.raises(CorruptDataError):
        await store.search(NS, filter={"never": {"$ne": 1}})


async def _notices_changes(world: OwnWorld, store: Asked) -> None:
    for key, value in VALUES.items():
        await store.put(NS, key, value)
        row = await world.row(NS, key)
        for changed in _changes(row.value):
            await world.set_rows(row._replace(value=changed))
            await _is_noticed(store, key)
        await world.set_rows(row)
        assert await store.value(NS, key) == value
        await store.delete(NS, key)


async def a_changed_value_is_noticed(world: OwnWorld) -> None:
    await _notices_changes(world, world.store())


async def a_changed_sealed_value_is_noticed(world: OwnWorld) -> None:
    await _notices_changes(world, world.with_keyring(KEYRING))


async def a_changed_check_is_noticed(world: OwnWorld) -> None:
    store = world.store()
    await store.put(NS, "a", {"n": 1})
    row = await world.row(NS, "a")
    for check in (row.check ^ 1, 0, -1):
        await world.set_rows(row._replace(check=check))
        await _is_noticed(store, "a")


async def exchanged_values_are_noticed(world: OwnWorld) -> None:
    store = world.store()
    places = (NS, "a"), (NS, "b"), (("users", "bob"), "a")
    for namespace, key in places:
        await store.put(namespace, key, {"of": [*namespace, key]})
    rows = [await world.row(*place) for place in places]
    for mine, theirs in ((0, 1), (1, 2), (2, 0)):
        await world.set_rows(rows[mine]._replace(value=rows[theirs].value, check=rows[theirs].check))
        with pytest.raises(CorruptDataError):
            await store.get(*places[mine])


async def a_time_that_is_none_is_noticed(world: OwnWorld) -> None:
    store = world.store()
    await store.put(NS, "other", {"n": 1})
    await store.put(NS, "a", {"n": 1}, ttl=60)
    row = await world.row(NS, "a")
    for name in ("created_at", "updated_at", "expires_at"):
        for time in (_BEHIND_ALL_YEARS, 2**63 - 1, -(2**62)):
            changed: Any = {name: time}
            await world.set_rows(row._replace(**changed))
            if name != "expires_at":  # which a read does not return
                with pytest.raises(CorruptDataError, match=r"'a' of namespace 'users\.ann'.* is no time"):
                    await store.get(NS, "a")
                with pytest.raises(CorruptDataError, match=r"'a' of namespace 'users\.ann'.* is no time"):
                    await store.search(NS)
            assert await store.value(NS, "other") == {"n": 1}
            (problem,) = (await store.call("verify")).problems
            assert (problem.kind, problem.location) == ("damaged", "item 'a' of namespace 'users.ann'")
            assert "no time" in problem.problem


async def a_damaged_item_can_be_replaced_and_removed(world: OwnWorld) -> None:
    store = world.store()
    for key in ("a", "b"):
        await store.put(NS, key, {"n": 1})
        row = await world.row(NS, key)
        await world.set_rows(row._replace(check=row.check ^ 1))
    await store.put(NS, "a", {"n": 2})
    await store.delete(NS, "b")
    assert [item.value for item in await store.search(NS)] == [{"n": 2}]
