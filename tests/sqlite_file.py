"""A look at a SQLite file, past the saver."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def looking_at(path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to a database file, closed afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection
