"""Only a thread's own stored bytes are used, whatever is in the cache; the owners of entries, and their lives."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from caching.held import PATIENCE, Held, InMemory, chat, expected, put, state, stored_segments
from threadmark import CorruptDataError, Keyring, MemoryCache, MemorySaver, Saver, cached
from threadmark.caching import CacheRequest, Filling
from threadmark.caching.cache import CacheKeys
from threadmark.caching.flows import Access
from threadmark.format.stored import shrink
from threadmark.memory.store import MemoryStore
from threadmark.types import CachedSaver
from threadmark_conformance.engine import at, checkpoint


def _keyring(secret: int = 0) -> Keyring:
    return Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes([secret]) * 32)


def _over(base: Saver, held: Held, **options: Any) -> CachedSaver:
    """Another cached saver, which remembers nothing."""
    same = Saver(base._store, base._driver, cache_bytes=0, keyring=base._options.get("keyring"))
    return cached(same, held.cache, wait=PATIENCE, **options)


def _flipped(data: bytes, chance: random.Random) -> bytes:
    at_byte = chance.randrange(len(data))
    return data[:at_byte] + bytes([data[at_byte] ^ (1 << chance.randrange(8))]) + data[at_byte + 1 :]


FORGERIES: dict[str, Callable[[bytes, list[bytes], random.Random], bytes]] = {
    "empty": lambda *_: b"",
    "cut short": lambda data, *_: data[:-1],
    "longer": lambda data, *_: data + b"x",
    "a bit flipped": lambda data, _, chance: _flipped(data, chance),
    "of another key or thread": lambda data, others, chance: chance.choice([each for each in others if each != data]),
    "other bytes": lambda _, __, chance: shrink(chance.randbytes(3000)),
    "a bomb": lambda *_: shrink(bytes(3_000_000)),
    "unknown form": lambda data, *_: b"\x07" + data[1:],
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("keyring", [None, _keyring()], ids=["plain", "sealed"])
def test_a_forged_entry_is_a_miss_and_is_replaced(forgery: str, keyring: Keyring | None, held: Held) -> None:
    base, chance = MemorySaver(keyring=keyring), random.Random(1)
    for thread in ("one", "two"):
        chat(base, thread)
        state(_over(base, held), thread)
    genuine = held.entries()
    assert len(genuine) >= 6
    for entry, data in genuine.items():
        held.write(entry, FORGERIES[forgery](data, list(genuine.values()), chance))
    for thread in ("one", "two"):
        assert state(_over(base, held), thread) == expected()
    assert held.entries() == genuine


def test_entries_of_one_thread_are_no_entries_of_another(held: Held) -> None:
    base = MemorySaver(keyring=_keyring())
    for thread in ("one", "two"):
        chat(base, thread)  # the same values, so the same keys
        state(_over(base, held), thread)
    genuine = held.entries()
    places = sorted({place for place, _ in genuine})
    for place, key in genuine:
        (other,) = (each for each in places if each != place)
        held.write((place, key), genuine[other, key])
    assert state(_over(base, held), "one") == expected()
    assert {entry: data for entry, data in held.entries().items() if genuine[entry] != data}  # "two" was not read yet
    assert state(_over(base, held), "two") == expected()
    assert held.entries() == genuine


def test_what_is_sealed_in_the_database_is_sealed_in_the_cache(held: Held) -> None:
    secret = random.Random(3).randbytes(4000)
    for keyring in (None, _keyring()):
        base = MemorySaver(keyring=keyring)
        versions = {"messages": 1}
        base.put(at("secret thread"), checkpoint({"messages": secret}), {}, versions)
        before = held.entries().keys()
        assert state(_over(base, held), "secret thread") == secret
        new = {entry: data for entry, data in held.entries().items() if entry not in before}
        assert new
        stored = b"".join(place + key + data for (place, key), data in new.items())
        assert (secret[1000:2000] in stored) == (keyring is None)
        assert b"secret thread" not in stored


def test_each_database_and_each_keyring_has_its_own_places() -> None:
    names = [CacheKeys(name, keyring) for name in ("a", "b") for keyring in (None, _keyring(1), _keyring(2))]
    places = {each.key(thread) for each in names for thread in ("x", "y")}
    assert len(places) == len(names) * 2
    assert CacheKeys("a", _keyring(1)).key("x") == CacheKeys("a", _keyring(1)).key("x")


def test_two_savers_share_what_is_cached_where_the_database_has_one_name(held: Held) -> None:
    base = MemorySaver()
    chat(base, "thread")
    state(_over(base, held, name="ours"), "thread")
    count = len(held.entries())
    state(_over(base, held, name="ours"), "thread")
    assert len(held.entries()) == count
    state(_over(base, held, name="another"), "thread")
    assert len(held.entries()) == 2 * count


def test_a_database_without_its_segments_is_found_out_although_the_cache_has_them(held: Held) -> None:
    base = MemorySaver()
    chat(base, "thread")
    state(_over(base, held), "thread")
    stored = stored_segments(base, "thread")
    assert stored
    stored.clear()
    saver = _over(base, held)
    assert state(saver, "thread") == expected()
    assert saver.verify("thread").problems
    assert saver.stats("thread") == base.stats("thread")
    with pytest.raises(CorruptDataError):
        saver.uncached.get(at("thread"))


def test_how_many_transactions_a_get_takes(held: Held) -> None:
    base = MemorySaver()
    base.create_thread("thread", owner="me")
    chat(base, "thread")
    base.put(at("tiny"), checkpoint({"messages": "short"}), {}, {"messages": 1})
    assert _transactions(base, held, "tiny") == 1
    assert _transactions(base, held, "thread") == 2  # the index, then all of it
    assert _transactions(base, held, "thread") == 1
    assert _transactions(base, held, "thread", owner=True) == 1
    put(base, "thread", 3)
    assert _transactions(base, held, "thread") == 2  # the index, then the new ones
    assert _transactions(base, held, "thread") == 1


def _transactions(base: Saver, held: Held, thread: str, *, owner: bool = False) -> int:
    saver, count = _over(base, held), 0
    seen = saver.for_owner("me") if owner else saver
    driver: Any = saver._driver
    run = driver._driver.run

    class Counting:
        def run(self, transaction: Any) -> Any:
            nonlocal count
            count += 1
            return run(transaction)

    driver._driver = Counting()
    assert state(seen, thread) is not None
    return count


def test_a_place_is_gone_after_its_time_and_its_token_with_it(held: Held) -> None:
    place, cache = b"p" * 16, held.cache
    lasting = cache.get({place: CacheRequest(5, [])}, 1000, PATIENCE)[place].token
    cache.set({place: Filling(lasting, {b"k" * 12: b"data"})}, PATIENCE)
    assert cache.get({place: CacheRequest(5, [b"k" * 12])}, 1000, PATIENCE)[place].entries == {b"k" * 12: b"data"}
    cache.forget([place], PATIENCE)
    first = cache.get({place: CacheRequest(5, [])}, 0.05, PATIENCE)[place].token
    cache.set({place: Filling(first, {b"k" * 12: b"data"})}, PATIENCE)
    token = first
    while token == first:  # it ends after 50 ms, however often it is asked for
        token = cache.get({place: CacheRequest(5, [])}, 1000, PATIENCE)[place].token
    cache.set({place: Filling(first, {b"k" * 12: b"late"})}, PATIENCE)
    assert cache.get({place: CacheRequest(5, [b"k" * 12])}, 1000, PATIENCE)[place].entries == {}


def test_a_place_of_an_earlier_epoch_is_emptied_and_a_reader_of_one_adds_nothing(held: Held) -> None:
    place, key, cache = b"p" * 16, b"k" * 12, held.cache
    old = cache.get({place: CacheRequest(5, [])}, 1000, PATIENCE)[place].token
    cache.set({place: Filling(old, {key: b"old"})}, PATIENCE)
    got = cache.get({place: CacheRequest(6, [key])}, 1000, PATIENCE)[place]
    assert (got.entries, got.token == old) == ({}, False)
    cache.set({place: Filling(old, {key: b"old"})}, PATIENCE)
    cache.set({place: Filling(got.token, {key: b"new"})}, PATIENCE)
    behind = cache.get({place: CacheRequest(5, [key])}, 1000, PATIENCE)[place]
    assert (behind.entries, behind.token) == ({key: b"new"}, b"")
    cache.set({place: Filling(b"", {key: b"old"})}, PATIENCE)
    assert cache.get({place: CacheRequest(6, [key])}, 1000, PATIENCE)[place].entries == {key: b"new"}


def test_a_memory_cache_stays_within_its_limit_and_keeps_what_was_read_last() -> None:
    cache = MemoryCache(max_bytes=10_000)
    for number in range(20):
        place = bytes([number]) * 16
        token = cache.get({place: CacheRequest(1, [])}, 1000, 1)[place].token
        cache.set({place: Filling(token, {b"k": bytes(2000)})}, 1)
        cache.get({bytes(16): CacheRequest(1, [b"k"])}, 1000, 1)
        assert cache.size <= 10_000
    found = [number for number in range(20) if cache.get({bytes([number]) * 16: CacheRequest(1, [b"k"])}, 1000, 1)]
    assert found[0] == 0
    assert cache.get({bytes(16): CacheRequest(1, [b"k"])}, 1000, 1)[bytes(16)].entries
    token = cache.get({b"x": CacheRequest(1, [])}, 1000, 1)[b"x"].token
    cache.set({b"x": Filling(token, {b"large": bytes(20_000), b"small": b"s"})}, 1)
    assert cache.get({b"x": CacheRequest(1, [b"large", b"small"])}, 1000, 1)[b"x"].entries == {b"small": b"s"}
    cache.close()
    assert cache.size == 0


def test_what_has_expired_in_memory_and_is_never_asked_for_again_goes_as_well() -> None:
    cache = MemoryCache()
    for number in range(100):
        place = bytes([number]) * 16
        token = cache.get({place: CacheRequest(1, [])}, 0.0, 1)[place].token
        cache.set({place: Filling(token, {b"k": bytes(2000)})}, 1)
    assert cache.size < 10_000


def test_a_large_state_comes_from_the_cache_in_part_and_from_the_database_for_the_rest(held: Held) -> None:
    base = MemorySaver()
    values = {f"v{number}": random.Random(number).randbytes(700_000) for number in range(8)}
    base.put(at("large"), checkpoint(values), {}, dict.fromkeys(values, 1))
    for _ in range(3):
        found = _over(base, held).get(at("large"))
        assert found is not None
        assert found["channel_values"] == values
    assert held.entries()


def test_a_store_that_cannot_leave_segments_out_is_cached_as_well() -> None:
    """As a third party's backend may be, which does not know `all_held`."""

    class Generous(MemoryStore):
        def find(self, thread_id: str, *args: Any) -> Any:
            found = yield from super().find(thread_id, *args)
            if found is None:
                return None
            sizes = yield from self.segment_sizes(thread_id)
            return found._replace(segments=(yield from self.segments(thread_id, list(sizes))))

    base = MemorySaver()
    chat(base, "thread")
    generous, held = Saver(Generous(), base._driver), InMemory()
    assert [state(_over(generous, held), "thread") for _ in range(2)] == [expected()] * 2


def test_places_are_remembered_up_to_a_limit() -> None:
    access = Access(MemoryCache(), 100.0, 1.0)
    for start in range(0, 150_000, 1000):
        access.forget_later([number.to_bytes(16, "big") for number in range(start, start + 1000)])
    assert len(access._pending) == 100_000
    assert (149_999).to_bytes(16, "big") in access._pending
