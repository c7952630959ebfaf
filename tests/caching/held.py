"""Caches with a way in for tests, which look at their contents and change them; and threads that fill them."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from redis_backend.processes import RedisProcess
from threadmark import MemoryCache, Saver
from threadmark.caching import Cache
from threadmark_conformance.engine import at, checkpoint
from threadmark_redis import RedisCache

PATIENCE = 10.0
"""Seconds to wait for a cache that is there. A busy machine is no failure."""

Entry = tuple[bytes, bytes]
"""A place and a key."""


class Held(Protocol):
    """A cache and its entries."""

    @property
    def cache(self) -> Cache:
        """The cache itself."""

    def entries(self) -> dict[Entry, bytes]:
        """Return all entries."""

    def write(self, entry: Entry, data: bytes) -> None:
        """Put other bytes in the place of an entry, behind the cache's back."""


class InMemory:
    """A memory cache."""

    def __init__(self) -> None:
        self.cache = MemoryCache()

    def entries(self) -> dict[Entry, bytes]:
        """Return all entries."""
        places = self.cache._threads.oldest(len(self.cache._threads))
        return {(place, key): data for place, held in places for key, data in held.entries.items()}

    def write(self, entry: Entry, data: bytes) -> None:
        """Put other bytes in the place of an entry, behind the cache's back."""
        place, key = entry
        self.cache._threads.get(place).entries[key] = data


class OnRedis:
    """A cache on a server."""

    def __init__(self, server: RedisProcess, prefix: str) -> None:
        self._server = server
        self._prefix = prefix.encode()
        self.cache = RedisCache(server.url, prefix=prefix)

    def entries(self) -> dict[Entry, bytes]:
        """Return all entries."""
        found: dict[Entry, bytes] = {}
        for name in self._server.command("KEYS", self._prefix + b"*"):
            fields: Any = self._server.client.hgetall(name)  # redis-py types it for text
            found.update({(name, key): data for key, data in fields.items() if len(key) > 1})
        return found

    def write(self, entry: Entry, data: bytes) -> None:
        """Put other bytes in the place of an entry, behind the cache's back."""
        self._server.client.hset(entry[0], entry[1], data)


def text(seed: int, length: int = 6000) -> str:
    """Return text that is stored as segments, and resembles no other."""
    return "".join(random.Random(seed).choices("abcdefghijklmnop ", k=length))


def put(saver: Saver, thread: str, number: int, parent: Any = None) -> Any:
    """Put the checkpoint with this number, whose value resembles the one before it."""
    value = [text(seed) for seed in range(number + 1)]
    parent = at(thread) if parent is None else parent
    versions = {"messages": number + 1}
    return saver.put(parent, checkpoint({"messages": value}, versions), {"n": number}, versions)


def chat(saver: Saver, thread: str, count: int = 3) -> Any:
    """Put so many checkpoints. Returns the config of the last one."""
    config = None
    for number in range(count):
        config = put(saver, thread, number, config)
    return config


def state(saver: Saver, thread: str) -> Any:
    """Return the newest state of a thread, None if there is none."""
    found = saver.get(at(thread))
    return None if found is None else found["channel_values"]["messages"]


def expected(count: int = 3) -> list[str]:
    """Return the contents of a chat of so many checkpoints."""
    return [text(seed) for seed in range(count)]


def stored_segments(base: Saver, thread: str) -> dict[bytes, bytes]:
    """Return the segments themselves of a thread in memory."""
    driver: Any = base._driver
    segments: dict[bytes, bytes] = driver._tables.threads[thread].segments
    return segments


@contextmanager
def before_step(saver: Saver, number: int, act: Callable[[], None]) -> Iterator[list[int]]:
    """Within it, something is done before the step with this number of a cached saver's, the last included.

    Gives a list with the number of steps that there were.
    """
    driver: Any = saver._driver
    answer, taken = driver._answer, [0]

    def answer_then(asked: Any) -> Any:
        if taken[0] == number:
            act()
        taken[0] += 1
        return answer(asked)

    driver._answer = answer_then
    try:
        yield taken
    finally:
        driver._answer = answer
