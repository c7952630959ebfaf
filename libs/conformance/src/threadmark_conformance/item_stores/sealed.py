"""A keyring: no row shows a value, and a value belongs to its item."""

from typing import Any

import pytest

from threadmark.errors import ConfigError, CorruptDataError
from threadmark.sealing import Keyring
from threadmark_conformance.item_stores.own_worlds import KEYRING, OwnWorld
from threadmark_store import Cache
from threadmark_store.shapes import StoreVerifyReport
from threadmark_store.values import check_of

NS, SECRET = ("users", "ann"), "the secret of ann"
VALUES: dict[str, dict[str, Any]] = {
    "json": {"text": SECRET, "n": 987654321987},
    "typed": {"text": SECRET, "set": {987654321987}},
}


def _stored(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


async def no_row_shows_a_value(world: OwnWorld) -> None:
    store = world.with_keyring(KEYRING)
    for key, value in VALUES.items():
        await store.put(NS, key, value)
        stored = _stored((await world.row(NS, key)).value)
        for part in (SECRET.encode(), b"secret", b"text", b"987654321987"):
            assert part not in stored
        assert await world.with_keyring(KEYRING).value(NS, key) == value


async def equal_values_are_sealed_differently(world: OwnWorld) -> None:
    store = world.with_keyring(KEYRING)
    seen = set()
    for key in ("a", "b", "a"):
        await store.put(NS, key, {"text": SECRET})
        seen.add((await world.row(NS, key)).value)
    assert len(seen) == 3


async def a_sealed_item_needs_the_keyring(world: OwnWorld) -> None:
    await world.with_keyring(KEYRING).put(NS, "a", {"text": SECRET})
    plain = world.with_keyring(None)
    with pytest.raises(ConfigError, match=r"'a' of namespace 'users\.ann' is sealed: give keyring="):
        await plain.get(NS, "a")
    with pytest.raises(ConfigError, match="is sealed: give keyring="):
        await plain.search(NS)
    other = world.with_keyring(Keyring({"other": bytes(reversed(range(32)))}, "other", digest_secret=bytes(32)))
    with pytest.raises((ConfigError, CorruptDataError)):
        await other.get(NS, "a")


async def a_verify_without_the_keyring_names_sealed_items(world: OwnWorld) -> None:
    await world.with_keyring(None).put(NS, "plain", {"n": 1})
    await world.with_keyring(KEYRING).put(NS, "a", {"text": SECRET})
    found: StoreVerifyReport = await world.with_keyring(None).call("verify", decode=True)
    (problem,) = found.problems
    assert (found.items, problem.kind, problem.location) == (2, "damaged", "item 'a' of namespace 'users.ann'")
    assert problem.problem.startswith("is sealed: give keyring=")


async def a_verify_without_the_keyring_names_sealed_cached_values(world: OwnWorld) -> None:
    sealed: Any = world.with_keyring(KEYRING).store
    await Cache(sealed.saver).aset({(("graph", "node"), "k"): (SECRET, None)})
    found: StoreVerifyReport = await world.with_keyring(None).call("verify", decode=True)
    (problem,) = found.unreadable
    assert (found.cached, found.problems, problem.location.partition(" value ")[0]) == (1, [], "cached")
    assert "a value is sealed: give keyring=" in problem.problem


async def an_earlier_key_still_opens(world: OwnWorld) -> None:
    await world.with_keyring(KEYRING).put(NS, "a", {"text": SECRET})
    keys = {"key": bytes(range(32)), "new": bytes(reversed(range(32)))}
    rotated = world.with_keyring(Keyring(keys, "new", digest_secret=bytes(32)))
    await rotated.put(NS, "b", {"text": SECRET})
    assert await rotated.value(NS, "a") == await rotated.value(NS, "b") == {"text": SECRET}


async def items_from_before_the_keyring_are_read(world: OwnWorld) -> None:
    await world.with_keyring(None).put(NS, "a", {"n": 1})
    store = world.with_keyring(KEYRING)
    assert await store.value(NS, "a") == {"n": 1}
    await store.put(NS, "b", {"n": 1})
    assert sorted(await store.keys(NS, filter={"n": 1})) == ["a", "b"]


async def a_sealed_value_belongs_to_its_item(world: OwnWorld) -> None:
    store = world.with_keyring(KEYRING)
    await store.put(NS, "a", {"text": SECRET})
    await store.put(NS, "b", {"text": "another"})
    await store.put(("users", "bob"), "a", {"text": "another"})
    row = await world.row(NS, "a")
    for place in ((NS, "b"), (("users", "bob"), "a")):
        other = await world.row(*place)
        await world.set_rows(other._replace(value=row.value, check=check_of(other.key, row.value)))
        with pytest.raises(CorruptDataError):
            await world.with_keyring(KEYRING).get(*place)
