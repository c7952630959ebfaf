"""Transactions over several calls: on a file they have a connection of their own, in memory the only one."""

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from threadmark.backends import (
    ClosedError,
    Transaction,
    Workers,
    in_spite_of_cancelling,
    may_be_interrupted,
    reset_after_fork,
)
from threadmark_sqlite.driver.file import FileDriver
from threadmark_sqlite.driver.handles import Handles
from threadmark_sqlite.driver.savepoints import Savepoints, lost_error
from threadmark_sqlite.driver.shared import SharedDriver

_inherited: list[object] = []
"""Connections that a fork carried into this process. They are kept, because closing them could touch the parent's
files.
"""


class HeldOnFile:
    """A transaction over several calls on a file. Its thread works for event loops and for the main thread."""

    may_hang = False

    def __init__(self, driver: FileDriver) -> None:
        self._driver = driver
        self._savepoints = Savepoints(driver.settings)
        self._turn = threading.Lock()
        self._workers = Workers(1, "threadmark-sqlite-transaction")
        self._open: tuple[Handles, sqlite3.Connection] | None = None
        self._reclaims_space = False
        reset_after_fork(self)

    def __str__(self) -> str:
        return f"{self._driver}, in a transaction"

    def __del__(self) -> None:
        """Roll back, if an interrupt came between the beginning and the block."""
        self._end(commit=False)

    def begin(self) -> None:
        """Begin it when no other connection writes."""
        try:
            self._uninterrupted(self._begin)
        except BaseException:
            self._workers.submit(partial(self._end, commit=False))
            self._workers.end()
            raise

    async def abegin(self) -> None:
        """Like `begin`, for asyncio."""
        try:
            await self._workers.asubmit(self._begin)
        except BaseException:
            self._workers.submit(partial(self._end, commit=False))
            self._workers.end()
            raise

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result."""
        self._expect_open()
        return self._uninterrupted(partial(self._run, transaction))

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        self._expect_open()
        return await self._workers.asubmit(partial(self._run, transaction))

    def end(self, *, commit: bool) -> None:
        """Commit it, or roll it back."""
        try:
            self._uninterrupted(partial(self._end, commit=commit))
        finally:
            self._workers.end()

    async def aend(self, *, commit: bool) -> None:
        """Like `end`, for asyncio."""
        try:
            await in_spite_of_cancelling(self._workers.asubmit(partial(self._end, commit=commit)))
        finally:
            self._workers.end()

    def close(self) -> None:
        """Do nothing: the block ends the transaction."""

    async def aclose(self) -> None:
        """Do nothing, as `close`."""

    def _reset_after_fork(self) -> None:
        """In the child of a fork, the transaction is the parent's."""
        _inherited.append(self._open)
        self._open, self._turn = None, threading.Lock()

    def _uninterrupted(self, work: Callable[[], Any]) -> Any:
        return self._workers.run(work) if may_be_interrupted() else work()

    def _begin(self) -> None:
        with self._turn:
            self._open = self._driver.begin()

    def _run(self, transaction: Transaction[Any]) -> Any:
        with self._turn:
            handles, connection = self._expect_open()
            with handles.in_block:
                result = self._savepoints.play(connection, transaction)
            self._reclaims_space |= transaction.reclaims_space
            return result

    def _end(self, *, commit: bool) -> None:
        with self._turn:
            if not commit and self._open is None:
                return
            handles, connection = self._expect_open()
            self._open = None
            is_lost = not connection.in_transaction
            handles.end(connection, commit=commit and not is_lost, reclaims_space=self._reclaims_space)
            if commit and is_lost:
                raise lost_error(self._driver.settings)

    def _expect_open(self) -> tuple[Handles, sqlite3.Connection]:
        if self._open is None:
            raise ClosedError("this transaction is not open: begin another one")
        return self._open


class HeldInMemory:
    """A transaction over several calls on a database in memory, whose connection all callers share."""

    may_hang = False

    def __init__(self, driver: SharedDriver) -> None:
        self._driver = driver
        self._savepoints = Savepoints(driver.settings)
        self._turn = threading.Lock()
        self._key = object()
        """Stands for this transaction in the driver."""
        self._connection: sqlite3.Connection | None = None

    def __str__(self) -> str:
        return f"{self._driver}, in a transaction"

    def __del__(self) -> None:
        """Roll back, if an interrupt came between the beginning and the block."""
        self._driver.release(self._key, commit=False)

    def begin(self) -> None:
        """Begin it when no other caller has the connection."""
        try:
            self._connection = self._driver.hold(self._key)
        except BaseException:
            self._driver.release(self._key, commit=False)
            raise

    async def abegin(self) -> None:
        """Like `begin`, for asyncio."""
        await self._driver.until_free()
        self.begin()

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result."""
        with self._turn:
            return self._savepoints.play_as_ours(self._expect_open(), transaction)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        return self.run(transaction)

    def end(self, *, commit: bool) -> None:
        """Commit it, or roll it back."""
        with self._turn:
            if not commit and self._connection is None:
                return
            connection = self._expect_open()
            self._connection = None
            is_lost = not connection.in_transaction
            self._driver.release(self._key, commit=commit and not is_lost)
            if commit and is_lost:
                raise lost_error(self._driver.settings)

    async def aend(self, *, commit: bool) -> None:
        """Like `end`, for asyncio."""
        self.end(commit=commit)

    def close(self) -> None:
        """Do nothing: the block ends the transaction."""

    async def aclose(self) -> None:
        """Do nothing, as `close`."""

    def _expect_open(self) -> sqlite3.Connection:
        self._driver.expect_own_process()
        if self._connection is None:
            raise ClosedError("this transaction is not open: begin another one")
        return self._connection
