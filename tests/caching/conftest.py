"""Fixtures of the tests of caches: one in memory and one on Redis."""

import itertools
from collections.abc import Iterator

import pytest

from caching.held import Held, InMemory, OnRedis
from redis_backend import processes

_numbers = itertools.count()


@pytest.fixture(params=["memory", "redis"])
def held(request: pytest.FixtureRequest) -> Iterator[Held]:
    """A cache of the test's own, of either kind."""
    if request.param == "memory":
        yield InMemory()
    else:
        found = OnRedis(processes.shared(), f"held{next(_numbers)}:")
        yield found
        found.cache.close()
