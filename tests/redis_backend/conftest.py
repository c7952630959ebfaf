"""Fixtures of the Redis tests: servers for all, and a prefix for each."""

import itertools
from collections.abc import Iterator

import pytest

from redis_backend import processes
from redis_backend.backends import OPTIONS
from redis_backend.processes import RedisProcess
from redis_backend.proxy import Proxy
from threadmark_redis import RedisSaver

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> RedisProcess:
    """A single server, which holds the data of other tests, too."""
    return processes.shared()


@pytest.fixture
def prefix() -> Iterator[str]:
    """A separate prefix for all keys of the test.

    Its keys go at the end: an operation over all threads looks through all keys of a server.
    """
    yield f"test{next(_numbers)}:"
    processes.shared().command("FLUSHALL")


@pytest.fixture
def proxy(server: RedisProcess) -> Iterator[Proxy]:
    """A proxy before the single server."""
    with Proxy(server.port) as running:
        yield running


@pytest.fixture
def key(prefix: str) -> bytes:
    """A key of the test's own."""
    return f"{prefix}{{one}}".encode()


@pytest.fixture
def saver(server: RedisProcess, prefix: str) -> Iterator[RedisSaver]:
    """A saver on the single server."""
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as opened:
        yield opened
