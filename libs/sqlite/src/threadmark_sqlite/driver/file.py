"""The driver for a database file: readers never wait and have their own connections, writers share one connection."""

import logging
import os
import sqlite3
import threading
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import finalize

from threadmark.backends import (
    INSIDE,
    ClosedError,
    ReadOnlyError,
    StoreError,
    Transaction,
    Workers,
    close_at_exit,
    expect_outside,
    may_be_interrupted,
    reset_after_fork,
    was_closed,
)
from threadmark_sqlite.driver.connection import (
    READ_ONLY,
    Settings,
)
from threadmark_sqlite.driver.drivers import Drivers
from threadmark_sqlite.driver.forking import pause_for_forks
from threadmark_sqlite.driver.handles import Handles
from threadmark_sqlite.driver.log import log
from threadmark_sqlite.driver.watch import ReplacedError

_drivers = Drivers()

_inherited: dict[str, list[Handles]] = {}
"""By the path of the file, handles that were in use when this process was forked: SQLite cannot use the file here.

They are kept, because closing them could touch the parent's files.
"""


class FileDriver:
    """Runs programs on a database file."""

    may_hang = False

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._closing = threading.Lock()
        self._handles: Handles | None = None
        """The open handles; None again in the child of a fork, and after `close`."""
        self._opened: list[Handles] = []
        """All handles that are not closed: the current ones, and those of files that were replaced."""
        self._closed = False
        finalize(self, _abandon, self._opened).atexit = False  # `close_at_exit` waits for running calls
        reset_after_fork(self)
        _drivers.add(self)

    def __str__(self) -> str:
        return str(self._settings)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._settings.path

    @property
    def settings(self) -> Settings:
        """The file and the options."""
        return self._settings

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        if transaction.writes and (self._settings.read_only or INSIDE.get()):
            self._expect_writing()
        try:
            while True:
                handles = self._handles or self._of_this_process()
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
        """Like `run`, for asyncio. If the task is cancelled, a write that has begun is finished before it goes on."""
        if transaction.writes and (self._settings.read_only or INSIDE.get()):
            self._expect_writing()
        try:
            while True:
                handles = self._handles or self._of_this_process()
                try:
                    if transaction.writes:
                        return await handles.writer.submit(transaction)
                    return await handles.threads.asubmit(partial(handles.read, transaction))
                except ReplacedError:
                    await handles.threads.asubmit(partial(self._go_on_from, handles))
        finally:
            if log.noted:
                log.flush()

    def begin(self) -> tuple[Handles, sqlite3.Connection]:
        """Begin a transaction over several calls, on a connection of its own. Call `end` of the handles with it."""
        self._expect_writing()
        while True:
            handles = self._handles or self._of_this_process()
            try:
                return handles, handles.begin()
            except ReplacedError:
                self._replace(handles)

    def close(self) -> None:
        """Finish running calls, then close every connection."""
        if may_be_interrupted():
            closing = Workers(1, "threadmark-sqlite-closing")
            try:
                closing.run(self._close)
            except RuntimeError:  # Python 3.12 starts no thread at exit
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
        """Close everything. Runs on a thread without interrupts, which could lose a job or a connection."""
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
        """Switch to the file at the path if it was replaced, before another driver opens it next to the old log."""
        if (handles := self._handles) is not None:
            try:
                handles.expect_there()
            except ReplacedError:
                self._replace(handles)
            except StoreError:
                return  # if the file is missing or refused, the next call of this driver raises

    def _reset_after_fork(self) -> None:
        """In the child of a fork, begin without connections."""
        self._opening = threading.Lock()
        self._closing = threading.Lock()
        if in_use := [handles for handles in self._opened if not handles.is_at_rest]:
            _inherited.setdefault(os.path.realpath(self.path), []).extend(in_use)
        self._opened.clear()
        self._handles = None

    def _expect_writing(self) -> None:
        if self._settings.read_only:
            raise ReadOnlyError(f"{self._settings}{READ_ONLY}")
        expect_outside(self)

    def _of_this_process(self) -> Handles:
        """Return the open handles, and open them first if there are none."""
        for other in _drivers.beside(self):
            other.look_again()
        with self._opening:
            if self._closed:
                raise ClosedError
            if self._handles is None:
                close_at_exit(self)
                self._handles = self._open()
            return self._handles

    def _open(self) -> Handles:
        if _inherited and os.path.realpath(self.path) in _inherited:
            raise ClosedError(f"{self} was in a transaction when this process was forked: fork outside of transactions")
        handles = Handles(self._settings)
        self._opened.append(handles)
        pause_for_forks(handles)
        return handles

    def _replace(self, handles: Handles) -> None:
        """Continue with another file. Runs in a thread that no interrupt stops half-way."""
        with suppress(ClosedError):  # the next call raises it
            handles.threads.run(partial(self._go_on_from, handles))

    def _go_on_from(self, handles: Handles) -> None:
        """Use the file that is at the path now. It must have Threadmark's tables."""
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


def _abandon(opened: list[Handles]) -> None:
    """Close the handles of a saver that was garbage-collected without being closed."""
    while opened:
        opened.pop().abandon()
