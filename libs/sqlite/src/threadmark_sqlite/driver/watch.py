"""Checks whether the file at a database's path is still the one that is open.

Programs that have a file open can read and write it after it was deleted, moved away or replaced, and SQLite does not
report that: data stored then is lost with the last connection. So the device and the inode at the path are compared
with those of the open file before every transaction, and again after every commit, before it is answered.
docs/decisions/0010-sqlite-files.md describes the consequences and the limits.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any

from threadmark.backends import StoreError, TransientStoreError
from threadmark_sqlite.driver.connection import Settings, location
from threadmark_sqlite.driver.database_files import (
    FileId,
    Files,
    Looks,
    file_id,
    id_of,
    in_folder,
    status_of,
    take_log_away,
)
from threadmark_sqlite.driver.log_index import is_copied_in_part, open_id_of
from threadmark_sqlite.driver.unchanging import is_whole
from threadmark_sqlite.sql import connections

_ATTEMPTS = 100
_PAUSE = 0.01


class ReplacedError(Exception):
    """Another file is at the path. Open that one in place of this one."""


class _AnotherError(Exception):
    """Another file appeared at the path while one was opened."""


class Watch:
    """The files that the connections of one driver have open, and checks that they are still in their places."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._learning = threading.RLock()  # a signal handler may open a connection, too
        self._files: Files | None = None
        self.looks: Looks | None = None
        """The checks that suffice while files are unchanged. None before they are known, and after a refusal."""
        self._refusal: str | None = None
        """Why nothing is read or stored any more."""
        self._left = False
        self._overwritten = False
        self._version = 0
        """The last commit of other connections that the writer saw."""
        self._alone = True
        """Whether no other connection has committed since the writer opened its own."""

    def open(
        self, connect: Callable[[Callable[[], None]], sqlite3.Connection], *, creates_tables: bool = True
    ) -> sqlite3.Connection:
        """Open the file at the path, the same for all connections. Returns the connection.

        A connection does not tell which file it has opened. It is the file at the path if that one was there before and
        is there afterwards, so a new file is created first. `connect` gets a function that it calls before it opens the
        log: a file that appeared at the path in between must not be read with the log of the earlier one.
        """
        if self._files is not None:
            return self._open(connect, creates_tables=creates_tables)
        with in_folder(os.path.realpath(self._settings.path)):
            return self._open(connect, creates_tables=creates_tables)

    def _open(
        self, connect: Callable[[Callable[[], None]], sqlite3.Connection], *, creates_tables: bool
    ) -> sqlite3.Connection:
        for _ in range(_ATTEMPTS):
            self.expect_there()
            before = _look(self._settings)
            if before is None and creates_tables and self._files is None:
                with suppress(sqlite3.Error), closing(sqlite3.connect(self._settings.path)):
                    before = _look(self._settings)
            if before is not None and self._files is not None and file_id(before) != self._files.database:
                raise ReplacedError  # since the look above: closing the new file would copy the old log into it
            try:
                connection = connect(partial(self._expect_same, before))
            except _AnotherError:
                continue
            if before is not None and self._learn(file_id(before)):
                return connection
            connection.close()
        raise TransientStoreError(
            f"{self._settings} is replaced again and again: it was another file each time that it was opened"
        )

    def learn(self) -> None:
        """Record the file at the path as the one that your own connection has open."""
        before = _look(self._settings)
        if before is None or not self._learn(file_id(before)):
            raise StoreError(f"{self._settings}{_GONE}")

    def expect_there(self) -> None:
        """Before a transaction: raise unless the open file is at the path."""
        if ((looks := self.looks) is None or not looks.is_there()) and self._files is not None:
            self._look_again(self._files)

    def expect_untouched(self, connection: sqlite3.Connection) -> None:
        """Before a transaction that writes: like `expect_there`, and raise if the file was visibly overwritten."""
        looks = self.looks
        if self._files is None or (looks is not None and looks.is_untouched()):
            return
        stamp = self._look_again(self._files)
        if looks is None:
            return
        if looks.stamp is None:
            self._version = _commits_of_others(connection)
        elif stamp != looks.stamp:
            self._examine(connection, self._files, stamp)
        looks.stamp = stamp

    def expect_kept(self) -> None:
        """After a commit: raise unless the data was stored in files that others find."""
        looks = self.looks
        if self._files is None or (looks is not None and looks.is_kept()):
            return
        stamp = self._look_again(self._files)
        if looks is not None:
            looks.stamp = stamp
        if self._files.log is not None and id_of(self._files.log_path) != self._files.log:
            raise self._refused(_LOG_GONE.format(log=self._files.log_path))

    def rest(self) -> None:
        """All connections are closed: the next one may find another log, but must find the same database."""
        with self._learning:
            if self._files is not None and not self._left:
                self._files = self._files._replace(log=None, wal_index=None)
                if self.looks is not None:
                    self.looks.log = self.looks.stamp = None

    def leave(self, spare: Callable[[], sqlite3.Connection | None]) -> None:
        """Leave the file, so that no part of its log gets into another one.

        If another file has taken its place, the log is emptied into the file that it belongs to, wherever that is now,
        and then removed. `spare` returns a connection to that file, or None if all are in use.
        """
        files = self._files
        replaced = files is not None and not self._left and id_of(files.path) != files.database
        if files is not None and replaced and files.log is None:
            files = _with_later_log(files, spare())
        if files is not None and replaced and files.log is not None and id_of(files.log_path) == files.log:
            take_log_away(self._settings, spare, files)
        self._left = True
        self.looks = None

    def close(self, connection: sqlite3.Connection) -> None:
        """Close a connection. The last one copies the log into the file, unless the file was overwritten."""
        with suppress(StoreError, sqlite3.Error, OSError):
            if self._overwritten:
                connection.interrupt()  # SQLite checks this before every page that it copies
            elif self._files is not None and id_of(self._files.path) != self._files.database:
                self.leave(lambda: connection)
        connection.close()

    def _expect_same(self, before: os.stat_result | None) -> None:
        now = _look(self._settings)
        if before is None or now is None or file_id(now) != file_id(before):
            raise _AnotherError

    def _learn(self, before: FileId) -> bool:
        """Record which files are open. Returns whether the file from before the opening is still at the path."""
        now = _look(self._settings)
        if now is None or file_id(now) != before:
            return False
        path = os.path.realpath(self._settings.path)
        with self._learning:
            if self._files is None or (self._files.log is None and self._files.database == before):
                if self._files is None:
                    self.looks = Looks(self._settings.path, before, f"{path}-wal")
                self._files = Files(path, f"{path}-wal", before, id_of(f"{path}-wal"), id_of(f"{path}-shm"))
                if self.looks is not None:
                    self.looks.log = self._files.log
            return self._files.database == before

    def _look_again(self, files: Files) -> tuple[int, int]:
        """Return the time of the last write and the size. Raises if another file is at the path, or none."""
        if self._left:
            raise ReplacedError
        try:
            device, inode, modified, size = status_of(self._settings.path)
        except OSError as error:
            raise _unseen(error, self._settings) or StoreError(f"{self._settings}{_GONE}") from error
        if (device, inode) != files.database:
            raise ReplacedError
        if self._refusal is not None:
            raise StoreError(self._refusal)
        return modified, size

    def _examine(self, connection: sqlite3.Connection, files: Files, stamp: tuple[int, int]) -> None:
        """Find out which program has written to the file.

        Either another connection copied the log into it, or a program that knows nothing of SQLite, such as `cp`, wrote
        to it.
        """
        _, size = stamp
        if size and self._may_be_copied(connection, files):
            return
        self._overwritten = True
        raise self._refused(_OVERWRITTEN.format(path=files.path))

    def _may_be_copied(self, connection: sqlite3.Connection, files: Files) -> bool:
        """Return whether the log may have been copied into the file. If so, the file alone has all data.

        Others may commit, or copy, at any moment. So the result only counts if they have done neither since.
        """
        known: list[Any] = []
        for _ in range(_ATTEMPTS):
            whole = is_whole(files.path)
            if self._may_differ(connection, files):
                return True
            if whole:
                raise ReplacedError  # there is no log that could be mixed with the present file
            known = known or connection.execute(connections.SUMMARY).fetchall()
            if _held_without_log(self._settings) == known:
                return True
            time.sleep(_PAUSE)
        return self._may_differ(connection, files)

    def _may_differ(self, connection: sqlite3.Connection, files: Files) -> bool:
        """Return whether the file alone may rightly differ from the file with its log.

        Commits of others get into the file gradually, and a copying may end before the last commit: the copying began
        before that, or a reader must not see it yet.
        """
        self._alone = self._alone and _commits_of_others(connection) == self._version
        return not self._alone or is_copied_in_part(files)

    def _refused(self, reason: str) -> StoreError:
        self._refusal = f"{self._settings}{reason}"
        self.looks = None
        return StoreError(self._refusal)


def _look(settings: Settings) -> os.stat_result | None:
    """Return the status of the file at the path, or None if there is none."""
    try:
        return os.stat(settings.path)  # noqa: PTH116 - a Path makes ten calls more
    except OSError as error:
        if unseen := _unseen(error, settings):
            raise unseen from error
        return None


def _with_later_log(files: Files, connection: sqlite3.Connection | None) -> Files:
    """Return the files with the log, if another program switched the open file to one after it was opened."""
    later = files._replace(log=open_id_of(files.log_path), wal_index=open_id_of(f"{files.path}-shm"))
    with suppress(sqlite3.Error):
        if connection is not None and connection.execute(connections.LOG_MODE).fetchall() == [("wal",)]:
            return later
    return files


def _unseen(error: OSError, settings: Settings) -> StoreError | None:
    """Return the error for a file that could not be checked, or None if the error means that there is no file."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return None
    return StoreError(f"{settings} cannot be looked at: {error}")


_GONE = (
    " was deleted or moved away while it was open: nothing is read or stored until it is back in its place; "
    "to begin with a new one, open a new saver"
)
_LOG_GONE = (
    ": its log {log!r} was deleted or replaced while it was open, and holds what was stored last: close every saver "
    "and connection that has the database open (the last one brings it into the database), then open a new one"
)
_OVERWRITTEN = (
    " was written to past SQLite while it was open, and its log does not belong to what is there now: nothing is read "
    "or stored. If it was restored from a backup, end every program that has it open, delete '{path}-wal' and "
    "'{path}-shm', restore it once more, and start again; if not, open a new saver"
)


def _commits_of_others(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection commits."""
    ((version,),) = connection.execute(connections.COMMITS_OF_OTHERS).fetchall()
    return int(version)


def _held_without_log(settings: Settings) -> list[Any] | None:
    """Return the summary of the file alone, or None if it cannot be read, perhaps because it is being written."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(location(settings, unchanging=True), uri=True)) as file:
        return file.execute(connections.SUMMARY).fetchall()
    return None
