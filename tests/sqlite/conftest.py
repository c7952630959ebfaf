"""Fixtures of the tests that damage a database."""

import sqlite3
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    """A database in memory, of all tests of a file."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()
