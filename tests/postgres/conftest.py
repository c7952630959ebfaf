"""Fixtures of the Postgres tests: one server for all, a database for each."""

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from postgres.cluster import PostgresServer, shared
from postgres.proxy import Proxy
from threadmark_postgres import PostgresSaver
from threadmark_postgres.arrays import register_dumpers

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


@pytest.fixture
def proxy(cluster: PostgresServer) -> Iterator[Proxy]:
    """A proxy before the server."""
    with Proxy(cluster.port) as running:
        yield running


@pytest.fixture
def session(url: str) -> Iterator[psycopg.Connection]:
    """A session in a database that has its tables, whose arrays are ours."""
    with PostgresSaver(url) as saver:
        saver.setup()
    with psycopg.connect(url) as session:
        session.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # as the driver begins its transactions
        register_dumpers(session)
        yield session
