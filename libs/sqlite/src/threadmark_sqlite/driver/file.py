"""A database file: readers have connections of their own and never wait, writers share one connection and commits."""

import asyncio
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakSet

from threadmark.errors import ClosedError, StoreError
from threadmark.program import Transaction
from threadmark_sqlite.driver.connection import (
    NotThereError,
    Settings,
    connect,
    is_unchanging,
    read_unchanging,
    transact,
    translated,
)
from threadmark_sqlite.driver.writer import Writer

_READERS = 8
_LONGEST_PAUSE = 5.0
"""Seconds that a fork waits for what is under way in SQLite."""

_drivers: WeakSet["FileDriver"] = WeakSet()
_registering = threading.Lock()

_inherited: list["_Handles"] = []
"""Handles that a fork carried into this process. They are kept, because closing them could touch the parent's files."""


class FileDriver:
    """Runs programs on a database file."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._handles: _Handles | None = None
        self._closed = False
        with _registering:
            _drivers.add(self)

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
            return await handles.writer.jobs.asubmit(transaction)
        return await asyncio.wrap_future(handles.threads.submit(handles.read, transaction))

    def close(self) -> None:
        """Finish what was begun, then close every connection."""
        with self._opening:
            self._closed = True
            handles, self._handles = self._handles, None
        if handles is not None:
            handles.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await asyncio.to_thread(self.close)

    def pause(self) -> None:
        """Let what is under way in SQLite end, and nothing begin."""
        if self._handles is not None:
            self._handles.pause()

    def resume(self) -> None:
        """Go on after `pause`."""
        if self._handles is not None:
            self._handles.resume()

    def begin_anew(self) -> None:
        """In the child of a fork: leave what is the parent's alone."""
        self._opening = threading.Lock()
        if self._handles is not None:
            _inherited.append(self._handles)
            self._handles = None

    def _of_this_process(self) -> "_Handles":
        if (handles := self._handles) is not None:
            return handles
        with self._opening:
            if self._closed:
                raise ClosedError("this saver was closed; open a new one")
            if self._handles is None:
                self._handles = _Handles(self._settings)
            return self._handles


class _Handles:
    """One process's threads and connections."""

    def __init__(self, settings: Settings) -> None:
        self.writer = Writer(settings)
        self.threads = ThreadPoolExecutor(_READERS, thread_name_prefix="threadmark-sqlite-reader")
        self._settings = settings
        self._free = threading.Semaphore(_READERS)
        self._idle: list[sqlite3.Connection] = []
        self._paused: list[threading.Lock | threading.Semaphore] = []

    def read(self, transaction: Transaction) -> Any:
        """Run a program that only reads; it sees one state of the database throughout."""
        with self._free:
            try:
                connection = self._open(makes=transaction.makes)
                if connection is None:
                    return read_unchanging(self._settings, transaction)
                try:
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
        turns: list[threading.Lock | threading.Semaphore] = [self.writer.turn, *[self._free] * _READERS]
        for turn in turns:
            if turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                self._paused.append(turn)

    def resume(self) -> None:
        """Let everybody in again."""
        while self._paused:
            self._paused.pop().release()

    def close(self) -> None:
        """Close every connection, the writer's last: the last one to close tidies the log up."""
        self.threads.shutdown()
        while self._idle:
            self._idle.pop().close()
        self.writer.close()


def _pause_all() -> None:
    """Before a fork.

    SQLite keeps in this process's memory what its connections have locked. A child made in the middle of a
    transaction would have the locks, but not the thread that releases them, and would wait for ever.
    """
    _registering.acquire()
    for driver in _drivers:
        driver.pause()


def _resume_all() -> None:
    for driver in _drivers:
        driver.resume()
    _registering.release()


def _begin_all_anew() -> None:
    for driver in _drivers:
        driver.begin_anew()
    _registering.release()


os.register_at_fork(before=_pause_all, after_in_parent=_resume_all, after_in_child=_begin_all_anew)
