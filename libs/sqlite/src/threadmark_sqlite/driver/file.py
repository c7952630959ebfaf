"""A database file: readers have connections of their own and never wait, writers share one connection and commits."""

import asyncio
import os
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakSet

from threadmark.errors import ClosedError, StoreError
from threadmark.program import Program, Query, Transaction
from threadmark.store import now
from threadmark_sqlite import sql
from threadmark_sqlite.driver.connection import (
    READ_ONLY,
    NotThereError,
    Settings,
    connect,
    for_reading,
    transact,
    translated,
)
from threadmark_sqlite.driver.unchanging import UnsettledError, is_unchanging, is_whole, read_unchanging
from threadmark_sqlite.driver.watch import ReplacedError, Watch
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
        self._left: list[_Handles] = []
        """What belonged to files that were replaced."""
        self._closed = False
        with _registering:
            _drivers.add(self)

    def run(self, transaction: Transaction) -> Any:
        """Run the program in one transaction and return its result."""
        self._expect_allowed(transaction)
        while True:
            handles = self._of_this_process()
            try:
                if transaction.writes:
                    return handles.writer.run(transaction)
                return handles.read(transaction)
            except ReplacedError:
                self._go_on_from(handles)

    async def arun(self, transaction: Transaction) -> Any:
        """Like `run`, for asyncio. A write that was begun is finished even if its task is cancelled."""
        self._expect_allowed(transaction)
        while True:
            handles = self._of_this_process()
            try:
                if transaction.writes:
                    return await handles.writer.jobs.asubmit(transaction)
                return await asyncio.wrap_future(handles.threads.submit(handles.read, transaction))
            except ReplacedError:
                await asyncio.to_thread(self._go_on_from, handles)

    def close(self) -> None:
        """Finish what was begun, then close every connection."""
        with self._opening:
            self._closed = True
            handles, self._handles = self._handles, None
            left, self._left = self._left, []
        for each in (*left, handles):
            if each is not None:
                each.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await asyncio.to_thread(self.close)

    def look_again(self) -> None:
        """Go on with another file now, if there is one at the path, before somebody opens it beside the old log."""
        if (handles := self._handles) is not None:
            try:
                handles.expect_there()
            except ReplacedError:
                self._go_on_from(handles)
            except StoreError:
                return  # there is no file, or it is refused: whoever asks this driver will be told

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
        _inherited.extend(self._left)
        self._left = []

    def _expect_allowed(self, transaction: Transaction) -> None:
        if transaction.writes and self._settings.read_only:
            raise StoreError(f"{self._settings}{READ_ONLY}")

    def _of_this_process(self) -> "_Handles":
        if (handles := self._handles) is not None:
            return handles
        with _registering:
            others = [other for other in _drivers if other is not self and other._settings.path == self._settings.path]  # noqa: SLF001 - of our own kind
        for other in others:
            other.look_again()
        with self._opening:
            if self._closed:
                raise ClosedError("this saver was closed; open a new one")
            if self._handles is None:
                self._handles = _Handles(self._settings)
            return self._handles

    def _go_on_from(self, handles: "_Handles") -> None:
        """Another file is at the path, and has our tables: let that one be used from now on."""
        with self._opening:
            if self._handles is not handles:
                return
            handles.leave()
            successor = _Handles(self._settings)
            try:
                successor.take_over()
            except BaseException:
                successor.close()
                raise
            self._left.append(handles)
            self._handles = successor


class _Handles:
    """One process's threads and connections."""

    def __init__(self, settings: Settings) -> None:
        self._watch = Watch(settings)
        self.writer = Writer(settings, self._watch)
        self.threads = ThreadPoolExecutor(_READERS, thread_name_prefix="threadmark-sqlite-reader")
        self._settings = settings
        self._free = threading.Semaphore(_READERS)
        self._idle: list[sqlite3.Connection] = []
        self._paused: list[threading.Lock | threading.Semaphore] = []

    def read(self, transaction: Transaction) -> Any:
        """Run a program that only reads; it sees one state of the database throughout."""
        with self._free:
            try:
                self._watch.expect_there()
                if not self._idle:
                    settings = for_reading(self._settings)
                    if settings.read_only and is_whole(settings.path):
                        with suppress(UnsettledError):
                            return read_unchanging(settings, transaction)
                connection = self._open(makes=transaction.makes)
                if connection is None:
                    return read_unchanging(self._settings, transaction)
                try:
                    return transact(connection, transaction)
                finally:
                    self._idle.append(connection)
            except NotThereError:
                return None
            except UnsettledError as error:
                raise StoreError(f"{self._settings} was written to each time that it was read: try again") from error
            except sqlite3.Error as error:
                raise translated(error, self._settings) from error

    def expect_there(self) -> None:
        """Raise unless the file that is open is at the path."""
        self._watch.expect_there()

    def leave(self) -> None:
        """Have done with a file that another one has replaced."""
        reader = self._idle.pop() if self._idle else None
        try:
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
            connection = self._watch.open(partial(connect, self._settings, makes=False), makes=False)
        except NotThereError as error:
            raise StoreError(
                f"{self._settings} was replaced while it was open, by a file that is not Threadmark's: "
                "put the right one in its place, or open a new saver to begin with this one"
            ) from error
        self._idle.append(connection)
        try:
            transact(connection, Transaction(_end_epochs, writes=True))
        except sqlite3.Error as error:
            raise translated(error, self._settings) from error

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
        self._close_idle()
        self.writer.close()

    def _open(self, *, makes: bool) -> sqlite3.Connection | None:
        """A connection to read with; None for a file that must be opened anew each time."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        settings = for_reading(self._settings)
        try:
            return self._watch.open(partial(connect, settings, makes=makes), makes=makes and not settings.read_only)
        except StoreError as error:
            if is_unchanging(self._settings, error):
                return None
            raise

    def _close_idle(self) -> None:
        with suppress(IndexError):  # others may take one at the same time
            while True:
                self._watch.close(self._idle.pop())


def _end_epochs() -> Program[None]:
    yield Query(sql.END_EPOCHS, (now(),))


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
