"""Reading a SQLite file without a change to it, and without leaving a file next to it."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from threadmark.bounded_sqlite import BoundedConnection, expect_plain_tables
from threadmark_cli import sql

T = TypeVar("T")

LOGS = ("-wal", "-journal")
"""The ends of the names of the files next to a database that SQLite reads as a part of it."""

_LOOKS = 5
_TICK = 0.03
"""Seconds in which a file system may give two changes of a file the same time."""

_TIMEOUT = 10.0
"""Seconds to wait for a lock."""


def read_file(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Run `work` on a connection that cannot write, in a transaction. It may be run again from the beginning.

    Even a read-only connection leaves files for the log of a database that has one. If the log is empty, SQLite is
    opened as for a file that never changes, and needs none; after a write by others, the read is repeated. A log that
    holds something has its files already.
    """
    for _ in range(_LOOKS):
        before = _seen(path)
        if before is None:
            break
        try:
            result = _once(path, work, "mode=ro&immutable=1")
        except sqlite3.Error:
            if _seen(path) == before:
                raise
        else:
            if _seen(path) == before:
                return result
    return _once(path, work, "mode=ro")


def _once(path: Path, work: Callable[[sqlite3.Connection], T], how: str) -> T:
    uri = f"file:{quote(os.fsencode(path.absolute()), safe='')}?{how}"  # what follows two slashes would be a server
    with closing(BoundedConnection(uri, uri=True, isolation_level=None, timeout=_TIMEOUT)) as connection:
        connection.bound(str(path))
        connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
        connection.row_factory = sqlite3.Row
        connection.execute(sql.BEGIN_READ)
        expect_plain_tables(connection, ("checkpoints", "writes"), str(path))
        return work(connection)


def _seen(path: Path) -> tuple[int, ...] | None:
    """Return a stamp that changes when the file is written, or None if there is a log or a journal to read."""
    path = path.resolve()  # they are next to the file, not next to a symbolic link
    if any(_size(f"{path}{suffix}") for suffix in LOGS):
        return None
    look = path.stat()
    if abs(time.time_ns() - look.st_mtime_ns) < _TICK * 1e9:
        time.sleep(_TICK)  # or the next write could have the same time
    return look.st_dev, look.st_ino, look.st_size, look.st_mtime_ns


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
