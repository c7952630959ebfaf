"""The shared cache on Redis: one hash for each thread, removed as a whole, and three short scripts."""

import asyncio
import threading
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterator, Mapping
from secrets import token_bytes
from typing import TYPE_CHECKING, Any

from threadmark.backends import (
    CacheRequest,
    ConfigError,
    Filling,
    Got,
    Outage,
    TransientStoreError,
    close_at_exit,
    reset_after_fork,
    was_closed,
)
from threadmark_redis.background import Background
from threadmark_redis.columns import to_bytes
from threadmark_redis.driver import RedisDriver, Settings, durability_of, servers_of_client, servers_of_url
from threadmark_redis.driver.failures import Failure, Retries, what_happened
from threadmark_redis.driver.log import log
from threadmark_redis.keys import checked_prefix
from threadmark_redis.steps import RunEach, script

if TYPE_CHECKING:
    from threadmark_redis.saver import Database

CACHE_PREFIX = "threadmark-cache:"
"""The default beginning of every key."""

MOST_BYTES = 4 * 1024 * 1024
"""How many bytes of a thread are read or added at once. With more, the answer could take longer than a short `wait`."""

_GET, _SET, _FORGET = script("cache_get"), script("cache_set"), script("cache_forget")
_TOKEN_BYTES = 8
_LONGEST_TTL = 10 * 365 * 24 * 3600
_AT_ONCE = 500
_Call = tuple[list[bytes], list[bytes | int]]
_POOL_WAIT = 60.0
"""Seconds to wait for a connection. It only has to be longer than any call may take."""


class RedisCache:
    """Keeps stored bytes on Redis (6 or newer) or Valkey: a single server, a cluster, or the master behind Sentinels.

    `database` is a URL, a client or a pool, as for `RedisSaver`. The server may evict anything and needs no disk.
    `prefix` begins every key. The cache opens up to `pool_size` connections to each server for each event loop, and as
    many for all blocking callers.
    """

    def __init__(self, database: "Database", *, prefix: str = CACHE_PREFIX, pool_size: int = 16) -> None:
        if type(pool_size) is not int or pool_size < 1:
            raise ConfigError(f"pool_size must be a number from 1 on, not {pool_size!r}")
        servers = servers_of_url(database) if isinstance(database, str) else servers_of_client(database)
        self._prefix = to_bytes(checked_prefix(prefix))
        self._settings = Settings(
            servers, durability_of("memory"), pool_size, _POOL_WAIT, prefix=prefix, may_be_evicted=True
        )
        self._driver = RedisDriver(self._settings)
        self._outage = Outage(log, self._settings)
        self._changing = threading.Lock()
        self._background: Background | None = None
        reset_after_fork(self)

    def __str__(self) -> str:
        return str(self._settings)

    def get(self, requests: Mapping[bytes, CacheRequest], ttl: float, within: float) -> dict[bytes, Got]:
        """Return the entries that these threads have. A new thread is removed after `ttl` seconds."""
        return self._in_background().call(self.aget(requests, ttl, within), within)

    async def aget(self, requests: Mapping[bytes, CacheRequest], ttl: float, within: float) -> dict[bytes, Got]:
        """Like `get`, for asyncio."""
        milliseconds = max(int(1000 * min(ttl, _LONGEST_TTL)), 1)
        calls: list[_Call] = [
            ([self._key(thread_key)], [asked.epoch, token_bytes(_TOKEN_BYTES), milliseconds, MOST_BYTES, *asked.keys])
            for thread_key, asked in requests.items()
        ]
        replies = await self._answered(RunEach(_GET, calls), within)
        return {
            thread_key: Got(token, dict(zip(entries[::2], entries[1::2], strict=True)))
            for thread_key, (token, *entries) in zip(requests, replies, strict=True)
        }

    def set(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Add entries to threads. A thread whose token has changed stays as it is."""
        self._in_background().call(self.aset(fillings, within), within)

    async def aset(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Like `set`, for asyncio."""
        calls: list[_Call] = [
            ([self._key(thread_key)], [filling.token, *_parts(filling)]) for thread_key, filling in fillings.items()
        ]
        await self._answered(RunEach(_SET, calls), within)

    def forget(self, thread_keys: Collection[bytes], within: float) -> None:
        """Remove all entries of these threads, and end their tokens."""
        self._in_background().call(self.aforget(thread_keys, within), within)

    async def aforget(self, thread_keys: Collection[bytes], within: float) -> None:
        """Like `forget`, for asyncio."""
        calls: list[_Call] = [([self._key(thread_key)], []) for thread_key in thread_keys]
        for start in range(0, len(calls), _AT_ONCE):
            await self._answered(RunEach(_FORGET, calls[start : start + _AT_ONCE]), within)

    def close(self) -> None:
        """Close every connection."""
        self._driver.close()
        self._end_background()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self._driver.aclose()
        await asyncio.to_thread(self._end_background)

    def _reset_after_fork(self) -> None:
        """Forget the parent's threads and connections in the child of a fork."""
        self._changing = threading.Lock()
        self._background = None

    async def _answered(self, step: RunEach, within: float) -> Any:
        try:
            async with asyncio.timeout(within):
                return await self._driver.aanswer(step, _OneMore(self._settings, self._outage))
        except TimeoutError:
            raise TransientStoreError(f"{self} gave no answer within {within:g} s") from None

    def _key(self, thread_key: bytes) -> bytes:
        return b"%b{%b}" % (self._prefix, urlsafe_b64encode(thread_key).rstrip(b"="))

    def _in_background(self) -> Background:
        with self._changing:
            if self._background is None:
                self._background = Background()
                close_at_exit(self)
            return self._background

    def _end_background(self) -> None:
        with self._changing:
            background, self._background = self._background, None
        if background is not None:
            background.end()
        was_closed(self)


def open_url(url: str) -> RedisCache:
    """Return a cache for `redis://user:password@host:6379/0`, or another URL of a `RedisSaver`."""
    return RedisCache(url)


class _OneMore(Retries):
    """One more attempt, at once: the first may have used a connection that was closed long ago."""

    _is_last = False

    def next_wait(self, failure: Failure, *, reached: bool) -> float:  # noqa: ARG002 - it does not wait
        """Return 0 the first time. Raises the error that ends the attempts."""
        if self._is_last:
            raise TransientStoreError(what_happened(failure)) from failure.error
        self._is_last = True
        return 0.0


def _parts(filling: Filling) -> Iterator[bytes]:
    left = MOST_BYTES
    for key, data in filling.entries.items():
        left -= len(data)
        if left < 0:
            return
        yield key
        yield data
