"""Fixtures of the tests of stores: a store in memory, one in a SQLite file, and the servers for others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from threadmark.memory import MemorySaver
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store


@pytest.fixture
def memory_store() -> Iterator[Store]:
    """A store in memory."""
    with MemorySaver() as saver:
        yield Store(saver)


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    """A store in a SQLite file."""
    with SqliteSaver(tmp_path / "items.db", durability="normal") as saver:
        yield Store(saver)
