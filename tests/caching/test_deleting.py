"""Deleting a thread deletes its entries: an in-flight read never brings them back."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import pytest

from caching.held import PATIENCE, Held, InMemory, before_step, chat, expected, put, state, stored_segments
from threadmark import CorruptDataError, MemoryCache, MemorySaver, Saver, cached
from threadmark.caching import Cache, Filling
from threadmark.types import CachedSaver
from threadmark_conformance.engine import at


def _over(base: Saver, cache: Cache) -> CachedSaver:
    """Another cached saver, which remembers nothing: as in another process."""
    return cached(Saver(base._store, base._driver, cache_bytes=0), cache, wait=PATIENCE)


def _cold(base: Saver, _: Cache) -> None:
    chat(base, "thread")


def _warm(base: Saver, cache: Cache) -> None:
    chat(base, "thread")
    state(_over(base, cache), "thread")


def _warm_in_part(base: Saver, cache: Cache) -> None:
    _warm(base, cache)
    put(base, "thread", 3)


def _read_newest(saver: Saver) -> Any:
    return state(saver, "thread")


def _list(saver: Saver) -> Any:
    return len(list(saver.list(at("thread"))))


def _extract(saver: Saver) -> Any:
    return saver.list_threads(extract={"last": "messages[-1]"}).threads


def _delete(base: Saver, cache: Cache) -> None:
    assert _over(base, cache).delete_thread("thread")


def _delete_and_begin_anew(base: Saver, cache: Cache) -> None:
    _delete(base, cache)
    chat(base, "thread", 1)


def _prune(base: Saver, cache: Cache) -> None:
    _over(base, cache).prune(["thread"])


ACTS: dict[str, Callable[[Saver, Cache], None]] = {
    "deleted": _delete,
    "deleted and begun anew": _delete_and_begin_anew,
    "pruned": _prune,
}


def _check(begin: Callable[..., None], read: Callable[[Saver], Any], act: Callable[..., None], held: Held) -> int:
    """Do something before each step of a read in turn. Returns how many steps there were at most."""
    most = number = 0
    while number <= most:
        base = MemorySaver()
        begin(base, held.cache)
        saver = _over(base, held.cache)
        with before_step(saver, number, partial(act, base, held.cache)) as taken:
            read(saver)
        most = max(most, taken[0])
        if number < taken[0]:
            there = set(stored_segments(base, "thread"))
            assert {key for _, key in held.entries()} <= there, f"before step {number}"
        number += 1
        _over(base, held.cache).delete_thread("thread")
    return most


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("read", [_read_newest, _list, _extract])
@pytest.mark.parametrize("begin", [_cold, _warm, _warm_in_part])
def test_a_read_that_began_before_brings_nothing_back(
    begin: Callable[..., None], read: Callable[[Saver], Any], act: str
) -> None:
    assert _check(begin, read, ACTS[act], InMemory()) >= 2


@pytest.mark.parametrize("begin", [_cold, _warm_in_part])
def test_the_same_on_either_kind_of_cache(begin: Callable[..., None], held: Held) -> None:
    assert _check(begin, _read_newest, _delete, held) >= 3


class _Forgiving(MemoryCache):
    """The planted fault: an entry is kept whatever has happened since it was read."""

    def set(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        current = {place: held.token for place in fillings if (held := self._threads.get(place))}
        super().set({place: Filling(current.get(place, b""), each.entries) for place, each in fillings.items()}, within)

    def forget(self, thread_keys: Collection[bytes], within: float) -> None:  # noqa: ARG002 - as that of the class
        for thread_key in thread_keys:
            if held := self._threads.get(thread_key):
                held.entries.clear()


def test_the_check_notices_a_cache_that_ignores_tokens() -> None:
    held = InMemory()
    held.cache = _Forgiving()
    with pytest.raises(AssertionError, match="before step"):
        _check(_cold, _read_newest, _delete, held)


def test_every_way_to_remove_a_thread_removes_its_entries(held: Held) -> None:
    ways: list[Callable[[Saver], Any]] = [
        lambda saver: saver.delete_thread("thread"),
        lambda saver: saver.prune(["thread"], strategy="delete"),
        lambda saver: saver.rename_thread("thread", "other"),
        lambda saver: asyncio.run(saver.adelete_thread("thread")),
    ]
    for way in ways:
        base = MemorySaver()
        _warm(base, held.cache)
        assert held.entries()
        way(_over(base, held.cache))
        assert held.entries() == {}


def test_entries_of_a_thread_that_was_deleted_elsewhere_go_when_it_is_read(held: Held) -> None:
    base = MemorySaver()
    _warm(base, held.cache)
    base.delete_thread("thread")  # past the cache, which hears nothing of it
    old = held.entries()
    assert old
    put(base, "thread", 9)
    state(_over(base, held.cache), "thread")
    assert not held.entries().keys() & old.keys()


def test_a_removal_that_may_have_been_made_is_forgotten_too(held: Held) -> None:
    base = MemorySaver()
    _warm(base, held.cache)
    saver = _over(base, held.cache)
    driver: Any = saver._driver
    run = base._driver.run

    class LosesAnswer:
        def run(self, transaction: Any) -> Any:
            answer = run(transaction)
            if transaction.writes:
                raise CorruptDataError("the answer was lost")
            return answer

    driver._driver = LosesAnswer()
    with pytest.raises(CorruptDataError):
        saver.delete_thread("thread")
    assert held.entries() == {}


def test_a_removal_whose_caller_is_gone_is_told_before_anything_else_is_asked() -> None:
    async def act() -> None:
        base, cache = MemorySaver(), MemoryCache()
        _warm(base, cache)
        chat(base, "other")
        saver = _over(base, cache)
        driver: Any = saver._driver
        arun = base._driver.arun

        class Cancelled:
            async def arun(self, transaction: Any) -> Any:
                answer = await arun(transaction)
                if transaction.writes:
                    raise asyncio.CancelledError
                return answer

        driver._driver = Cancelled()
        with pytest.raises(asyncio.CancelledError):
            await saver.adelete_thread("thread")
        assert cache.size > 1000
        found = await saver.aget(at("other"))
        assert found is not None
        assert found["channel_values"]["messages"] == expected()
        ((_, kept),) = cache._threads.oldest(2)
        assert kept.entries

    asyncio.run(act())
