"""Fixtures of the Postgres tests: one server for all, a database for each."""

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from postgres.cluster import PostgresServer, shared

_numbers = itertools.count()


@pytest.fixture(scope="session")
def cluster() -> PostgresServer:
    return shared()


@pytest.fixture
def url(cluster: PostgresServer) -> Iterator[str]:
    """A new, empty database."""
    name = f"test_{next(_numbers)}"
    yield cluster.database(name)
    cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def tables(url: str) -> Iterator[psycopg.Connection]:
    """A connection to the database of `url`, to look at its tables or to damage them."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection
