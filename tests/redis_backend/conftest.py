"""Fixtures of the Redis tests: servers for all, and a prefix for each."""

import itertools
from collections.abc import Iterator

import pytest

from redis_backend import processes
from redis_backend.processes import RedisProcess
from redis_backend.proxy import Proxy

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
