"""A cache in the memory of this process, limited in bytes. Any number of savers may share it."""

import threading
import time
from collections.abc import Collection, Mapping
from secrets import token_bytes
from urllib.parse import parse_qsl

from threadmark.caching.cache import CacheRequest, Filling, Got
from threadmark.errors import ConfigError, short_repr
from threadmark.runtime.processes import reset_after_fork
from threadmark.saver.kit import BoundedCache

MEMORY_BYTES = 256 * 1024 * 1024
"""The default limit."""

_TOKEN_BYTES = 8
_OVERHEAD = 120
"""About how much memory Python takes for an entry in addition to its bytes."""


class _CachedThread:
    def __init__(self, epoch: int, until: float) -> None:
        self.epoch = epoch
        self.until = until
        self.token = token_bytes(_TOKEN_BYTES)
        self.entries: dict[bytes, bytes] = {}
        self.size = 0

    def add(self, key: bytes, data: bytes) -> None:
        known = self.entries.get(key)
        self.size += _weight(data) - (0 if known is None else _weight(known))
        self.entries[key] = data


def _weight(data: bytes) -> int:
    return len(data) + _OVERHEAD


class MemoryCache:
    """Keeps up to `max_bytes` of stored bytes. Beyond that, the least recently read threads are removed."""

    def __init__(self, *, max_bytes: int = MEMORY_BYTES) -> None:
        if type(max_bytes) is not int or max_bytes < 1:
            raise ConfigError(f"max_bytes must be a number from 1 on, not {short_repr(max_bytes)}")
        self._turn = threading.Lock()
        """Held while a thread changes."""
        self._threads = BoundedCache(max_bytes, overhead=_OVERHEAD)
        reset_after_fork(self)

    def __str__(self) -> str:
        return "the memory of this process"

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return self._threads.used

    def get(self, requests: Mapping[bytes, CacheRequest], ttl: float, within: float) -> dict[bytes, Got]:  # noqa: ARG002 - no wait
        """Return the entries that these threads have. A new thread is removed after `ttl` seconds."""
        now = time.monotonic()
        with self._turn:
            return {thread_key: self._got(thread_key, asked, now, ttl) for thread_key, asked in requests.items()}

    async def aget(self, requests: Mapping[bytes, CacheRequest], ttl: float, within: float) -> dict[bytes, Got]:
        """Like `get`, for asyncio."""
        return self.get(requests, ttl, within)

    def set(self, fillings: Mapping[bytes, Filling], within: float) -> None:  # noqa: ARG002 - nothing here waits
        """Add entries to threads. A thread whose token has changed stays as it is."""
        with self._turn:
            for thread_key, filling in fillings.items():
                held = self._threads.get(thread_key)
                if held is not None and held.token == filling.token:
                    self._fill(thread_key, held, filling.entries)

    async def aset(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Like `set`, for asyncio."""
        self.set(fillings, within)

    def forget(self, thread_keys: Collection[bytes], within: float) -> None:  # noqa: ARG002 - nothing here waits
        """Remove all entries of these threads, and end their tokens."""
        with self._turn:
            for thread_key in thread_keys:
                self._threads.forget(thread_key)

    async def aforget(self, thread_keys: Collection[bytes], within: float) -> None:
        """Like `forget`, for asyncio."""
        self.forget(thread_keys, within)

    def close(self) -> None:
        """Remove everything. You may use the cache again."""
        with self._turn:
            self._threads.clear()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def _reset_after_fork(self) -> None:
        """In the child of a fork, whose threads begin empty."""
        self._turn = threading.Lock()

    def _got(self, thread_key: bytes, asked: CacheRequest, now: float, ttl: float) -> Got:
        held = self._threads.get(thread_key)
        if held is not None and (held.until <= now or held.epoch < asked.epoch):
            held = None
        if held is None:
            self._sweep(now)
            held = _CachedThread(asked.epoch, now + ttl)
            self._threads.set((thread_key, held, 0))
        entries = {key: held.entries[key] for key in asked.keys if key in held.entries}
        return Got(held.token if held.epoch == asked.epoch else b"", entries)

    def _fill(self, thread_key: bytes, held: _CachedThread, entries: Mapping[bytes, bytes]) -> None:
        for key, data in entries.items():
            if _OVERHEAD + held.size + _weight(data) <= self._threads.capacity:
                held.add(key, data)
        self._threads.set((thread_key, held, held.size))

    def _sweep(self, now: float) -> None:
        """Remove the two least recently read threads if they have expired.

        This runs for each new thread, so expired threads disappear faster than new ones appear.
        """
        for thread_key, held in self._threads.oldest(2):
            if held.until <= now:
                self._threads.forget(thread_key)


def open_url(url: str) -> MemoryCache:
    """Return the cache for `memory:`, or `memory:?max_bytes=100000000`."""
    path, _, query = url.removeprefix("memory:").partition("?")
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    size = parameters.pop("max_bytes", str(MEMORY_BYTES))
    if path not in ("", "//") or parameters or not size.isdecimal():
        raise ConfigError("a cache in memory is 'memory:', or 'memory:?max_bytes=100000000'")
    return MemoryCache(max_bytes=int(size))
