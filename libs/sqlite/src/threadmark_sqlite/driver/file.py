"""A database file: readers have connections of their own and never wait, writers share one connection and commits."""

import logging
import sqlite3
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import finalize

from threadmark.errors import ClosedError, StoreError, TransientStoreError
from threadmark.exits import close_at_exit, was_closed
from threadmark.forks import begin_anew_after_fork
from threadmark.program import Program, Transaction
from threadmark.store import now
from threadmark.threads import Workers, may_be_interrupted
from threadmark_sqlite import sql
from threadmark_sqlite.driver.connection import (
    READ_ONLY,
    NotThereError,
    Settings,
    connect,
    end_transaction,
    for_reading,
    to_threadmark_error,
    transact,
)
from threadmark_sqlite.driver.drivers import Drivers
from threadmark_sqlite.driver.forking import pause_for_forks
from threadmark_sqlite.driver.log import log
from threadmark_sqlite.driver.unchanging import UnsettledError, is_unchanging, is_whole, read_unchanging
from threadmark_sqlite.driver.watch import ReplacedError, Watch
from threadmark_sqlite.driver.writer import Writer
from threadmark_sqlite.steps import execute

_READERS = 8
_LONGEST_PAUSE = 5.0
"""Seconds that a fork waits for what is under way in SQLite."""

_drivers = Drivers()

_inherited: list["_Handles"] = []
"""Handles that a fork carried into this process. They are kept, because closing them could touch the parent's files."""


class FileDriver:
    """Runs programs on a database file."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._closing = threading.Lock()
        self._handles: _Handles | None = None
        self._opened: list[_Handles] = []
        """Those that are not closed: the current ones, and what belonged to files that were replaced."""
        self._closed = False
        finalize(self, _abandon, self._opened).atexit = False  # `close_at_exit` waits for what is under way
        begin_anew_after_fork(self)
        _drivers.add(self)

    def __str__(self) -> str:
        return str(self._settings)

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._settings.path

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        self._expect_allowed(transaction)
        try:
            while True:
                handles = self._of_this_process()
                try:
                    if transaction.writes:
                        return handles.writer.run(transaction)
                    return handles.read(transaction)
                except ReplacedError:
                    self._replace(handles)
        finally:
            if log.noted:
                log.flush()

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio. A write that was begun is finished even if its task is cancelled."""
        self._expect_allowed(transaction)
        try:
            while True:
                handles = self._of_this_process()
                try:
                    if transaction.writes:
                        return await handles.writer.submit(transaction)
                    return await handles.threads.asubmit(partial(handles.read, transaction))
                except ReplacedError:
                    await handles.threads.asubmit(partial(self._go_on_from, handles))
        finally:
            if log.noted:
                log.flush()

    def close(self) -> None:
        """Finish what was begun, then close every connection."""
        if may_be_interrupted():
            closing = Workers(1, "threadmark-sqlite-closing")
            try:
                closing.run(self._close)
            except RuntimeError:  # Python 3.12 starts no thread when it is about to end
                self._close()
            closing.close()
        else:
            self._close()
        if log.noted:
            log.flush()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        closing = Workers(1, "threadmark-sqlite-closing")
        await closing.asubmit(self._close)
        closing.close()
        if log.noted:
            log.flush()

    def _close(self) -> None:
        """Close everything. Runs where no interrupt can come, which could lose a job or a connection."""
        with self._closing:
            with self._opening:
                self._closed = True
                every = self._opened.copy()
                self._opened.clear()
                self._handles = None
            for each in every:
                each.close()
            was_closed(self)

    def look_again(self) -> None:
        """Switch to the file at the path if it has replaced ours, before another driver opens it beside the old log."""
        if (handles := self._handles) is not None:
            try:
                handles.expect_there()
            except ReplacedError:
                self._replace(handles)
            except StoreError:
                return  # there is no file, or it is refused: the next call of this driver raises

    def begin_anew(self) -> None:
        """In the child of a fork: leave what is the parent's alone."""
        self._opening = threading.Lock()
        self._closing = threading.Lock()
        _inherited.extend(self._opened)
        self._opened.clear()
        self._handles = None

    def _expect_allowed(self, transaction: Transaction[Any]) -> None:
        if transaction.writes and self._settings.read_only:
            raise StoreError(f"{self._settings}{READ_ONLY}")

    def _of_this_process(self) -> "_Handles":
        if (handles := self._handles) is not None and not self._closed:
            return handles
        for other in _drivers.beside(self):
            other.look_again()
        with self._opening:
            if self._closed:
                raise ClosedError("this saver was closed; open a new one")
            if self._handles is None:
                close_at_exit(self)
                self._handles = self._open()
            return self._handles

    def _open(self) -> "_Handles":
        handles = _Handles(self._settings)
        self._opened.append(handles)
        pause_for_forks(handles)
        return handles

    def _replace(self, handles: "_Handles") -> None:
        """Continue with another file. Runs in a thread that no interrupt stops half-way."""
        with suppress(ClosedError):  # the next call raises it
            handles.threads.run(partial(self._go_on_from, handles))

    def _go_on_from(self, handles: "_Handles") -> None:
        """Use the file that is at the path now. It must have our tables."""
        with self._opening:
            if self._closed or self._handles is not handles:
                return
            handles.leave()
            successor = self._open()
            try:
                successor.take_over()
            except BaseException:
                self._opened.remove(successor)
                successor.close()
                raise
            self._handles = successor
        log.note(logging.WARNING, "%s was replaced: the new file is used from now on", str(self._settings))


class _Handles:
    """One process's threads and connections."""

    def __init__(self, settings: Settings) -> None:
        self._watch = Watch(settings)
        self.writer = Writer(settings, self._watch)
        self.threads = Workers(_READERS, "threadmark-sqlite-reader")
        self._settings = settings
        self._free = threading.Semaphore(_READERS)
        """Of threads that nothing interrupts: an interrupt could lose what it counts."""
        self._main_thread = threading.RLock()
        """Held while the main thread reads. Reentrant, because a signal's handler may read in the middle of it."""
        self._idle: list[sqlite3.Connection] = []
        self._paused: list[Any] = []

    def read(self, transaction: Transaction[Any]) -> Any:
        """Run a program that only reads, on one snapshot of the database."""
        with self._main_thread if may_be_interrupted() else self._free:
            try:
                self._watch.expect_there()
                if not self._idle:
                    settings = for_reading(self._settings)
                    if settings.read_only and is_whole(settings.path):
                        with suppress(UnsettledError):
                            return read_unchanging(settings, transaction)
                connection = self._open(creates_tables=transaction.creates_tables)
                if connection is None:
                    return read_unchanging(self._settings, transaction)
                try:
                    end_transaction(connection)
                    return transact(connection, transaction, self._settings)
                finally:
                    self._idle.append(connection)
            except NotThereError:
                return None
            except UnsettledError as error:
                raise TransientStoreError(
                    f"{self._settings} was written to during every attempt to read it: try again"
                ) from error
            except sqlite3.Error as error:
                raise to_threadmark_error(error, self._settings) from error

    def expect_there(self) -> None:
        """Raise unless the file that is open is at the path."""
        self._watch.expect_there()

    def leave(self) -> None:
        """Close the connections to a file that was replaced."""
        reader = self._idle.pop() if self._idle else None
        try:
            if reader is not None:
                end_transaction(reader)
            self.writer.leave(reader)
        finally:
            if reader is not None:
                self._idle.append(reader)
        self._close_idle()

    def take_over(self) -> None:
        """Begin with a file that has replaced another one; it must have our tables.

        Nothing of what a saver remembers belongs to it, so the epochs of all its threads end.
        """
        if self._settings.read_only:
            return
        try:
            connection = self._watch.open(partial(connect, self._settings, creates_tables=False), creates_tables=False)
        except NotThereError as error:
            raise StoreError(
                f"{self._settings} was replaced while it was open, by a file that is not Threadmark's: "
                "put the right one in its place, or open a new saver to begin with this one"
            ) from error
        self._idle.append(connection)
        try:
            with self.writer.turn:  # a fork waits for whoever has it
                transact(connection, Transaction(_end_epochs, writes=True), self._settings)
        except sqlite3.Error as error:
            raise to_threadmark_error(error, self._settings) from error

    def pause(self) -> None:
        """Wait until no call of SQLite is under way, and let none begin."""
        deadline = time.monotonic() + _LONGEST_PAUSE
        turns: list[Any] = [self._main_thread, self.writer.turn, *[self._free] * _READERS]
        for turn in turns:
            if turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                self._paused.append(turn)

    def resume(self) -> None:
        """Undo `pause`. Called by the thread that paused."""
        while self._paused:
            self._paused.pop().release()

    def close(self) -> None:
        """Close every connection, the writer's last: the last one to close tidies the log up."""
        self.threads.close()
        self._close_idle()
        self.writer.close()

    def abandon(self) -> None:
        """Like `close`, but wait for nobody: the saver is garbage, and this may run on any thread."""
        self._close_idle()
        self.writer.abandon(self)

    def _open(self, *, creates_tables: bool) -> sqlite3.Connection | None:
        """Return a connection for reading, or None for a file that must be opened again for each transaction."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        settings = for_reading(self._settings)
        try:
            return self._watch.open(
                partial(connect, settings, creates_tables=creates_tables),
                creates_tables=creates_tables and not settings.read_only,
            )
        except StoreError as error:
            if is_unchanging(self._settings, error):
                return None
            raise

    def _close_idle(self) -> None:
        with suppress(IndexError):  # others may take one at the same time
            while True:
                self._watch.close(self._idle.pop())


def _abandon(opened: "list[_Handles]") -> None:
    """Close what a saver had open that nobody closed and nobody has any more."""
    while opened:
        opened.pop().abandon()


def _end_epochs() -> Program[None]:
    yield from execute(sql.END_EPOCHS, (now(),))
