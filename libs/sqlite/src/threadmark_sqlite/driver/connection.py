"""Opening SQLite connections, and translating their errors."""

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from threadmark.backends import (
    CorruptDataError,
    ReadOnlyError,
    StoreError,
    ThreadmarkError,
    Transaction,
    TransientStoreError,
)
from threadmark.bounded_sqlite import BoundedConnection
from threadmark_sqlite import migrations
from threadmark_sqlite.driver.log import log
from threadmark_sqlite.driver.playing import committed, end_transaction, played
from threadmark_sqlite.driver.waiting import busy_timeout
from threadmark_sqlite.migrations import is_current, is_made, migrate
from threadmark_sqlite.sql import connections

MEMORY = ":memory:"


class Settings(NamedTuple):
    """The file of a saver and its options."""

    path: str
    durability: str
    timeout: float
    """Seconds to wait for a lock that another process holds."""
    read_only: bool = False
    """Whether nothing may be written, not even if the file system allows it."""
    slow: float = math.inf
    """Seconds from which a transaction is logged as slow."""

    def __str__(self) -> str:
        return f"SQLite database {self.path!r}"


class NotThereError(Exception):
    """The file or its tables do not exist, and the transaction does not create them."""


def path_in(files: Iterable[Sequence[Any]]) -> str:
    """Return the path of a connection's main database, an empty string if it is in memory."""
    path = next((path for _, name, path in files if _text(name) == "main"), "")
    return _text(path or "")


def reads_only(setting: Iterable[Sequence[Any]], plan: Iterable[Sequence[Any]]) -> bool:
    """Return whether a connection is read-only, by its setting or by the plan that SQLite makes for a write."""
    ((query_only,),) = setting
    writes = [bool(write) for _, step, number, write, *_ in plan if (_text(step), number) == ("Transaction", 0)]
    return bool(query_only) or writes == [False]


def location(settings: Settings, *, unchanging: bool = False) -> str:
    """Return the file as a URI, with which SQLite never creates it."""
    how = "mode=ro&immutable=1" if unchanging else "mode=ro" if settings.read_only else "mode=rw"
    return f"file:{quote(os.fsencode(settings.path), safe='')}?{how}"  # what follows two slashes would be a server


def for_reading(settings: Settings) -> Settings:
    """Return the settings to read with. A file without write permission is opened read-only."""
    exists = os.path.exists(settings.path)  # noqa: PTH110 - unlike Path, it takes a name that is too long
    protected = exists and not os.access(settings.path, os.W_OK)  # it may be made in between
    return settings._replace(read_only=True) if protected else settings


def connect(settings: Settings, expect_same: Callable[[], None], *, creates_tables: bool = True) -> sqlite3.Connection:
    """Open the file, and update it to the current format if that is needed and allowed. Returns the connection.

    `expect_same` is called before SQLite opens the log. It raises if another file has been opened.
    """
    expect_file(settings, creates_tables=creates_tables)
    try:
        connection = sqlite3.connect(
            location(settings),
            uri=True,
            timeout=settings.timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=BoundedConnection,
        )
    except sqlite3.Error as error:
        raise to_threadmark_error(error, settings) from error
    try:
        connection.bound(settings.path)
        expect_same()
        if not creates_tables:
            expect_made(connection, settings)
        prepare(connection, settings)
    except BaseException:
        connection.close()
        raise
    return connection


def expect_file(settings: Settings, *, creates_tables: bool) -> None:
    """Raise if the file cannot be used with these settings, or if opening would create it and must not."""
    path = Path(settings.path)
    if path.is_dir():
        raise StoreError(f"{settings} cannot be opened: it is a folder")
    if path.exists():
        if not settings.read_only and not os.access(path, os.W_OK):
            raise ReadOnlyError(f"{settings}{READ_ONLY}")
    elif not creates_tables and (settings.read_only or os.access(path.parent, os.W_OK)):
        raise NotThereError
    elif settings.read_only:
        raise StoreError(f"{settings} does not exist, and a read-only saver does not create it")


def connection_pragmas(settings: Settings) -> tuple[str, ...]:
    """Return the pragmas that every connection runs before its first transaction."""
    return (
        busy_timeout(settings.timeout),
        *connections.DURABILITY[settings.durability],
        connections.WAL_SIZE_LIMIT,
        connections.SECURE_DELETE,
        connections.UNTRUSTED_SCHEMA,
    )


def expect_made(connection: sqlite3.Connection, settings: Settings) -> None:
    """Raise NotThereError if the database has none of Threadmark's tables."""
    try:
        made = played(connection, is_made(str(settings)))
    except sqlite3.Error as error:
        raise to_threadmark_error(error, settings) from error
    if not made:
        raise NotThereError


def prepare(connection: sqlite3.Connection, settings: Settings) -> None:
    """Set up the connection, and the database if it is new or of an earlier release."""
    try:
        for statement in connection_pragmas(settings):
            connection.execute(statement)
        if not played(connection, is_current(str(settings), writes=not settings.read_only)):
            if settings.read_only:
                raise StoreError(f"{settings}{NOT_OURS}")
            connection.execute(connections.INCREMENTAL_VACUUM)
            _use_log(connection, settings)
            begun = time.monotonic()
            found = transact(connection, Transaction(migrate, (str(settings),), writes=True), settings)
            log.note_migration(settings, found, migrations.CURRENT, begun)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise to_threadmark_error(error, settings) from error


def transact(connection: sqlite3.Connection, transaction: Transaction[Any], settings: Settings) -> Any:
    """Run a program in its own transaction, and log it if it is slow. Returns the program's result."""
    begun = time.monotonic()
    result = committed(connection, transaction)
    if (seconds := time.monotonic() - begun) >= settings.slow:
        log.note_slow(settings, seconds, transaction)
    return result


def give_space_back(connection: sqlite3.Connection) -> bool:
    """Return free pages to the file system, and empty the log, which may still have removed data.

    Returns whether that was done. A reader or another process may prevent it: then the next transaction tries to empty
    the log again, and the next removal to return the pages.
    """
    try:
        # As a script, because `execute` stops after the first page: that step returns no row to go on for.
        connection.executescript(connections.GIVE_SPACE_BACK)
        ((busy, *_),) = connection.execute(connections.EMPTY_LOG).fetchall()
    except sqlite3.OperationalError:
        end_transaction(connection)
        return False
    return not busy


def empty_log(connection: sqlite3.Connection) -> bool:
    """Copy the log into the file, as far as no other connection prevents that. It never waits for one.

    Returns whether the log is empty.
    """
    end_transaction(connection)
    connection.execute(busy_timeout(0))
    ((busy, *_),) = connection.execute(connections.EMPTY_LOG).fetchall()
    return not busy


def try_to_empty_log(connection: sqlite3.Connection) -> bool:
    """Like `empty_log`, without raising if SQLite cannot."""
    try:
        return empty_log(connection)
    except sqlite3.OperationalError:
        return False


def to_threadmark_error(error: Exception, settings: Settings) -> ThreadmarkError:
    """Return the Threadmark error for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    # SQLite quotes damaged text in some messages, and sqlite3 cannot read that.
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError):
        return CorruptDataError(f"the file is damaged or is not a SQLite database ({error})", str(settings))
    if primary == sqlite3.SQLITE_INTERRUPT:
        return CorruptDataError("reading it takes more steps than its size explains: it is damaged", str(settings))
    meaning = _MEANINGS[primary].format(timeout=settings.timeout) if primary in _MEANINGS else f": {error}"
    if primary == sqlite3.SQLITE_READONLY:
        return ReadOnlyError(f"{settings}{meaning}")
    return (TransientStoreError if primary in _PASSING else StoreError)(f"{settings}{meaning}")


def meant(error: BaseException, settings: Settings) -> BaseException:
    """Return the error that a waiting caller gets for an error."""
    if not isinstance(error, sqlite3.Error):
        return error
    meaning = to_threadmark_error(error, settings)
    meaning.__cause__ = error
    return meaning


READ_ONLY = " is read-only: nothing can be stored in it; give the saver a path, or a connection, that may be written to"
NOT_OURS = " is read-only, and has no tables of this release to read: let a saver that may write open it first"
LOCKED = " has been locked by another connection for {timeout:g} s: end its transaction, or give a longer timeout"
_PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
"""Codes of failures that another connection's lock causes."""
_MEANINGS = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: " cannot grow: the disk (or the size that was allowed) is full",
    sqlite3.SQLITE_IOERR: " cannot be read or written: check that its disk works, and has room for it and its log",
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: (
        " cannot be opened: check that its folder exists, who may read and write them, and how many files may be open"
    ),
}


def _text(column: str | bytes) -> str:
    """Return a text column as str, whatever text factory the connection has."""
    return column if isinstance(column, str) else os.fsdecode(column)


def _use_log(connection: sqlite3.Connection, settings: Settings) -> None:
    """Switch a new file to a write-ahead log.

    SQLite does not wait here: it answers "locked" at once if another process is switching the file, too.
    """
    deadline = time.monotonic() + settings.timeout
    while True:
        try:
            connection.execute(connections.WRITE_AHEAD_LOG)
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
