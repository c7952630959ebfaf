"""Transactions over several calls, each on a connection that it keeps until the block ends."""

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus

from threadmark.backends import (
    ClosedError,
    ConfigError,
    StoreError,
    ThreadmarkError,
    Transaction,
    TransientStoreError,
    in_spite_of_cancelling,
    may_be_interrupted,
)
from threadmark_postgres.driver import aio, blocking
from threadmark_postgres.driver.cancellation import for_main_thread, in_order, in_use, on_thread
from threadmark_postgres.driver.failures import passes, to_threadmark_error
from threadmark_postgres.driver.within import WithinAsyncConnection, WithinConnection
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query

if TYPE_CHECKING:
    from threadmark_postgres.driver.driver import PostgresDriver

_BEGIN, _COMMIT, _ROLLBACK = (
    (Query(each),) for each in (connections.BEGIN_WRITE, connections.COMMIT, connections.ROLLBACK)
)


class HeldTransaction:
    """A transaction over several calls. The API that begins it decides the kind of its connection."""

    may_hang = False

    def __init__(self, driver: "PostgresDriver") -> None:
        self._driver = driver
        self._loan: Any = None
        """The context that holds the connection."""
        self._connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any] | None = None
        self._within: WithinConnection | WithinAsyncConnection | None = None
        self._process = os.getpid()

    def __str__(self) -> str:
        return f"{self._driver}, in a transaction"

    def __del__(self) -> None:
        """Give the connection up, if an interrupt came between the beginning and the block."""
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            connection.pgconn.finish()
            if isinstance(connection, psycopg.Connection):
                self._loan.__exit__(None, None, None)

    def begin(self) -> None:
        """Begin it on a connection of the saver, after waiting for a free one if it has to."""
        if self._driver.is_on_loop:
            raise ConfigError("this saver was given an asyncio connection or pool: use `async with`")
        self._on_this_thread(self._begin)

    async def abegin(self) -> None:
        """Like `begin`, for asyncio."""
        try:
            if self._driver.is_on_threads:
                await on_thread(self._driver.workers, self._begin)
            else:
                await in_order(self._abegin())
        except BaseException:
            await in_spite_of_cancelling(self.aend(commit=False))
            raise

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result."""
        return self._expect_open().run(transaction)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        return await self._expect_open().arun(transaction)

    def end(self, *, commit: bool) -> None:
        """Commit it, or roll it back."""
        self._on_this_thread(partial(self._end, commit=commit))

    async def aend(self, *, commit: bool) -> None:
        """Like `end`, for asyncio."""
        if isinstance(self._within, WithinConnection):
            await on_thread(self._driver.workers, partial(self._end, commit=commit))
        else:
            await in_spite_of_cancelling(self._aend(commit=commit))

    def close(self) -> None:
        """Do nothing: the block ends the transaction."""

    async def aclose(self) -> None:
        """Do nothing, as `close`."""

    def _on_this_thread(self, work: Any) -> None:
        """Do the work, on another thread for the main one, on which an interrupt could come at any instruction."""
        if may_be_interrupted():
            for_main_thread(self._driver.main_threads_own, work, waits=True)
        else:
            work()

    def _begin(self) -> None:
        try:
            self._begin_once()
        except psycopg.Error:
            self._driver.check()  # tries for the saver's timeout, and leaves broken connections behind
            try:
                self._begin_once()
            except psycopg.Error as error:
                raise to_threadmark_error(error, self._driver.settings) from error

    def _begin_once(self) -> None:
        loan = self._driver.lent()
        connection = loan.__enter__()
        try:
            with in_use(connection):
                blocking.send(connection, _BEGIN, prepare=False)
        except BaseException as error:
            loan.__exit__(type(error), error, error.__traceback__)
            raise
        self._loan, self._connection = loan, connection
        workers = self._driver.main_threads_own
        self._within = WithinConnection(connection, self._driver.settings, workers, is_ready=True)

    async def _abegin(self) -> None:
        try:
            await self._abegin_once()
        except psycopg.Error:
            await self._driver.acheck()
            try:
                await self._abegin_once()
            except psycopg.Error as error:
                raise to_threadmark_error(error, self._driver.settings) from error

    async def _abegin_once(self) -> None:
        loan = self._driver.alent()
        connection = await loan.__aenter__()
        try:
            await aio.send(connection, _BEGIN, prepare=False)
        except BaseException as error:
            await loan.__aexit__(type(error), error, error.__traceback__)
            raise
        self._loan, self._connection = loan, connection
        self._within = WithinAsyncConnection(connection, self._driver.settings, is_ready=True)

    def _end(self, *, commit: bool) -> None:
        connection, self._connection, within, self._within = self._connection, None, self._within, None
        if not isinstance(connection, psycopg.Connection) or within is None:
            if commit:
                raise _ended()
            return
        within.close()
        try:
            if commit:
                self._expect_sound(connection)
                with in_use(connection):
                    blocking.send(connection, _COMMIT, prepare=False)
        except psycopg.Error as error:
            raise self._commit_error(error) from error
        finally:
            if not connection.closed and not blocking.is_free(connection):
                with suppress(psycopg.Error):
                    blocking.send(connection, _ROLLBACK, prepare=False)
            if not blocking.is_free(connection):
                connection.close()
            self._loan.__exit__(None, None, None)

    async def _aend(self, *, commit: bool) -> None:
        connection, self._connection, within, self._within = self._connection, None, self._within, None
        if not isinstance(connection, psycopg.AsyncConnection) or within is None:
            if commit:
                raise _ended()
            return
        await within.aclose()
        try:
            if commit:
                self._expect_sound(connection)
                await aio.send(connection, _COMMIT, prepare=False)
        except psycopg.Error as error:
            raise self._commit_error(error) from error
        finally:
            if not connection.closed and not blocking.is_free(connection):
                with suppress(psycopg.Error):
                    await aio.send(connection, _ROLLBACK, prepare=False)
            if not blocking.is_free(connection):
                connection.pgconn.finish()
            await self._loan.__aexit__(None, None, None)

    def _expect_sound(self, connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        """Raise an error if the server would answer a commit with a rollback."""
        if connection.closed:
            raise TransientStoreError(
                f"{self._driver.settings}: the connection was lost, and the transaction with it: repeat it"
            )
        if connection.pgconn.transaction_status != TransactionStatus.INTRANS:
            raise StoreError(f"{self._driver.settings}: a statement of the transaction failed, so it was rolled back")

    def _commit_error(self, error: psycopg.Error) -> ThreadmarkError:
        if not passes(error):
            return to_threadmark_error(error, self._driver.settings)
        words = " ".join(str(error).split()) or type(error).__name__
        return TransientStoreError(
            f"{self._driver.settings}: the answer to the commit was lost ({words}), which may have been carried out: "
            "repeat the transaction, which stores nothing twice"
        )

    def _expect_open(self) -> WithinConnection | WithinAsyncConnection:
        if self._process != os.getpid():
            raise ClosedError("this transaction belongs to the process that forked")
        if self._within is None:
            raise _ended()
        return self._within


def _ended() -> ClosedError:
    return ClosedError("this transaction is not open: begin another one")
