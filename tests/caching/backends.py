"""Cached savers as the suite sees them: every saver in front of a separate one, with the cache of all."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import backends
from postgres.backends import BACKENDS as ON_POSTGRES
from redis_backend import processes
from threadmark import MemoryCache, cached
from threadmark.caching import Cache
from threadmark.types import CachedSaver
from threadmark_conformance import Backend, Opener
from threadmark_redis import RedisCache

_numbers = itertools.count()

PATIENCE = 10.0
"""Seconds to wait for a cache that is there. A busy machine is no failure."""


def _over(backend: Backend, cache: Cache) -> Backend:
    @contextmanager
    def opened(folder: Path) -> Iterator[Opener]:
        with backend(folder) as open_saver:

            def open_cached(**options: Any) -> CachedSaver:
                return cached(open_saver(**options), cache, wait=PATIENCE)

            yield open_cached

    return opened


@contextmanager
def _in_memory(folder: Path) -> Iterator[Opener]:
    with _over(backends.memory, MemoryCache())(folder) as opener:
        yield opener


@contextmanager
def _sealed(folder: Path) -> Iterator[Opener]:
    with _over(backends.sealed, MemoryCache())(folder) as opener:
        yield opener


@contextmanager
def _on_servers(folder: Path) -> Iterator[Opener]:
    cache = RedisCache(processes.shared().url, prefix=f"cache{next(_numbers)}:")
    try:
        with _over(ON_POSTGRES["url"], cache)(folder) as opener:
            yield opener
    finally:
        cache.close()


BACKENDS: dict[str, Backend] = {
    "memory": _in_memory,
    "memory sealed": _sealed,
    "postgres and redis": _on_servers,
}
