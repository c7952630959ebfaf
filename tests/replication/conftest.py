"""Fixtures of the replication tests."""

import pytest

from replication.lines import Database


@pytest.fixture
def databases() -> tuple[Database, Database]:
    """Two databases, for a pair."""
    return Database(), Database()
