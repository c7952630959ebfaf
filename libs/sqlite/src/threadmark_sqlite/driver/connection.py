"""Opening SQLite connections, running programs on them, and what their errors mean."""

import os
import sqlite3
import time
from contextlib import closing
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from threadmark.errors import CorruptDataError, StoreError, ThreadmarkError
from threadmark.program import Many, Query, Step, Transaction, play
from threadmark_sqlite import sql
from threadmark_sqlite.migrations import is_current, is_made, migrate


class Settings(NamedTuple):
    """Which file, and how it is to be used."""

    path: str
    durability: str
    timeout: float
    """Seconds to wait for a lock that another process holds."""

    def __str__(self) -> str:
        return f"SQLite database {self.path!r}"


plain_text = methodcaller("decode", "utf-8", "surrogateescape")
"""How text columns are read: damaged text must reach the row's check, which names its place, and not fail before."""


class NotThereError(Exception):
    """There is no file or there are no tables, and the transaction makes none."""


def connect(settings: Settings, *, makes: bool = True) -> sqlite3.Connection:
    """A connection to the file, which is brought to the current format if need be."""
    if not makes and _could_be_made(Path(settings.path)):
        raise NotThereError
    try:
        connection = sqlite3.connect(
            settings.path, timeout=settings.timeout, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise translated(error, settings) from error
    try:
        if not makes:
            expect_made(connection, settings)
        prepare(connection, settings)
    except BaseException:
        connection.close()
        raise
    return connection


def read_unchanging(settings: Settings, transaction: Transaction) -> Any:
    """Read a file that nobody is writing to and that this process may not write to, its folder included.

    SQLite opens a file with a log only where it may put its index of the log beside it, unless it is told that the
    file does not change. It is told so for one transaction: the next one may find that somebody writes again.
    """
    location = f"file:{quote(settings.path)}?immutable=1"
    with closing(sqlite3.connect(location, uri=True, isolation_level=None, check_same_thread=False)) as connection:
        connection.text_factory = plain_text
        if not play(is_current(str(settings)), partial(execute, connection)):
            raise StoreError(f"{settings} is empty or of an earlier release, and may not be written to")
        return transact(connection, transaction)


def is_unchanging(settings: Settings, error: StoreError) -> bool:
    """Whether opening the file failed with `error` because it may only be read, and nobody has it open."""
    code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
    refused = code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return refused and Path(settings.path).exists() and not Path(f"{settings.path}-wal").exists()


def habits(settings: Settings) -> tuple[str, ...]:
    """What every connection is told before its first transaction."""
    return (
        sql.BUSY_TIMEOUT.format(milliseconds=round(settings.timeout * 1000)),
        sql.SYNCHRONOUS[settings.durability],
        sql.WAL_SIZE_LIMIT,
    )


def expect_made(connection: sqlite3.Connection, settings: Settings) -> None:
    """Refuse a database without our tables, and leave it as it is."""
    try:
        made = play(is_made(str(settings)), partial(execute, connection))
    except sqlite3.Error as error:
        raise translated(error, settings) from error
    if not made:
        raise NotThereError


def prepare(connection: sqlite3.Connection, settings: Settings) -> None:
    """Set the connection up, and the database where it is new or of an earlier release."""
    connection.text_factory = plain_text
    try:
        for statement in habits(settings):
            connection.execute(statement)
        if not play(is_current(str(settings)), partial(execute, connection)):
            connection.execute(sql.INCREMENTAL_VACUUM)
            _use_log(connection, settings)
            transact(connection, Transaction(partial(migrate, str(settings)), writes=True))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise translated(error, settings) from error


def transact(connection: sqlite3.Connection, transaction: Transaction) -> Any:
    """Run a program in a transaction of its own."""
    try:
        connection.execute(sql.BEGIN_WRITE if transaction.writes else sql.BEGIN_READ)
        result = play(transaction.program(), partial(execute, connection))
        connection.execute(sql.COMMIT)
    except BaseException:
        if connection.in_transaction:  # asked here: to call a function of ours would be a place for an interrupt
            connection.execute(sql.ROLLBACK)
        raise
    return result


def end_transaction(connection: sqlite3.Connection) -> None:
    """Roll back what is open; it may be where an error or an interrupt struck while another one was dealt with."""
    if connection.in_transaction:
        connection.execute(sql.ROLLBACK)


def execute(connection: sqlite3.Connection, step: Step) -> Any:
    """Run one step; its rows."""
    try:
        if isinstance(step, Query):
            return _cursor(connection).execute(step.sql, step.params).fetchall()
        if isinstance(step, Many):
            if step.params:
                _cursor(connection).executemany(step.sql, step.params)
            return []
    except UnicodeDecodeError as error:
        # SQLite quotes damaged text in its message, and sqlite3 cannot read that.
        damage = sqlite3.DatabaseError("the database's own structures are damaged")
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage from error
    raise TypeError(f"the SQLite backend has no {type(step).__name__}")


def translated(error: Exception, settings: Settings) -> ThreadmarkError:
    """What an error of the database means to the user."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    # SQLite quotes damaged text in some messages, and sqlite3 cannot read that.
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError):
        return CorruptDataError(f"the file is damaged or is no SQLite database ({error})", str(settings))
    meaning = _MEANINGS[primary].format(timeout=settings.timeout) if primary in _MEANINGS else f": {error}"
    return StoreError(f"{settings}{meaning}")


_LOCKED = (
    " has been locked by somebody else for {timeout:g} s: end the transaction that holds it, or give a longer timeout"
)
_MEANINGS = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: " cannot grow: the disk (or the size that was allowed) is full",
    sqlite3.SQLITE_READONLY: " is read-only: nothing can be stored in it",
    sqlite3.SQLITE_CANTOPEN: " cannot be opened: check that its folder exists and may be written",
}


def _could_be_made(path: Path) -> bool:
    """Whether connecting would make the file; where it would fail, it tells why."""
    return not path.exists() and os.access(path.parent, os.W_OK)


def _cursor(connection: sqlite3.Connection) -> sqlite3.Cursor:
    cursor = connection.cursor()
    cursor.row_factory = None  # a connection that a user gave may have one
    return cursor


def _use_log(connection: sqlite3.Connection, settings: Settings) -> None:
    """Switch a new file to a write-ahead log; processes that do so at once are told "locked" without any waiting."""
    deadline = time.monotonic() + settings.timeout
    while True:
        try:
            connection.execute(sql.WRITE_AHEAD_LOG)
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
