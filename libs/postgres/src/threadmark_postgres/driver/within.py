"""Drivers for a transaction that is open already: your own, or that of a block of several calls.

Each program runs in a savepoint. No connection is replaced, because the transaction would be lost with it.
"""

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from threadmark.backends import (
    ClosedError,
    ConfigError,
    CorruptDataError,
    SchemaError,
    StoreError,
    ThreadmarkError,
    Transaction,
    TransientStoreError,
    Workers,
    aplay,
    may_be_interrupted,
    play,
    run_on_loop,
)
from threadmark_postgres import migrations
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver import aio, blocking
from threadmark_postgres.driver.cancellation import for_main_thread, in_order, in_use, on_thread
from threadmark_postgres.driver.conversation import in_savepoint
from threadmark_postgres.driver.failures import is_switched, passes, raise_encoding_error, to_threadmark_error
from threadmark_postgres.driver.settings import Settings
from threadmark_postgres.migrations import Found, format_of
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query, Rows

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

_ATTEMPTS = 4

_AT_ONCE = ("23505", "26000", "42P05")
"""Errors after which the program succeeds if it runs again: another client stored the same row, or the server has
forgotten a prepared statement."""

_UNDO = (Query(connections.ROLLBACK_TO), Query(connections.RELEASE))


class _Within:
    """The part that both kinds of connections share: which programs may run, and the meaning of errors."""

    may_hang = False

    def __init__(self, settings: Settings, *, is_ready: bool) -> None:
        self._settings = settings
        self._ready = is_ready
        """Whether the tables are known to have the format of this release."""
        self._process = os.getpid()
        self._closed = False
        self._sent = False
        """Whether there is a savepoint to undo if the running program fails."""

    def __str__(self) -> str:
        return f"{self._settings}, in a transaction"

    def _expect_usable(self, connection: AnyConnection) -> None:
        if self._closed:
            raise ClosedError("this saver was closed, or its transaction has ended")
        if self._process != os.getpid():
            raise ClosedError("this saver's connection belongs to the process that forked")
        if connection.closed:
            raise ClosedError(
                "the connection was closed or lost, and the transaction with it: repeat it on another one"
            )
        if blocking.is_pipelined(connection):
            raise StoreError("the connection given is in a pipeline: leave the block of its pipeline() first")
        status = connection.pgconn.transaction_status
        if status == TransactionStatus.INERROR:
            raise StoreError(
                "a statement of the transaction has failed, so nothing more can be done in it: roll it back"
            )
        if status == TransactionStatus.IDLE and connection.autocommit:
            raise StoreError(
                "the connection given has no open transaction: begin one, as by `with connection.transaction():`"
            )

    def _checking(self) -> Transaction[Found]:
        about = self._settings.schema, str(self._settings)
        return Transaction(format_of, about, {"writes": not self._settings.read_only})

    def _note_format(self, found: Found, transaction: Transaction[Any]) -> bool:
        """Note that the tables are there. Returns whether they are; raises SchemaError if the program needs them."""
        self._ready = found.number >= migrations.CURRENT
        if not self._ready and (found.number or transaction.creates_tables):
            raise SchemaError(
                f"{self._settings} has no tables of this release, which a transaction of yours cannot get: "
                "call setup() of the saver before it begins"
            )
        return self._ready

    def _meaning(self, error: psycopg.Error) -> ThreadmarkError:
        if is_switched(error):
            return SchemaError(f"{self._settings} was switched to another format: make a new saver of this release")
        if passes(error):
            words = " ".join(str(error).split()) or type(error).__name__
            return TransientStoreError(f"{self._settings}: {words}; roll the transaction back, and repeat it")
        return to_threadmark_error(error, self._settings)

    @staticmethod
    def _may_go_on(error: Exception, transaction: Transaction[Any], attempt: int) -> bool:
        """Whether to run a program again after its savepoint was undone.

        Each of its statements sees its own moment. If another client removes rows in between, a program that reads
        finds some of them missing.
        """
        if attempt == _ATTEMPTS:
            return False
        if isinstance(error, psycopg.Error):
            return error.sqlstate in _AT_ONCE
        return isinstance(error, CorruptDataError) and not transaction.writes


class WithinConnection(_Within):
    """Runs one program at a time in the transaction that is open on a blocking connection."""

    def __init__(
        self, connection: psycopg.Connection[Any], settings: Settings, workers: Workers, *, is_ready: bool = False
    ) -> None:
        super().__init__(settings, is_ready=is_ready)
        self._connection = connection
        self._workers = workers
        """The thread that works for the main thread and for event loops."""
        self._turn = threading.Lock()

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result."""
        work = partial(self._run, transaction)
        return for_main_thread(self._workers, work, waits=True) if may_be_interrupted() else work()

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio. Once begun it is finished, even if its task is cancelled."""
        return await on_thread(self._workers, partial(self._run, transaction))

    def close(self) -> None:
        """Release the connection, which stays open."""
        self._closed = True

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self._closed = True

    def _run(self, transaction: Transaction[Any]) -> Any:
        connection = self._connection
        with self._turn, in_use(connection):
            self._expect_usable(connection)
            try:
                if connection.pgconn.transaction_status == TransactionStatus.IDLE:
                    connection.execute(connections.NOTHING)
                if not self._ready:
                    blocking.check_encoding(connection)
                    register_dumpers(connection)
                    if not self._note_format(self._transact(connection, self._checking()), transaction):
                        return None
                return self._transact(connection, transaction)
            except UnicodeEncodeError as error:
                raise_encoding_error(error)
            except psycopg.Error as error:
                raise self._meaning(error) from error

    def _transact(self, connection: psycopg.Connection[Any], transaction: Transaction[Any]) -> Any:
        for attempt in range(1, _ATTEMPTS + 1):
            self._sent = False
            try:
                return play(in_savepoint(transaction), self._send)
            except BaseException as error:
                self._undo(connection)
                if not isinstance(error, Exception) or not self._may_go_on(error, transaction, attempt):
                    raise
        raise AssertionError  # the last attempt returns or raises

    def _send(self, batch: Sequence[Query]) -> list[Rows]:
        self._sent = True
        return blocking.send(self._connection, batch, prepare=self._settings.prepare)

    def _undo(self, connection: psycopg.Connection[Any]) -> None:
        if connection.closed or not self._sent:
            return
        if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
            connection.close()  # its answer has not come yet, and the server rolls back when the connection is closed
            return
        with suppress(psycopg.Error):  # the transaction stays failed then, so that nothing of it can be committed
            blocking.send(connection, _UNDO, prepare=False)


class WithinAsyncConnection(_Within):
    """Like `WithinConnection`, on the event loop of an asyncio connection."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], settings: Settings, *, is_ready: bool = False) -> None:
        super().__init__(settings, is_ready=is_ready)
        self._connection = connection
        self._loop = aio.running_loop()
        self._turn = asyncio.Lock()

    def run(self, transaction: Transaction[Any]) -> Any:
        """Let the connection's event loop run the program, while the caller waits on another thread."""
        loop = self._loop
        if loop is None or not loop.is_running() or loop is aio.running_loop():
            raise ConfigError(
                "this saver was given an asyncio connection, which is used on its event loop: call the methods that "
                "start with 'a' there, or blocking ones on other threads while the loop runs"
            )
        return run_on_loop(partial(self.arun, transaction), loop)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return await in_order(self._run(transaction))

    def close(self) -> None:
        """Release the connection, which stays open."""
        self._closed = True

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self._closed = True

    async def _run(self, transaction: Transaction[Any]) -> Any:
        connection = self._connection
        async with self._turn:
            self._expect_usable(connection)
            try:
                if connection.pgconn.transaction_status == TransactionStatus.IDLE:
                    await connection.execute(connections.NOTHING)
                if not self._ready:
                    blocking.check_encoding(connection)
                    register_dumpers(connection)
                    if not self._note_format(await self._transact(connection, self._checking()), transaction):
                        return None
                return await self._transact(connection, transaction)
            except UnicodeEncodeError as error:
                raise_encoding_error(error)
            except psycopg.Error as error:
                raise self._meaning(error) from error

    async def _transact(self, connection: psycopg.AsyncConnection[Any], transaction: Transaction[Any]) -> Any:
        for attempt in range(1, _ATTEMPTS + 1):
            self._sent = False
            try:
                return await aplay(in_savepoint(transaction), self._send)
            except BaseException as error:
                await self._undo(connection)
                if not isinstance(error, Exception) or not self._may_go_on(error, transaction, attempt):
                    raise
        raise AssertionError  # the last attempt returns or raises

    async def _send(self, batch: Sequence[Query]) -> list[Rows]:
        self._sent = True
        return await aio.send(self._connection, batch, prepare=self._settings.prepare)

    async def _undo(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if connection.closed or not self._sent:
            return
        if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
            connection.pgconn.finish()
            return
        with suppress(psycopg.Error):  # the transaction stays failed then, so that nothing of it can be committed
            await aio.send(connection, _UNDO, prepare=False)
