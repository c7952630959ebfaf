"""The driver for a connection that you opened with aiosqlite. It only uses the connection's public interface."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import aiosqlite

from threadmark.backends import (
    ClosedError,
    ConfigError,
    Step,
    StoreError,
    Transaction,
    aplay,
    expect_outside,
    in_spite_of_cancelling,
    run_on_loop,
)
from threadmark_sqlite import migrations
from threadmark_sqlite.driver.connection import (
    MEMORY,
    NOT_OURS,
    Settings,
    connection_pragmas,
    path_in,
    reads_only,
    to_threadmark_error,
)
from threadmark_sqlite.driver.log import log
from threadmark_sqlite.driver.playing import plain_text
from threadmark_sqlite.driver.watch import ReplacedError, Watch
from threadmark_sqlite.migrations import is_current, is_made, migrate
from threadmark_sqlite.sql import connections
from threadmark_sqlite.steps import Direct, Many, Query, execute


class AiosqliteDriver:
    """Runs one program at a time on the event loop of the connection, which stays yours to close."""

    def __init__(self, connection: aiosqlite.Connection, settings: Settings) -> None:
        self._connection: aiosqlite.Connection | None = connection
        self._settings = settings
        self._loop = running_loop()
        self._turn = asyncio.Lock()
        self._prepared = False
        self._watch = Watch(settings)
        self._began = False
        """Whether an open transaction is this driver's: an interrupt may have kept it from ending it."""
        self._users_factory: Any = None
        self._process = os.getpid()

    def __str__(self) -> str:
        return str(self._settings)

    def run(self, transaction: Transaction[Any]) -> Any:
        """Let the connection's event loop run the program, while the caller waits on another thread.

        On the loop's own thread this would deadlock, so it is refused there.
        """
        expect_outside(self)
        try:
            return self.on_loop(partial(self._transact, transaction))
        finally:
            if log.noted:
                log.flush()

    def on_loop(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Let the connection's event loop do the work. Returns its result. Call it on another thread."""
        self._expect_own_process()
        loop = self._loop
        if loop is None or not loop.is_running() or loop is running_loop():
            raise ConfigError(
                "this saver was given an aiosqlite connection, which is used on its event loop: call "
                "the methods that start with 'a' there, or blocking ones on other threads while the loop runs; "
                "or give a path to use both everywhere"
            )
        return run_on_loop(work, loop)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction. Once begun it is finished, even if its task is cancelled."""
        self._expect_own_process()
        expect_outside(self)
        self._bind_to_loop()
        try:
            return await asyncio.shield(asyncio.ensure_future(self._transact(transaction)))
        finally:
            if log.noted:
                log.flush()

    @property
    def settings(self) -> Settings:
        """The file, if it is known already, and the options."""
        return self._settings

    @property
    def connection(self) -> aiosqlite.Connection | None:
        """The connection; None after `close`."""
        return self._connection

    async def hold(self) -> aiosqlite.Connection:
        """Begin a transaction over several calls, which `release` ends. Others wait. Returns the connection."""
        await self.arun(Transaction(execute, (connections.GET_WRITTEN,)))  # makes the tables
        await self._turn.acquire()
        try:
            connection = self._expect_free()
            self._began = True
            try:
                await connection.execute(connections.BEGIN_WRITE)
            except BaseException:
                await in_spite_of_cancelling(self._end(connection))
                raise
        except sqlite3.Error as error:
            self._turn.release()
            raise to_threadmark_error(error, self._settings) from error
        except BaseException:
            self._turn.release()
            raise
        return connection

    async def release(self, connection: aiosqlite.Connection, *, commit: bool) -> None:
        """End the transaction."""
        try:
            if commit:
                await connection.execute(connections.COMMIT)
                self._began = False
        except sqlite3.Error as error:
            raise to_threadmark_error(error, self._settings) from error
        finally:
            with suppress(sqlite3.Error):
                if self._began:
                    await self._end(connection)
            self._turn.release()

    def close(self) -> None:
        """Release the connection. It belongs to the user, so it stays open."""
        self._connection = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        expect_outside(self)
        async with self._turn:
            self.close()

    def _expect_own_process(self) -> None:
        """Raise in the child of a fork, in which the connection's thread does not run and would never answer."""
        if self._process != os.getpid():
            raise ClosedError("this saver's connection belongs to the process that forked; give a path")

    def _bind_to_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise ConfigError(
                    "this saver's aiosqlite connection is in use by another event loop: give a path instead, "
                    "then one saver serves any number of loops"
                )
            self._loop, self._turn = loop, asyncio.Lock()

    async def _transact(self, transaction: Transaction[Any]) -> Any:
        async with self._turn:
            connection = self._connection
            if connection is None:
                raise ClosedError
            try:
                if connection.text_factory is not plain_text:  # left by an interrupt
                    self._users_factory = connection.text_factory
            except ValueError as error:
                raise StoreError("the aiosqlite connection given is not open: await it, or give a path") from error
            try:
                if self._began:
                    await self._end(connection)
                elif self._has_transaction():
                    raise StoreError(_OPEN)
                connection.text_factory = plain_text
                return await self._run(connection, transaction)
            except ReplacedError as error:
                raise StoreError(
                    f"{self._settings} was replaced by another file while the connection given had it open: "
                    "nothing is read or stored; open a new connection, and a new saver on it"
                ) from error
            except sqlite3.Error as error:
                raise to_threadmark_error(error, self._settings) from error
            finally:
                connection.text_factory = self._users_factory

    async def _run(self, connection: aiosqlite.Connection, transaction: Transaction[Any]) -> Any:
        try:
            async with connection.cursor() as cursor:
                cursor.row_factory = None
                if not self._prepared and not await self._prepare(cursor, creates_tables=transaction.creates_tables):
                    return None
                self._watch.expect_there()
                result = await self._in_transaction(cursor, transaction)
                if transaction.reclaims_space:
                    await self._give_space_back(cursor)
                if transaction.writes:
                    self._watch.expect_kept()
                return result
        except BaseException:
            await in_spite_of_cancelling(self._end(connection))
            raise

    async def _end(self, connection: aiosqlite.Connection) -> None:
        """Roll back an open transaction, after the connection's thread has done everything that was queued before.

        Wait for that in any case: the thread dies if it has an answer for an event loop that is closed.
        """
        try:
            await connection.execute(connections.ROLLBACK if self._began else connections.FILES)
        except sqlite3.OperationalError:
            if self._has_transaction():
                raise
        self._began = False

    async def _prepare(self, cursor: aiosqlite.Cursor, *, creates_tables: bool) -> bool:
        """Set up the database. Returns False if it has no tables and must not get any."""
        self._settings = self._settings._replace(
            path=path_in(await asked(cursor, connections.FILES)) or self._settings.path
        )
        if not creates_tables and not await aplay(is_made(str(self._settings)), partial(execute_step, cursor)):
            return False
        for statement in connection_pragmas(self._settings):
            await cursor.execute(statement)
        # A query-only connection would change the kind of the log all the same.
        only_reads = reads_only(
            await asked(cursor, connections.READS_ONLY), await asked(cursor, connections.PLAN_OF_WRITING)
        )
        if not await aplay(is_current(str(self._settings), writes=not only_reads), partial(execute_step, cursor)):
            if only_reads:
                raise StoreError(f"{self._settings}{NOT_OURS}")
            await cursor.execute(connections.INCREMENTAL_VACUUM)
            await cursor.execute(connections.WRITE_AHEAD_LOG)
            begun = time.monotonic()
            migration = Transaction(migrate, (str(self._settings),), writes=True)
            found = await self._in_transaction(cursor, migration)
            log.note_migration(self._settings, found, migrations.CURRENT, begun)
        if self._settings.path != MEMORY:
            self._watch = Watch(self._settings)
            self._watch.learn()
        self._prepared = True
        return True

    async def _in_transaction(self, cursor: aiosqlite.Cursor, transaction: Transaction[Any]) -> Any:
        self._began = True
        begun = time.monotonic()
        await cursor.execute(connections.BEGIN_WRITE if transaction.writes else connections.BEGIN_READ)
        if transaction.writes:
            ((written,),) = await asked(cursor, connections.GET_WRITTEN)
            if written > migrations.CURRENT:
                await aplay(is_current(str(self._settings), writes=True), partial(execute_step, cursor))
        result = await aplay(transaction.begin(), partial(execute_step, cursor))
        await cursor.execute(connections.COMMIT)
        self._began = False
        if (seconds := time.monotonic() - begun) >= self._settings.slow:
            log.note_slow(self._settings, seconds, transaction)
        return result

    async def _give_space_back(self, cursor: aiosqlite.Cursor) -> None:
        """Like `connection.give_space_back`, for asyncio."""
        self._began = True
        try:
            await cursor.executescript(connections.GIVE_SPACE_BACK)
            await asked(cursor, connections.EMPTY_LOG)
        except sqlite3.OperationalError:
            if self._has_transaction():
                await cursor.execute(connections.ROLLBACK)
        self._began = False

    def _expect_free(self) -> aiosqlite.Connection:
        """Return the connection. Raises an error if it was released, or has a transaction of yours."""
        if self._connection is None:
            raise ClosedError
        if self._has_transaction():
            raise StoreError(_OPEN)
        return self._connection

    def _has_transaction(self) -> bool:
        return self._connection is not None and self._connection.in_transaction


_OPEN = "the connection given has an open transaction: commit it or roll it back first"


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def asked(cursor: aiosqlite.Cursor, question: str) -> list[Any]:
    """Execute a statement without parameters. Returns its rows."""
    return list(await (await cursor.execute(question)).fetchall())


async def execute_step(cursor: aiosqlite.Cursor, step: Step) -> Any:
    """Execute one step. Returns its rows."""
    if isinstance(step, Query):
        await cursor.execute(*step)
        return [tuple(row) for row in await cursor.fetchall()]
    if isinstance(step, Many):
        await cursor.executemany(*step)
        return []
    if isinstance(step, Direct):
        return None
    raise TypeError(f"the SQLite backend has no {type(step).__name__}")
