"""A database file: readers have connections of their own and never wait, writers share a thread and commits."""

import asyncio
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadmark.errors import ClosedError, StoreError
from threadmark.program import Transaction
from threadmark_sqlite.driver.connection import (
    Settings,
    connect,
    is_unchanging,
    read_unchanging,
    transact,
    translated,
)
from threadmark_sqlite.driver.writer import Writer

_READERS = 8

_inherited: list["_Handles"] = []
"""Handles that a fork carried into this process. They are kept, because closing them could touch the parent's files."""


class FileDriver:
    """Runs programs on a database file."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = threading.Lock()
        self._handles: _Handles | None = None
        self._closed = False

    def run(self, transaction: Transaction) -> Any:
        """Run the program in one transaction and return its result."""
        handles = self._of_this_process()
        if transaction.writes:
            return handles.writer.jobs.submit(transaction).result()
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
        if handles is not None and handles.process == os.getpid():
            handles.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await asyncio.to_thread(self.close)

    def _of_this_process(self) -> "_Handles":
        handles = self._handles
        if handles is not None and handles.process == os.getpid():
            return handles
        with self._opening:
            if self._closed:
                raise ClosedError("this saver was closed; open a new one")
            if self._handles is None or self._handles.process != os.getpid():
                if self._handles is not None:
                    _inherited.append(self._handles)
                self._handles = _Handles(self._settings)
            return self._handles


class _Handles:
    """One process's threads and connections."""

    def __init__(self, settings: Settings) -> None:
        self.process = os.getpid()
        self.writer = Writer(settings)
        self.threads = ThreadPoolExecutor(_READERS, thread_name_prefix="threadmark-sqlite-reader")
        self._settings = settings
        self._free = threading.Semaphore(_READERS)
        self._idle: list[sqlite3.Connection] = []

    def read(self, transaction: Transaction) -> Any:
        """Run a program that only reads; it sees one state of the database throughout."""
        with self._free:
            try:
                connection = self._open()
                if connection is None:
                    return read_unchanging(self._settings, transaction)
                try:
                    return transact(connection, transaction)
                finally:
                    self._idle.append(connection)
            except sqlite3.Error as error:
                raise translated(error, self._settings) from error

    def _open(self) -> sqlite3.Connection | None:
        """A connection to read with; None for a file that must be opened anew each time."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return connect(self._settings)
        except StoreError as error:
            if is_unchanging(self._settings, error):
                return None
            raise

    def close(self) -> None:
        """Close every connection, the writer's last: the last one to close tidies the log up."""
        self.threads.shutdown()
        while self._idle:
            self._idle.pop().close()
        self.writer.close()
