"""A claim on a file: only one object, of one process, has it open for writing.

It is the lock of a second, empty SQLite file next to it (`cache.db-lock`), held as long as the dictionary is open. The
system releases it when the process ends, in whatever way, and no child of a fork has it. The dictionary's own file is
locked only while it is read or stored. So others may read it, and nothing depends on its lock, which a process loses
when another part of the program opens and closes the file.
"""

import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from threadmark.errors import StoreError, TransientStoreError
from threadmark.persistent import sql
from threadmark.persistent.connection import WRITE, connect, turn

_ATTEMPTS = 100
"""How often to begin again because the last holder of the claim is just removing the file of the lock."""


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
                raise self._refused(path, error) from error
            except OSError as error:
                raise self._refused(path, error) from error

    def release(self) -> None:
        """Let others have it. You may call this again."""
        with turn.lock:
            # First of all it is not ours any more: if a file is there after the removal, it belongs to another holder.
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(OSError):  # some systems remove no file that is open: it stays, and does no harm
                    self._path.unlink()
                connection.close()

    def _refused(self, path: str, error: Exception) -> StoreError:
        return StoreError(
            f"{path!r} cannot be claimed for writing: its folder, or {self._path.name!r} in it, may not be written to "
            f"({error})"
        )

    def abandon(self) -> None:
        """In the child of a fork: the claim belongs to the parent, which goes on with it."""
        _of_parents.append(self._connection)
        self._connection = None

    def _take(self) -> None:
        """Lock the file, if it is the one that the path leads to: a lock of a removed file is worth nothing."""
        for _ in range(_ATTEMPTS):
            before = self._made()
            try:
                connection = connect(str(self._path), WRITE, timeout=0)
            except sqlite3.OperationalError:
                if _identity(self._path) is None:
                    continue  # who had the claim has just removed it
                raise
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

    def _made(self) -> _Identity | None:
        """Make the file if it does not exist, and check that the path has its own file. Returns its identity.

        SQLite would follow a link: a dangling one to wherever it points, and a second name of the file to a lock that
        others do not look at. An existing file is not opened here, because closing it would release locks of it.
        """
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
        return _identity(self._path)


def _identity(path: Path) -> _Identity | None:
    """The identity of the file at a path; another file put there has another one. Raises StoreError for a link."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise StoreError(f"{str(path)!r} is a link, or has a second name: remove it, it is made again as a plain file")
    return _Identity(found.st_dev, found.st_ino, found.st_ctime_ns)


_of_parents: list[sqlite3.Connection | None] = []
"""Connections that a parent uses. Closing one here is of no use, and may wait for a lock that is never released."""
