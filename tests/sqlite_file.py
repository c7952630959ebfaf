"""A look at a SQLite file past the saver, and at the connection with which a saver writes."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from threadmark_sqlite.driver import waiting, writer


@contextmanager
def looking_at(path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to a database file, closed afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def see_writers(monkeypatch: pytest.MonkeyPatch, see: Callable[[sqlite3.Connection], object]) -> None:
    """Call a function with each connection that a saver begins to write with, whether it was opened for that or not."""

    def shorten_waits(connection: sqlite3.Connection, timeout: float) -> float:
        see(connection)
        return waiting.shorten_waits(connection, timeout)

    monkeypatch.setattr(writer, "shorten_waits", shorten_waits)
