"""The open handles of one process on a database file: the connections of readers and writer, and their threads."""

import queue
import sqlite3
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

from threadmark.backends import (
    ClosedError,
    Program,
    StoreError,
    Transaction,
    TransientStoreError,
    Workers,
    may_be_interrupted,
    now,
)
from threadmark_sqlite.driver.connection import (
    LOCKED,
    NotThereError,
    Settings,
    connect,
    for_reading,
    give_space_back,
    to_threadmark_error,
    transact,
)
from threadmark_sqlite.driver.playing import end_transaction, expect_own_form
from threadmark_sqlite.driver.unchanging import UnsettledError, is_unchanging, is_whole, read_unchanging
from threadmark_sqlite.driver.waiting import begin_later, is_busy, shorten_waits
from threadmark_sqlite.driver.watch import ReplacedError, Watch
from threadmark_sqlite.driver.writer import Writer
from threadmark_sqlite.sql import connections
from threadmark_sqlite.steps import execute

_READERS = 8
_LONGEST_PAUSE = 5.0
"""Seconds that a fork waits for running calls of SQLite."""
_LONGEST_BLOCK = 1.0
"""Seconds that a fork waits for a transaction over several calls, which may be waiting for the thread that forks."""


class Handles:
    """The threads and connections of one process."""

    def __init__(self, settings: Settings) -> None:
        self._watch = Watch(settings)
        self.writer = Writer(settings, self._watch, self._spare)
        self.threads = Workers(_READERS, "threadmark-sqlite-reader")
        self._settings = settings
        self._permits = _Permits(_READERS)
        """Permits of threads without interrupts: an interrupt could lose one."""
        self._main_thread = threading.RLock()
        """Held while the main thread reads. Reentrant, because a signal handler may read in the middle of it."""
        self._idle: list[sqlite3.Connection] = []
        self._protected = False
        """Whether one of them may be read-only, because the file was protected when it was opened."""
        self._for_blocks: list[sqlite3.Connection] = []
        """Idle connections for transactions over several calls."""
        self._block_turn = threading.Lock()
        """Held by the one of them that is open: the others of this process need not ask the file for its lock."""
        self.in_block = threading.Lock()
        """Held while a statement of it runs."""
        self._paused: list[Any] = []
        self.is_at_rest = False
        """Whether nothing was open when the process forked last."""
        self._closed = False

    def read(self, transaction: Transaction[Any]) -> Any:
        """Run a program that only reads, on one snapshot of the database."""
        if may_be_interrupted():
            with self._main_thread:
                return self._read(transaction)
        self._permits.free.get()
        try:
            return self._read(transaction)
        finally:
            self._permits.free.put(None)

    def begin(self) -> sqlite3.Connection:
        """Begin a transaction that writes. Returns its connection, which `end` takes back."""
        if not self._block_turn.acquire(timeout=min(self._settings.timeout, threading.TIMEOUT_MAX)):
            raise TransientStoreError(f"{self._settings}{LOCKED.format(timeout=self._settings.timeout)}")
        try:
            with self.in_block:
                self._expect_open()
                self._watch.expect_there()
                with suppress(IndexError):
                    return self._begun(self._for_blocks.pop())
                return self._begun(self._watch.open(partial(connect, self._settings)))
        except BaseException as error:
            self._block_turn.release()
            if isinstance(error, sqlite3.Error):
                raise to_threadmark_error(error, self._settings) from error
            raise

    def end(self, connection: sqlite3.Connection, *, commit: bool, reclaims_space: bool) -> None:
        """End a transaction, and keep its connection for the next one."""
        try:
            with self.in_block:
                self._end(connection, commit=commit, reclaims_space=reclaims_space)
        except sqlite3.Error as error:
            raise to_threadmark_error(error, self._settings) from error
        except ReplacedError as error:
            raise StoreError(
                f"{self._settings} was replaced during a transaction, which went with it: repeat the transaction"
            ) from error
        finally:
            self._block_turn.release()

    def _end(self, connection: sqlite3.Connection, *, commit: bool, reclaims_space: bool) -> None:
        try:
            if commit:
                connection.execute(connections.COMMIT)
                if reclaims_space:
                    give_space_back(connection)
                self._watch.expect_kept()
        finally:
            try:
                end_transaction(connection)
                self._for_blocks.append(connection)
            except sqlite3.Error:
                connection.close()
            if self._closed:  # by another thread
                self._close_idle()

    def _begun(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        try:
            end_transaction(connection)
            seconds = shorten_waits(connection, self._settings.timeout)
            try:
                connection.execute(connections.BEGIN_WRITE)
            except sqlite3.OperationalError as error:
                if not is_busy(error) or seconds == self._settings.timeout:
                    raise
                begin_later(connection, self._settings.timeout - seconds)
            expect_own_form(connection)
        except BaseException:
            self._watch.close(connection)
            raise
        return connection

    def expect_there(self) -> None:
        """Raise unless the open file is at the path."""
        self._watch.expect_there()

    def leave(self) -> None:
        """Close the connections to a file that was replaced.

        A transaction over several calls ends first: in a file without a log, the new file would find its journal.
        """
        if not self._block_turn.acquire(timeout=min(self._settings.timeout, threading.TIMEOUT_MAX)):
            raise TransientStoreError(f"{self._settings}{_IN_USE}")
        taken: list[sqlite3.Connection] = []
        try:
            self.writer.leave(partial(self._taken, taken))
        finally:
            self._idle += taken
            self._block_turn.release()
        self._close_idle()

    def _taken(self, taken: list[sqlite3.Connection]) -> sqlite3.Connection | None:
        """Return the connection in this list. If there is none, an idle one is moved there as soon as there is one."""
        with suppress(IndexError):  # other threads may take it at the same time
            if not taken:
                taken.append((self._idle or self._for_blocks).pop())
                end_transaction(taken[0])
        return taken[0] if taken else None

    def take_over(self) -> None:
        """Continue with a file that has replaced another one. It must have Threadmark's tables.

        Everything that savers remember belongs to the old file, so the epochs of all threads in the new one end.
        """
        if self._settings.read_only:
            return
        try:
            with self.writer.turn:  # a fork waits for the thread that has it
                connection = self._watch.open(
                    partial(connect, self._settings, creates_tables=False), creates_tables=False
                )
        except NotThereError as error:
            raise StoreError(
                f"{self._settings} was replaced while it was open, by a file that is not Threadmark's: "
                "put the right one in its place, or open a new saver to begin with this one"
            ) from error
        self._idle.append(connection)
        try:
            with self.writer.turn:
                transact(connection, Transaction(_end_epochs, writes=True), self._settings)
        except sqlite3.Error as error:
            raise to_threadmark_error(error, self._settings) from error

    def pause(self, *, in_block: bool) -> None:
        """Wait until no call of SQLite is running, let none begin, and close the connections."""
        if self._block_turn.acquire(timeout=0 if in_block else _LONGEST_BLOCK):
            self._paused.append(self._block_turn)
        deadline = time.monotonic() + _LONGEST_PAUSE
        turns: list[Any] = [self._main_thread, self.writer.turn, self.in_block, *[self._permits] * _READERS]
        for turn in turns:
            if turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                self._paused.append(turn)
        self.is_at_rest = len(self._paused) == len(turns) + 1
        if self.is_at_rest:
            self.writer.rest()
            self._close_idle()
            self._watch.rest()

    def resume(self) -> None:
        """Undo `pause`. Called by the thread that paused."""
        while self._paused:
            self._paused.pop().release()

    def close(self) -> None:
        """Close every connection, the writer's last: the last one to close tidies the log up.

        A caller that reads on its own thread is not waited for, because it may be the thread that closes, in a signal
        handler. It closes its connection itself.
        """
        self.threads.close()
        self._closed = True
        self._close_idle()
        self.writer.close()

    def abandon(self) -> None:
        """Like `close`, without waiting: the saver is garbage, and this may run on any thread."""
        self._close_idle()
        self.writer.abandon(self)

    def _read(self, transaction: Transaction[Any]) -> Any:
        try:
            try:
                connection: sqlite3.Connection | None = self._idle.pop()
            except IndexError:
                connection = None
            if connection is None:
                self._expect_open()
                self._watch.expect_there()
                settings = for_reading(self._settings)
                if settings.read_only and is_whole(settings.path):
                    with suppress(UnsettledError):
                        return read_unchanging(settings, transaction)
                connection = self._open(settings, creates_tables=transaction.creates_tables)
                if connection is None:
                    return read_unchanging(self._settings, transaction)
            try:
                self._watch.expect_there()
                if connection.in_transaction:
                    end_transaction(connection)
                return transact(connection, transaction, self._settings)
            finally:
                self._idle.append(connection)
                if self._closed:  # by another thread, since the check above
                    self._close_idle()
        except NotThereError:
            return None
        except UnsettledError as error:
            raise TransientStoreError(
                f"{self._settings} was written to during every attempt to read it: try again"
            ) from error
        except sqlite3.Error as error:
            raise to_threadmark_error(error, self._settings) from error

    def _spare(self) -> sqlite3.Connection | None:
        """Give an idle connection to the writer: a process that reads once and then stores needs no second one."""
        with suppress(IndexError):
            if not self._protected:
                return self._idle.pop()
        return None

    def _expect_open(self) -> None:
        if self._closed:
            raise ClosedError

    def _open(self, settings: Settings, *, creates_tables: bool) -> sqlite3.Connection | None:
        """Return a connection for reading, or None if the file must be opened again for each transaction."""
        self._protected |= settings.read_only
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
        with suppress(IndexError):  # other threads may take one at the same time
            while True:
                self._watch.close(self._idle.pop())
        with suppress(IndexError):
            while True:
                self._watch.close(self._for_blocks.pop())


class _Permits:
    """A semaphore made of a queue: `threading.Semaphore` is written in Python and takes as long as a statement."""

    def __init__(self, count: int) -> None:
        self.free: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(count):
            self.free.put(None)

    def acquire(self, timeout: float | None = None) -> bool:
        """Take a permit, waiting up to `timeout` seconds. Returns whether there was one."""
        try:
            self.free.get(timeout=timeout)
        except queue.Empty:
            return False
        return True

    def release(self) -> None:
        """Give a permit back."""
        self.free.put(None)


_IN_USE = (
    " was replaced during a transaction over several calls, which has to end before the new file is used: "
    "end it, and try again"
)


def _end_epochs() -> Program[None]:
    yield from execute(connections.END_EPOCHS, (now(),))
