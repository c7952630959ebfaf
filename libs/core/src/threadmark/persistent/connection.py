"""Connections to the SQLite file of a persistent dictionary, and the meaning of SQLite's errors.

A connection lives for one transaction: between two syncs nothing of SQLite is held, and nothing can get lost by a fork.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from threadmark.bounded_sqlite import BoundedConnection
from threadmark.errors import CorruptDataError, StoreError, ThreadmarkError, TransientStoreError
from threadmark.persistent import sql


class _Turn:
    """A thread that works on a file has the turn; a fork takes it while it forks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def before_fork(self) -> None:
        self.lock.acquire()

    def after_in_parent(self) -> None:
        with suppress(RuntimeError):  # an interrupt may have ended the wait for it
            self.lock.release()

    def after_in_child(self) -> None:
        self.lock = threading.RLock()


turn = _Turn()
"""A fork waits until no thread of this process is at work on a file of this package.

A child made in the middle of a transaction would have its half of it, and would undo it in the file, without any lock,
when it drops the connection.
"""

if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(
        before=turn.before_fork, after_in_parent=turn.after_in_parent, after_in_child=turn.after_in_child
    )


T = TypeVar("T")

_WRITING = (sql.DURABLE, sql.FULL_SYNC, sql.OVERWRITE_DELETED)

_TIMEOUT = 30.0
"""Seconds to wait for another reader or writer of the file."""

Mode = str
"""How a file is opened, as SQLite's URIs say it."""
CREATE, WRITE, READ, UNCHANGING = "mode=rwc", "mode=rw", "mode=ro", "mode=ro&immutable=1"


def connect(path: str, mode: Mode, timeout: float = _TIMEOUT) -> sqlite3.Connection:
    """Open the file. Returns the connection, which begins no transaction by itself."""
    connection = BoundedConnection(
        f"file:{quote(os.fsencode(path), safe='')}?{mode}",  # what follows two slashes would be a server
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.bound(path)
    connection.text_factory = bytes  # a blob that damage made a text is to fail by its digest
    return connection


def transact(path: str, mode: Mode, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> T:
    """Call `work` in a transaction, and commit what it has changed. Returns its result.

    An error of it, or an interrupt, leaves the file as it was: closing a connection rolls back.
    """
    statements = (*_WRITING, sql.BEGIN_WRITE) if writes else (sql.BEGIN_READ,)
    try:
        with turn.lock:
            connection = connect(path, mode)
            try:
                if writes and Path(path).stat().st_size == 0:
                    connection.execute(sql.SHRINK)
                for statement in statements:
                    connection.execute(statement)
                result = work(connection)
                connection.execute(sql.COMMIT)
                return result
            finally:
                connection.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise meaning(error, path) from error


def look(path: str, work: Callable[[sqlite3.Connection], T]) -> T:
    """Call `work` on the file as it is now, changing nothing in it or next to it. Raises errors of SQLite."""
    with turn.lock:
        connection = connect(path, UNCHANGING)
        try:
            return work(connection)
        finally:
            connection.close()


def meaning(error: Exception, path: str) -> ThreadmarkError:
    """Return the user's error for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    # SQLite quotes damaged text in some messages, and sqlite3 cannot read that. Our statements are right, so if one
    # is an error by itself, a table or a column is missing.
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR) or isinstance(
        error, UnicodeDecodeError
    ):
        return CorruptDataError(f"the file is damaged, or was never a dictionary ({error})", repr(path))
    kind = TransientStoreError if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else StoreError
    return kind(f"{path!r} {_MEANINGS.get(primary, 'could not be read or stored')} ({error})")


_BUSY = f"has been locked by another process for {_TIMEOUT:g} s: try again"
_MEANINGS: dict[int | None, str] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; nothing was stored, and the next sync stores everything",
    sqlite3.SQLITE_READONLY: "may not be written to, or its folder may not, where a process was interrupted that stored"
    " in it: open it once where that is allowed",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that its folder exists and may be written to",
}
