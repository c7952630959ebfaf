"""Redis as the suite sees it: a single server, a cluster and a master behind Sentinels, by URL and from clients."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from redis import asyncio as aioredis

from redis_backend import cluster, processes, sentinel
from threadmark import Saver
from threadmark.sealing import Keyring
from threadmark_conformance import Backend, Opener
from threadmark_redis import RedisSaver

_numbers = itertools.count()

OPTIONS: dict[str, Any] = {"durability": "memory", "pool_size": 4}
"""Of savers on the servers that all tests share, which write nothing to disk."""


def new_prefix() -> str:
    """A prefix that no other case has, so that it finds nothing and leaves the others alone."""
    return f"case{next(_numbers)}:"


def _by_url(url: Callable[[], str]) -> Backend:
    @contextmanager
    def backend(_: Path) -> Iterator[Opener]:
        prefix = new_prefix()
        yield lambda **options: RedisSaver(url(), prefix=prefix, **OPTIONS, **options)

    return backend


@contextmanager
def sealed(_: Path) -> Iterator[Opener]:
    """Values that the server cannot look into."""
    prefix = new_prefix()
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    yield lambda **options: RedisSaver(processes.shared().url, prefix=prefix, keyring=keyring, **OPTIONS, **options)


@contextmanager
def from_client(_: Path) -> Iterator[Opener]:
    """A client that the user made for texts."""
    prefix = new_prefix()
    with redis.Redis(port=processes.shared().port, decode_responses=True) as client:

        def open_saver(**options: Any) -> Saver:
            return RedisSaver(client, prefix=prefix, **OPTIONS, **options)

        yield open_saver


@contextmanager
def from_asyncio_client(_: Path) -> Iterator[Opener]:
    """A client for asyncio, for each saver."""
    prefix = new_prefix()

    def open_saver(**options: Any) -> Saver:
        client = aioredis.Redis(port=processes.shared().port, decode_responses=True)
        return RedisSaver(client, prefix=prefix, **OPTIONS, **options)

    yield open_saver


BACKENDS: dict[str, Backend] = {
    "single": _by_url(lambda: processes.shared().url),
    "cluster": _by_url(lambda: cluster.shared().url),
    "sentinel": _by_url(lambda: sentinel.shared().url),
    "sealed": sealed,
    "client": from_client,
    "asyncio client": from_asyncio_client,
}
