"""A cache that is away costs nothing but speed: killed, paused, slow, cut off, or broken in whatever way."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from caching.held import PATIENCE, OnRedis, chat, expected, put, state
from ends import Listener
from patience import wait_until
from redis_backend.processes import FORGETFUL, HOST, RedisProcess, shared
from redis_backend.proxy import Proxy
from threadmark import MemoryCache, MemorySaver, Saver, TransientStoreError, cached
from threadmark.caching import CacheRequest, flows
from threadmark.caching.flows import Access
from threadmark.types import CachedSaver
from threadmark_conformance.engine import at, checkpoint
from threadmark_redis import RedisCache

WAIT = 0.05


def _over(base: Saver, cache: Any, wait: float = WAIT) -> CachedSaver:
    return cached(Saver(base._store, base._driver, cache_bytes=0), cache, wait=wait)


def _records(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if words in each.getMessage()]


def _end_pause(saver: CachedSaver) -> None:
    """Let the cache be asked again, as when the pause after a failure is over."""
    flows: Any = saver._driver
    flows._flows._access._until = 0.0


@contextmanager
def _killed(server: RedisProcess) -> Iterator[None]:
    server.kill()
    yield
    server.start()


@contextmanager
def _paused(server: RedisProcess) -> Iterator[None]:
    server.suspend()
    yield
    server.resume()


@pytest.mark.parametrize("away", [_killed, _paused])
def test_everything_works_while_the_cache_is_away_and_it_is_used_again(
    away: Callable[[RedisProcess], Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "LONGEST_PAUSE", 0.2)
    caplog.set_level(logging.INFO, "threadmark")
    base = MemorySaver()
    with RedisProcess(FORGETFUL).start() as server, closing(RedisCache(server.url)) as cache:
        chat(base, "thread")
        saver = _over(base, cache, 1.0)
        assert [state(saver, "thread") for _ in range(2)] == [expected()] * 2
        with away(server):
            for number in range(3, 8):
                put(saver, "thread", number)
                assert state(saver, "thread") == expected(number + 1)
                assert asyncio.run(saver.aget(at("thread"))) is not None
            assert saver.delete_thread("thread")
            assert state(saver, "thread") is None
            assert len(_records(caplog, "is left out")) == 1
        chat(base, "thread")

        def is_used() -> bool:
            state(saver, "thread")
            return bool(_records(caplog, "is used again"))

        wait_until(is_used, "the cache was not used again")
        assert len(_records(caplog, "is left out")) == len(_records(caplog, "is used again")) == 1


def test_a_deletion_that_the_cache_did_not_hear_of_is_told_when_it_is_back() -> None:
    base = MemorySaver()
    with RedisProcess(FORGETFUL).start() as server:
        held = OnRedis(server, "owed:")
        with closing(held.cache):
            chat(base, "thread")
            chat(base, "other")
            saver = _over(base, held.cache, 1.0)
            assert state(saver, "thread") == expected()
            old = held.entries().keys()
            assert old
            server.suspend()
            assert saver.delete_thread("thread")
            server.resume()
            assert held.entries().keys() == old
            wait_until(lambda: state(saver, "other") == expected() and bool(held.entries().keys() - old), "it is away")
            assert not held.entries().keys() & old


def test_closing_a_saver_tells_the_cache_what_it_owes() -> None:
    class Deaf(MemoryCache):
        hears = False

        def forget(self, thread_keys: Any, within: float) -> None:
            if not self.hears:
                raise OSError("it is away")
            super().forget(thread_keys, within)

    base, cache = MemorySaver(), Deaf()
    chat(base, "thread")
    saver = _over(base, cache)
    state(saver, "thread")
    saver.delete_thread("thread")
    assert cache.size > 1000
    cache.hears = True
    _end_pause(saver)
    saver.close()
    assert cache.size == 0


@contextmanager
def _dripping() -> Iterator[int]:
    """A server that answers whatever it is asked with one byte after the other, for ever. Gives its port."""
    ended = threading.Event()

    def drip(client: socket.socket) -> None:
        with client:
            try:
                while not ended.wait(0.01):
                    client.sendall(b"$")
            except OSError:
                return

    listener = Listener(lambda client: threading.Thread(target=drip, args=(client,), daemon=True).start())
    try:
        yield listener.port
    finally:
        ended.set()
        listener.close()


def test_an_answer_that_comes_in_drops_is_waited_for_no_longer_than_any_other() -> None:
    with _dripping() as port, closing(RedisCache(f"redis://{HOST}:{port}")) as cache:
        for ask in (cache.get, lambda *arguments: asyncio.run(cache.aget(*arguments))):
            begun = time.monotonic()
            with pytest.raises(TransientStoreError, match=r"no answer within 0\.2 s"):
                ask({b"p" * 16: CacheRequest(1, [b"k"])}, 10.0, 0.2)
            assert time.monotonic() - begun < PATIENCE


def test_a_cache_that_answers_late_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "FIRST_PAUSE", flows.LONGEST_PAUSE)
    base = MemorySaver()
    chat(base, "thread")
    with Proxy(shared().port) as proxy, closing(RedisCache(proxy.url, prefix="late:")) as cache:
        saver = _over(base, cache, 1.0)
        assert state(saver, "thread") == expected()
        with proxy.holding():
            assert state(saver, "thread") == expected()
            asked = len(proxy.commands)
            assert state(saver, "thread") == expected()
            assert len(proxy.commands) == asked
        proxy.cut()

        def is_asked() -> bool:
            _end_pause(saver)
            return state(saver, "thread") == expected() and len(proxy.commands) > asked

        wait_until(is_asked, "it is not asked any more")


def test_a_connection_that_was_closed_long_ago_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    base = MemorySaver()
    chat(base, "thread")
    with Proxy(shared().port) as proxy, closing(RedisCache(proxy.url, prefix="closed:")) as cache:
        saver = _over(base, cache, PATIENCE)
        for _ in range(3):
            assert state(saver, "thread") == expected()
            proxy.cut()
    assert _records(caplog, "is left out") == []


class _Broken(MemoryCache):
    """Raises whatever it is asked, and counts how often."""

    asked = 0

    def get(self, *_: Any) -> Any:
        self.asked += 1
        raise KeyError("whatever")

    def set(self, *_: Any) -> Any:
        self.get()

    def forget(self, *_: Any) -> Any:
        self.get()


def test_each_pause_is_twice_as_long_up_to_a_limit_and_one_caller_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    base, cache = MemorySaver(), _Broken()
    chat(base, "thread")
    saver = _over(base, cache)
    assert state(saver, "thread") == expected()
    assert cache.asked == 1
    for pause in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30):
        asked = cache.asked
        now += 0.99 * pause
        assert state(saver, "thread") == expected()
        assert cache.asked == asked
        now += 0.02 * pause
        assert [state(saver, "thread") for _ in range(2)] == [expected()] * 2
        assert cache.asked == asked + 1


def test_no_error_of_a_cache_reaches_a_caller_whichever_method_raises_it() -> None:
    for method in ("get", "set", "forget"):
        base, cache = MemorySaver(), MemoryCache()
        setattr(cache, method, _Broken().get)
        setattr(cache, f"a{method}", _Broken().get)
        saver = _over(base, cache)
        chat(saver, "thread")
        assert state(saver, "thread") == expected()
        assert asyncio.run(saver.aget(at("thread"))) is not None
        assert asyncio.run(saver.adelete_thread("thread"))
        chat(saver, "thread")
        assert saver.delete_thread("thread")


def test_a_failure_while_the_cache_is_away_claims_nothing_for_others() -> None:
    tried = Access(MemoryCache(), 10.0, 1.0)
    tried._failed(OSError("away"))
    assert not tried.is_open
    tried._until = 0.0
    assert tried._claim_attempt()
    assert not tried._claim_attempt()
    tried._succeeded()
    assert tried._claim_attempt()
    assert tried._claim_attempt()


def test_a_state_that_needs_no_segments_asks_no_cache() -> None:
    base, cache = MemorySaver(), _Broken()
    base.put(at("tiny"), checkpoint({"a": 1}), {}, {"a": 1})
    assert _over(base, cache).get(at("tiny")) is not None
    assert cache.asked == 0
