"""Redis as the suite sees it: a single server, a cluster and a master behind Sentinels, by URL and from clients."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import redis
from redis import asyncio as aioredis

from redis_backend import cluster, processes, sentinel
from redis_backend.processes import RedisProcess
from threadmark import Saver
from threadmark.sealing import Keyring
from threadmark_conformance import Backend, Opener
from threadmark_redis import RedisSaver

_numbers = itertools.count()

OPTIONS: dict[str, Any] = {"durability": "memory", "pool_size": 4}
"""The options of savers on the servers that all tests share, which write nothing to disk."""


@contextmanager
def _prefix(masters: Callable[[], Sequence[RedisProcess]]) -> Iterator[str]:
    """A prefix that no other case has, so that it finds nothing and leaves the others alone.

    Its keys go at the end: a verify of all threads looks through all keys of the servers.
    """
    yield f"case{next(_numbers)}:"
    for master in masters():
        master.command("FLUSHALL")


def _on_single() -> AbstractContextManager[str]:
    return _prefix(lambda: [processes.shared()])


def _by_url(url: Callable[[], str], masters: Callable[[], Sequence[RedisProcess]]) -> Backend:
    @contextmanager
    def backend(_: Path) -> Iterator[Opener]:
        with _prefix(masters) as prefix:
            yield lambda **options: RedisSaver(url(), prefix=prefix, **OPTIONS, **options)

    return backend


@contextmanager
def sealed(_: Path) -> Iterator[Opener]:
    """Values that the server cannot look into."""
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    with _on_single() as prefix:
        yield lambda **options: RedisSaver(processes.shared().url, prefix=prefix, keyring=keyring, **OPTIONS, **options)


@contextmanager
def from_client(_: Path) -> Iterator[Opener]:
    """A client that the user made for texts."""
    with _on_single() as prefix, redis.Redis(port=processes.shared().port, decode_responses=True) as client:
        yield lambda **options: RedisSaver(client, prefix=prefix, **OPTIONS, **options)


@contextmanager
def from_asyncio_client(_: Path) -> Iterator[Opener]:
    """A client for asyncio, for each saver."""

    def open_saver(prefix: str, **options: Any) -> Saver:
        client = aioredis.Redis(port=processes.shared().port, decode_responses=True)
        return RedisSaver(client, prefix=prefix, **OPTIONS, **options)

    with _on_single() as prefix:
        yield partial(open_saver, prefix)


BACKENDS: dict[str, Backend] = {
    "single": _by_url(lambda: processes.shared().url, lambda: [processes.shared()]),
    "cluster": _by_url(lambda: cluster.shared().url, lambda: cluster.shared().masters),
    "sentinel": _by_url(lambda: sentinel.shared().url, lambda: [sentinel.shared().master]),
    "sealed": sealed,
    "client": from_client,
    "asyncio client": from_asyncio_client,
}
