"""A claim on a file: only one object, of one process, has it open for writing.

It is the lock of a second, empty SQLite file beside it (`cache.db-lock`), held as long as the dictionary is open. The
system releases it when the process ends, however it ends, and no child of a fork has it. The dictionary's own file is
locked only while it is read or stored, so that others may read it meanwhile, and so that nothing depends on its lock
when another part of the program opens and closes it, which takes away a process's locks of a file.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from threadmark.errors import StoreError, TransientStoreError
from threadmark.persistent import sql
from threadmark.persistent.connection import CREATE, connect
from threadmark.persistent.forking import turn

_ATTEMPTS = 100
"""How often to begin again because whoever had the claim is just removing the file of the lock."""


class _Identity(NamedTuple):
    device: int
    inode: int
    changed: int


class Claim:
    """The right to write to a file."""

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}-lock")
        self._connection: sqlite3.Connection | None = None
        with turn.lock:
            try:
                self._take()
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                    raise TransientStoreError(
                        f"{path!r} is open for writing already, in this process or another: close it there first, "
                        "or open it with flag 'r' to read what was stored last"
                    ) from error
                raise StoreError(
                    f"{path!r} cannot be claimed for writing: its folder, or {self._path.name!r} in it, may not be "
                    f"written to ({error})"
                ) from error

    def release(self) -> None:
        """Let others have it. It may be called again."""
        with turn.lock:
            # First of all it is not ours any more: a file that is there after this one was removed is somebody else's.
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(OSError):  # some systems remove no file that is open: it stays, and does no harm
                    self._path.unlink()
                connection.close()

    def abandon(self) -> None:
        """In the child of a fork: the parent has it, and goes on with it."""
        _of_parents.append(self._connection)
        self._connection = None

    def _take(self) -> None:
        """Lock the file, if it is the one that the path leads to: a lock of a removed file is worth nothing."""
        for _ in range(_ATTEMPTS):
            before = _identity(self._path)
            connection = connect(str(self._path), CREATE, timeout=0)
            try:
                opened = _identity(self._path)
                connection.execute(sql.NO_JOURNAL_FILE)
                connection.execute(sql.BEGIN_ALONE)
                if before is not None and before == opened == _identity(self._path):
                    self._connection = connection
                    return
            finally:
                if self._connection is None:
                    connection.close()
        raise sqlite3.OperationalError("others open and close it all the time")


def _identity(path: Path) -> _Identity | None:
    """What tells the file at a path from another one that is put there."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return _Identity(found.st_dev, found.st_ino, found.st_ctime_ns)


_of_parents: list[sqlite3.Connection | None] = []
"""Connections that a parent uses. To close one here is of no use, and may wait for a lock that nobody releases."""
