"""The identities of a database's files, and the removal of a log whose database was replaced."""

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from threadmark.backends import StoreError, counterpart
from threadmark_sqlite.driver.connection import Settings
from threadmark_sqlite.sql import connections

if sys.platform != "win32":
    import fcntl

_PAUSE = 0.01
_TIMES_COUNT = sys.platform != "win32"
"""Whether a write changes a file's time at once. On Windows it may change at any later moment."""


class FileId(NamedTuple):
    """Identifies a file for as long as it is open somewhere."""

    device: int
    inode: int


class Files(NamedTuple):
    """The files of the open database."""

    path: str
    """The path of the database when it was opened, symbolic links followed. Its log and index are next to it."""
    log_path: str
    database: FileId
    log: FileId | None
    wal_index: FileId | None


def status_of(path: str) -> tuple[int, int, int, int]:
    """Return the device, the inode, the time of the last write (in nanoseconds; 0 on Windows) and the size."""
    seen = os.stat(path)  # noqa: PTH116 - a Path takes longer, and this is done before every transaction
    return seen.st_dev, seen.st_ino, seen.st_mtime_ns if _TIMES_COUNT else 0, seen.st_size


def file_id(seen: os.stat_result) -> FileId:
    """Return the identity of a file from its status."""
    return FileId(seen.st_dev, seen.st_ino)


def id_of(path: str) -> FileId | None:
    """Return the identity of the file at a path, or None if there is none or it cannot be reached."""
    try:
        return file_id(os.stat(path))  # noqa: PTH116 - a Path takes longer, and this is done after every commit
    except OSError:
        return None


@counterpart("files.Looks")
class Looks:
    """Cheap checks whether the files of an open database have changed.

    If they have, `Watch` finds out why.
    """

    def __init__(self, path: str, database: FileId, log_path: str) -> None:
        self._path, self._database, self._log_path = path, database, log_path
        self.log: FileId | None = None
        """Its log, once that is known."""
        self.stamp: tuple[int, int] | None = None
        """The time of the last write and the size of the file, after this process's own writes."""

    def is_there(self) -> bool:
        """Return whether the database is at its path."""
        return self._stamp_at(self._path, self._database) is not None

    def is_untouched(self) -> bool:
        """Return whether the database is at its path and has its stamp."""
        return self.stamp is not None and self._stamp_at(self._path, self._database) == self.stamp

    def is_kept(self) -> bool:
        """Return whether the database and its log are at their paths. Records a new stamp if the database is."""
        stamp = self._stamp_at(self._path, self._database)
        if stamp is not None:
            self.stamp = stamp
        return stamp is not None and (self.log is None or self._stamp_at(self._log_path, self.log) is not None)

    @staticmethod
    def _stamp_at(path: str, known: FileId) -> tuple[int, int] | None:
        try:
            device, inode, modified, size = status_of(path)
        except OSError:
            return None
        return (modified, size) if (device, inode) == known else None


def take_log_away(settings: Settings, spare: Callable[[], sqlite3.Connection | None], files: Files) -> None:
    """Empty the log into the file that it belongs to, on a connection that is or becomes free, and delete it.

    Another process that still has that file open may add to its log until it notices that the file was replaced, so
    another database must not find the log. Processes that notice at the same time take turns; each may prevent the
    other.
    """
    deadline = time.monotonic() + settings.timeout
    problem = StoreError(f"{settings}{_LOG_STAYS.format(log=files.log_path)}")
    if settings.read_only:
        raise problem
    while id_of(files.log_path) == files.log and _has_no_other_index(files):
        try:
            with in_folder(files.path, alone=True):
                if (connection := spare()) is not None and _empty_log(connection):
                    # The index first: others wait until the log is gone, and must not open the new file with this one.
                    _remove(f"{files.path}-shm", files.wal_index)
                    _remove(files.log_path, files.log)
                    return
        except (sqlite3.Error, OSError) as error:
            raise problem from error
        if time.monotonic() > deadline:
            raise problem
        time.sleep(_PAUSE)


_LOG_STAYS = (
    " was replaced while it was open, and {log!r}, the log of the file that was there before, cannot be emptied while "
    "another program uses it: end that program, or delete the log"
)


def _has_no_other_index(files: Files) -> bool:
    """Return whether the log is not in use for the new file: a process may have been killed before it deleted it."""
    index = id_of(f"{files.path}-shm")
    return index is None or files.wal_index in (None, index)


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Copy the log into the file and truncate it. Returns False if another connection prevents that."""
    ((busy, *_),) = connection.execute(connections.EMPTY_LOG).fetchall()
    return not busy


def _remove(path: str, known: FileId | None) -> None:
    """Delete the file at the path if it is the known one, which belongs to no database any more."""
    if known is not None and id_of(path) == known:
        Path(path).unlink()


@contextmanager
def in_folder(path: str, *, alone: bool = False) -> Iterator[None]:
    """Exclude a process that deletes a log in this folder, which does so `alone`.

    Two files cannot be deleted at once, and a process that opened the new file in between would have one of them.
    """
    opened: list[int] = []
    try:
        # It may have been deleted with everything in it. Windows, which keeps open files, opens no folder.
        with suppress(OSError):
            opened.extend(map(os.open, [Path(path).parent], [os.O_RDONLY]))  # an interrupt cannot lose it
        if opened and sys.platform != "win32":
            with nullcontext() if alone else suppress(OSError):  # the file system may have no such locks
                fcntl.flock(opened[0], fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        any(map(os.close, opened))
