"""A database file: readers have connections of their own and never wait, writers share one connection and commits."""

import sqlite3
import threading
import time
from functools import partial
from typing import Any

from threadmark.errors import ClosedError, StoreError
from threadmark.forks import begin_anew_after_fork
from threadmark.program import Transaction
from threadmark.threads import Workers, may_be_interrupted
from threadmark_sqlite.driver.connection import (
    NotThereError,
    Settings,
    connect,
    end_transaction,
    is_unchanging,
    read_unchanging,
    transact,
    translated,
)
from threadmark_sqlite.driver.forking import pause_for_forks
from threadmark_sqlite.driver.writer import Writer

_READERS = 8
_LONGEST_PAUSE = 5.0
"""Seconds that a fork waits for what is under way in SQLite."""

_inherited: list["_Handles"] = []
"""Handles that a fork carried into this process. They are kept, because closing them could touch the parent's files."""


class FileDriver:
    """Runs programs on a database file."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._handles: _Handles | None = None
        self._closed = False
        begin_anew_after_fork(self)

    def run(self, transaction: Transaction) -> Any:
        """Run the program in one transaction and return its result."""
        handles = self._of_this_process()
        if transaction.writes:
            return handles.writer.run(transaction)
        return handles.read(transaction)

    async def arun(self, transaction: Transaction) -> Any:
        """Like `run`, for asyncio. A write that was begun is finished even if its task is cancelled."""
        handles = self._of_this_process()
        if transaction.writes:
            return await handles.writer.submit(transaction)
        return await handles.threads.asubmit(partial(handles.read, transaction))

    def close(self) -> None:
        """Finish what was begun, then close every connection."""
        with self._opening:
            self._closed = True
            handles = self._handles
        if handles is not None:
            handles.close()
            self._handles = None  # not before: should it be interrupted, the next call goes on

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        closing = Workers(1, "threadmark-sqlite-closing")
        await closing.asubmit(self.close)
        closing.close()

    def begin_anew(self) -> None:
        """In the child of a fork: leave what is the parent's alone."""
        self._opening = threading.Lock()
        if self._handles is not None:
            _inherited.append(self._handles)
            self._handles = None

    def _of_this_process(self) -> "_Handles":
        if (handles := self._handles) is not None and not self._closed:
            return handles
        with self._opening:
            if self._closed:
                raise ClosedError("this saver was closed; open a new one")
            if self._handles is None:
                self._handles = _Handles(self._settings)
                pause_for_forks(self._handles)
            return self._handles


class _Handles:
    """One process's threads and connections."""

    def __init__(self, settings: Settings) -> None:
        self.writer = Writer(settings)
        self.threads = Workers(_READERS, "threadmark-sqlite-reader")
        self._settings = settings
        self._free = threading.Semaphore(_READERS)
        """Of threads that nothing interrupts: an interrupt could lose what it counts."""
        self._main_thread = threading.RLock()
        """Held while the main thread reads; a signal's handler may do so in the middle of it."""
        self._idle: list[sqlite3.Connection] = []
        self._paused: list[Any] = []

    def read(self, transaction: Transaction) -> Any:
        """Run a program that only reads; it sees one state of the database throughout."""
        with self._main_thread if may_be_interrupted() else self._free:
            try:
                connection = self._open(makes=transaction.makes)
                if connection is None:
                    return read_unchanging(self._settings, transaction)
                try:
                    end_transaction(connection)
                    return transact(connection, transaction)
                finally:
                    self._idle.append(connection)
            except NotThereError:
                return None
            except sqlite3.Error as error:
                raise translated(error, self._settings) from error

    def _open(self, *, makes: bool) -> sqlite3.Connection | None:
        """A connection to read with; None for a file that must be opened anew each time."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return connect(self._settings, makes=makes)
        except StoreError as error:
            if is_unchanging(self._settings, error):
                return None
            raise

    def pause(self) -> None:
        """Wait until nobody is in SQLite, and let nobody in."""
        deadline = time.monotonic() + _LONGEST_PAUSE
        turns: list[Any] = [self._main_thread, self.writer.turn, *[self._free] * _READERS]
        for turn in turns:
            if turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                self._paused.append(turn)

    def resume(self) -> None:
        """Let everybody in again; by the thread that paused."""
        while self._paused:
            self._paused.pop().release()

    def close(self) -> None:
        """Close every connection, the writer's last: the last one to close tidies the log up."""
        self.threads.close()
        while self._idle:
            self._idle.pop().close()
        self.writer.close()
