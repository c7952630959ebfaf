"""Like `within` and `held`, on a connection that you opened with aiosqlite."""

import asyncio
import os
import sqlite3
from functools import partial
from typing import Any

import aiosqlite

from threadmark.backends import (
    ClosedError,
    ConfigError,
    ReadOnlyError,
    StoreError,
    Transaction,
    aplay,
    in_spite_of_cancelling,
    run_on_loop,
)
from threadmark_sqlite import migrations
from threadmark_sqlite.driver.aio import AiosqliteDriver, asked, execute_step, running_loop
from threadmark_sqlite.driver.connection import MEMORY, READ_ONLY, Settings, path_in
from threadmark_sqlite.driver.playing import plain_text
from threadmark_sqlite.driver.savepoints import lost_error, meaning_of
from threadmark_sqlite.driver.watch import ReplacedError, Watch
from threadmark_sqlite.driver.within import expect_own_file, no_transaction_error, replaced_error, tables_error
from threadmark_sqlite.migrations import is_current
from threadmark_sqlite.sql import connections


class WithinOnLoop:
    """Runs one program at a time in the transaction that is open on your connection, on its event loop."""

    may_hang = False

    def __init__(self, connection: aiosqlite.Connection, settings: Settings) -> None:
        self._connection: aiosqlite.Connection | None = connection
        self._settings = settings
        self._loop = running_loop()
        self._turn = asyncio.Lock()
        self._prepared = False
        self._unfinished = False
        """Whether a program has not ended, and is still to be undone."""
        self._lost = False
        """Whether SQLite rolled the whole transaction back after an error."""
        self._watch = Watch(settings)
        self._process = os.getpid()

    def __str__(self) -> str:
        return f"{self._settings}, in a transaction"

    def run(self, transaction: Transaction[Any]) -> Any:
        """Let the connection's event loop run the program, while the caller waits on another thread."""
        loop = self._loop
        if loop is None or not loop.is_running() or loop is running_loop():
            raise ConfigError(
                "this saver was given an aiosqlite connection, which is used on its event loop: call "
                "the methods that start with 'a' there, or blocking ones on other threads while the loop runs"
            )
        return run_on_loop(partial(self._transact, transaction), loop)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result. Once begun it is finished, even if its task is cancelled."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return await asyncio.shield(asyncio.ensure_future(self._transact(transaction)))

    def close(self) -> None:
        """Release the connection, which stays open."""
        self._connection = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        async with self._turn:
            self.close()

    async def _transact(self, transaction: Transaction[Any]) -> Any:
        if self._process != os.getpid():
            raise ClosedError("this saver's connection belongs to the process that forked")
        if transaction.writes and self._settings.read_only:
            raise ReadOnlyError(f"{self._settings}{READ_ONLY}")
        async with self._turn:
            connection = self._connection
            if connection is None:
                raise ClosedError
            try:
                text_factory = connection.text_factory
            except ValueError as error:
                raise StoreError("the aiosqlite connection given is not open: await it first") from error
            try:
                connection.text_factory = plain_text
                return await self._run(connection, transaction)
            except ReplacedError as error:
                raise replaced_error(self._settings) from error
            except sqlite3.Error as error:
                raise meaning_of(error, self._settings) from error
            finally:
                connection.text_factory = text_factory

    async def _run(self, connection: aiosqlite.Connection, transaction: Transaction[Any]) -> Any:
        if self._lost and not connection.in_transaction:
            raise lost_error(self._settings)
        async with connection.cursor() as cursor:
            cursor.row_factory = None
            await self._expect_transaction(connection, cursor, writes=transaction.writes)
            if not self._prepared:
                if not await self._prepare(cursor) and not transaction.creates_tables:
                    return None
                if not self._prepared:
                    raise tables_error(self._settings)
            self._watch.expect_there()
            was_open = connection.in_transaction
            try:
                if self._unfinished:
                    await self._undo(connection)
                return await self._in_savepoint(cursor, transaction)
            except BaseException:
                self._lost = was_open and not connection.in_transaction
                await in_spite_of_cancelling(self._undo(connection))
                raise

    async def _in_savepoint(self, cursor: aiosqlite.Cursor, transaction: Transaction[Any]) -> Any:
        self._unfinished = True
        await cursor.execute(connections.SAVEPOINT)
        if transaction.writes:
            ((written,),) = await asked(cursor, connections.GET_WRITTEN)
            if written > migrations.CURRENT:
                await aplay(is_current(str(self._settings), writes=True), partial(execute_step, cursor))
        result = await aplay(transaction.begin(), partial(execute_step, cursor))
        await cursor.execute(connections.RELEASE)
        self._unfinished = False
        return result

    async def _undo(self, connection: aiosqlite.Connection) -> None:
        """Undo the program that has not ended."""
        if connection.in_transaction:
            try:
                await connection.execute(connections.ROLLBACK_TO)
                await connection.execute(connections.RELEASE)
            except sqlite3.OperationalError:
                pass  # there is no savepoint, because the program had not begun
        self._unfinished = False

    async def _expect_transaction(
        self, connection: aiosqlite.Connection, cursor: aiosqlite.Cursor, *, writes: bool
    ) -> None:
        """Raise StoreError unless you have begun a transaction. Begin one where sqlite3 itself would."""
        if connection.in_transaction:
            return
        if connection.isolation_level is None:
            raise no_transaction_error()
        if writes:
            await cursor.execute(connections.BEGIN_WRITE)

    async def _prepare(self, cursor: aiosqlite.Cursor) -> bool:
        """Look whether the connection has the saver's file, and whether that has the tables of this release."""
        if self._settings.path != MEMORY:
            expect_own_file(path_in(await asked(cursor, connections.FILES)), self._settings)
            self._watch.learn()
        writes = not self._settings.read_only
        self._prepared = await aplay(is_current(str(self._settings), writes=writes), partial(execute_step, cursor))
        return self._prepared


class HeldOnLoop:
    """A transaction over several calls on the aiosqlite connection of a saver, which others wait for."""

    may_hang = False

    def __init__(self, driver: AiosqliteDriver) -> None:
        self._driver = driver
        self._within: WithinOnLoop | None = None

    def __str__(self) -> str:
        return f"{self._driver}, in a transaction"

    def begin(self) -> None:
        """Like `abegin`, for a caller on another thread than that of the connection's event loop."""
        self._driver.on_loop(self.abegin)

    async def abegin(self) -> None:
        """Begin it when no other caller has the connection."""
        connection = await self._driver.hold()
        self._within = WithinOnLoop(connection, self._driver.settings)

    def run(self, transaction: Transaction[Any]) -> Any:
        """Like `arun`, for a caller on another thread than that of the connection's event loop."""
        return self._expect_open().run(transaction)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result."""
        return await self._expect_open().arun(transaction)

    def end(self, *, commit: bool) -> None:
        """Like `aend`, for a caller on another thread than that of the connection's event loop."""
        self._driver.on_loop(partial(self.aend, commit=commit))

    async def aend(self, *, commit: bool) -> None:
        """Commit it, or roll it back."""
        if not commit and self._within is None:
            return
        within, self._within = self._expect_open(), None
        connection = self._driver.connection
        await within.aclose()
        if connection is None:
            raise ClosedError
        is_lost = not connection.in_transaction
        await in_spite_of_cancelling(self._driver.release(connection, commit=commit and not is_lost))
        if commit and is_lost:
            raise lost_error(self._driver.settings)

    def close(self) -> None:
        """Do nothing: the block ends the transaction."""

    async def aclose(self) -> None:
        """Do nothing, as `close`."""

    def _expect_open(self) -> WithinOnLoop:
        if self._within is None:
            raise ClosedError("this transaction is not open: begin another one")
        return self._within
