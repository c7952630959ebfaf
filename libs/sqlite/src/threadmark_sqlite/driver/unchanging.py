"""Reading a file that has no log and no writers, without creating files next to it."""

import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from threadmark.backends import StoreError, ThreadmarkError, Transaction
from threadmark.bounded_sqlite import BoundedConnection
from threadmark_sqlite.driver.connection import (
    NOT_OURS,
    NotThereError,
    Settings,
    expect_file,
    expect_made,
    location,
    transact,
)
from threadmark_sqlite.driver.playing import plain_text, played
from threadmark_sqlite.migrations import is_current
from threadmark_sqlite.sql import connections


class UnsettledError(Exception):
    """Another program wrote to the file while it was read as an unchanging one."""


def read_unchanging(settings: Settings, transaction: Transaction[Any]) -> Any:
    """Read a file that has no log and no writers, without creating files next to it.

    SQLite opens a database with a log only if it can create its index of the log, unless it knows that the file does
    not change. It knows so for one transaction. If the file has changed by the end, it is run again. Raises
    UnsettledError if the file changes every time.
    """
    expect_file(settings, creates_tables=transaction.creates_tables)
    for _ in range(_LOOKS):
        before = _seen(settings)
        if before is None:
            time.sleep(_TICK)
            continue
        try:
            result = _read_once(settings, transaction)
        except (sqlite3.Error, ThreadmarkError, NotThereError):
            if _seen(settings) == before:
                raise
        else:
            if _seen(settings) == before:
                return result
    raise UnsettledError


def is_whole(path: str) -> bool:
    """Return whether the file has all data by itself: its log and its journal are empty or missing."""
    real = Path(path).resolve()  # they are next to the file, not next to a symbolic link
    return not any(_size(f"{real}{suffix}") for suffix in ("-wal", "-journal"))


def is_unchanging(settings: Settings, error: StoreError) -> bool:
    """Return whether `error` means that the file may only be read and no other process has it open."""
    code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
    refused = code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return refused and Path(settings.path).exists() and is_whole(settings.path)


def _read_once(settings: Settings, transaction: Transaction[Any]) -> Any:
    connect_once = partial(BoundedConnection, location(settings, unchanging=True), uri=True, isolation_level=None)
    with closing(connect_once(check_same_thread=False)) as connection:
        connection.bound(settings.path)
        connection.execute(connections.UNTRUSTED_SCHEMA)
        connection.text_factory = plain_text
        if not transaction.creates_tables:
            expect_made(connection, settings)
        if not played(connection, is_current(str(settings), writes=False)):
            raise StoreError(f"{settings}{NOT_OURS}")
        return transact(connection, transaction, settings)


_LOOKS = 5
_TICK = 0.03
"""Seconds in which a file system may give two changes of a file the same time."""


def _seen(settings: Settings) -> tuple[int, ...] | None:
    """Return a stamp that changes when the file is written, or None if a write might not change it yet."""
    try:
        look = Path(settings.path).stat()
    except OSError:
        return None
    if not is_whole(settings.path) or abs(time.time_ns() - look.st_mtime_ns) < _TICK * 1e9:
        return None
    return look.st_dev, look.st_ino, look.st_size, look.st_mtime_ns


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0
