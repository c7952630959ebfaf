"""The driver for a database in memory, which has one connection: one program at a time, on the caller's thread."""

import os
import sqlite3
from contextlib import suppress
from typing import Any

from threadmark.backends import ClosedError, StoreError, Transaction, Turn, close_at_exit, expect_outside, was_closed
from threadmark_sqlite.driver.connection import (
    NotThereError,
    Settings,
    expect_made,
    give_space_back,
    prepare,
    to_threadmark_error,
    transact,
)
from threadmark_sqlite.driver.log import log
from threadmark_sqlite.driver.playing import end_transaction, plain_text
from threadmark_sqlite.sql import connections
from threadmark_sqlite.steps import execute


class SharedDriver:
    """Runs one program at a time on a single connection, on the caller's thread."""

    may_hang = False

    def __init__(self, connection: sqlite3.Connection, settings: Settings, *, owned: bool) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._settings = settings
        self._owned = owned
        self._process = os.getpid()
        self._turn = Turn()
        self._prepared = False
        if owned:
            close_at_exit(self)

    def __str__(self) -> str:
        return str(self._settings)

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        self.expect_own_process()
        expect_outside(self)
        try:
            with self._turn.lock:
                self._turn.wait()
                return self._run_alone(transaction)
        finally:
            if log.noted:
                log.flush()

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio. The database is in memory: this only waits for a transaction over several calls."""
        await self.until_free()
        return self.run(transaction)

    def hold(self, holder: object) -> sqlite3.Connection:
        """Begin a transaction over several calls, which `release` ends. Other callers wait. Returns the connection."""
        self.run(Transaction(execute, (connections.GET_WRITTEN,)))  # makes the tables
        with self._turn.lock:
            self._turn.wait()
            connection = self._open_connection()
            try:
                connection.execute(connections.BEGIN_WRITE)
                self._turn.holder = holder
            except BaseException as error:
                with suppress(sqlite3.Error):
                    end_transaction(connection)
                if isinstance(error, sqlite3.Error):
                    raise to_threadmark_error(error, self._settings) from error
                raise
            return connection

    def release(self, holder: object, *, commit: bool) -> None:
        """End the transaction, if it has not ended."""
        connection = self._connection
        if connection is None or self._turn.holder is not holder:
            return
        try:
            if commit:
                connection.execute(connections.COMMIT)
        except sqlite3.Error as error:
            raise to_threadmark_error(error, self._settings) from error
        finally:
            with suppress(sqlite3.Error):
                end_transaction(connection)
            self._turn.give_back(holder)

    async def until_free(self) -> None:
        """Wait until no transaction over several calls is open."""
        expect_outside(self)
        await self._turn.until_free()

    @property
    def settings(self) -> Settings:
        """The options."""
        return self._settings

    @property
    def connection(self) -> sqlite3.Connection | None:
        """The connection to the database; None after `close`."""
        return self._connection

    def close(self) -> None:
        """Close the connection, unless it is the user's."""
        if self._process != os.getpid():
            return
        expect_outside(self)
        with self._turn.lock:
            self._turn.wait()
            connection, self._connection = self._connection, None
            if connection is not None and self._owned:
                connection.close()
        was_closed(self)

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self.until_free()
        self.close()

    def expect_own_process(self) -> None:
        """Raise in the child of a fork. Call it before taking a lock: the fork may have copied a held one."""
        if self._process != os.getpid():
            raise ClosedError("this saver's database is in the memory of the process that forked; use a file")

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ClosedError
        return self._connection

    def _run_alone(self, transaction: Transaction[Any]) -> Any:
        connection = self._open_connection()
        try:
            return self._run(connection, transaction)
        except NotThereError:
            return None
        except sqlite3.ProgrammingError as error:
            raise StoreError(
                f"the connection given cannot be used here ({error}): "
                "open it with check_same_thread=False, or give a path"
            ) from error
        except sqlite3.Error as error:
            raise to_threadmark_error(error, self._settings) from error

    def _run(self, connection: sqlite3.Connection, transaction: Transaction[Any]) -> Any:
        """Like `run`, on the connection, whose factories are restored.

        A context manager would not do: an interrupt may come after it has changed the connection and before its block
        begins.
        """
        if self._owned:
            end_transaction(connection)
        elif connection.in_transaction:
            raise StoreError("the connection given has an open transaction: commit it or roll it back first")
        text_factory, row_factory = connection.text_factory, connection.row_factory
        try:
            connection.text_factory, connection.row_factory = plain_text, None
            if not self._prepared:
                if not transaction.creates_tables:
                    expect_made(connection, self._settings)
                prepare(connection, self._settings)
                self._prepared = True
            result = transact(connection, transaction, self._settings)
            if transaction.reclaims_space:
                give_space_back(connection)
            return result
        finally:
            connection.text_factory, connection.row_factory = text_factory, row_factory
