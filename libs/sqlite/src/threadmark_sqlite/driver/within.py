"""The driver for a transaction of yours, on a sqlite3 connection: you begin it, and you commit or roll back."""

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from threadmark.backends import ClosedError, ConfigError, ReadOnlyError, SchemaError, StoreError, Transaction
from threadmark_sqlite.driver.connection import MEMORY, READ_ONLY, Settings
from threadmark_sqlite.driver.playing import plain_text, played
from threadmark_sqlite.driver.savepoints import Savepoints, meaning_of
from threadmark_sqlite.driver.watch import ReplacedError, Watch
from threadmark_sqlite.migrations import is_current
from threadmark_sqlite.sql import connections


class WithinDriver:
    """Runs one program at a time on your connection, on the caller's thread. It changes none of its settings."""

    may_hang = False

    def __init__(self, connection: sqlite3.Connection, settings: Settings) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._settings = settings
        self._savepoints = Savepoints(settings)
        self._turn = threading.Lock()
        self._prepared = False
        self._watch = Watch(settings)
        if settings.path != MEMORY:
            self._watch.learn()
        self._process = os.getpid()

    def __str__(self) -> str:
        return f"{self._settings}, in a transaction"

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program and return its result."""
        if self._process != os.getpid():
            raise ClosedError("this saver's connection belongs to the process that forked")
        if transaction.writes and self._settings.read_only:
            raise ReadOnlyError(f"{self._settings}{READ_ONLY}")
        with self._turn:
            try:
                return self._run(transaction)
            except ReplacedError as error:
                raise replaced_error(self._settings) from error
            except sqlite3.ProgrammingError as error:
                raise StoreError(f"the connection given cannot be used here ({error})") from error
            except sqlite3.Error as error:
                raise meaning_of(error, self._settings) from error

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio. It waits for the disk as your own statements do."""
        return self.run(transaction)

    def close(self) -> None:
        """Release the connection, which stays open."""
        self._connection = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def _run(self, transaction: Transaction[Any]) -> Any:
        connection = self._connection
        if connection is None:
            raise ClosedError
        self._savepoints.expect_whole(connection)
        self._expect_transaction(connection, writes=transaction.writes)
        self._watch.expect_there()
        if not self._prepared:
            if not self._is_current(connection) and not transaction.creates_tables:
                return None
            if not self._prepared:
                raise tables_error(self._settings)
        return self._savepoints.play_as_ours(connection, transaction)

    def _expect_transaction(self, connection: sqlite3.Connection, *, writes: bool) -> None:
        """Raise StoreError unless you have begun a transaction. Begin one where sqlite3 itself would."""
        if connection.in_transaction:
            return
        if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
            raise no_transaction_error()
        if writes:
            connection.execute(connections.BEGIN_WRITE)

    def _is_current(self, connection: sqlite3.Connection) -> bool:
        text_factory, row_factory = connection.text_factory, connection.row_factory
        try:
            connection.text_factory, connection.row_factory = plain_text, None
            self._prepared = played(connection, is_current(str(self._settings), writes=not self._settings.read_only))
        finally:
            connection.text_factory, connection.row_factory = text_factory, row_factory
        return self._prepared


def expect_own_file(path: str, settings: Settings) -> None:
    """Raise ConfigError unless a connection's main database, which has this path, is the saver's file."""
    with suppress(OSError):
        if path and Path(path).samefile(settings.path):
            return
    database = f"the file {path!r}" if path else "a database in memory"
    raise ConfigError(
        f"the connection given has {database} as its main database, and this saver has {settings.path!r}: "
        "open a connection to that file"
    )


def tables_error(settings: Settings) -> SchemaError:
    """Return the error for a database without the tables of this release."""
    return SchemaError(
        f"{settings} has no tables of this release, which a transaction of yours cannot get: "
        "call setup() of the saver before it begins"
    )


def no_transaction_error() -> StoreError:
    """Return the error for a connection in autocommit mode."""
    return StoreError(
        "the connection given has no open transaction: execute BEGIN IMMEDIATE first, then COMMIT or ROLLBACK"
    )


def replaced_error(settings: Settings) -> StoreError:
    """Return the error for a file that another one has replaced."""
    return StoreError(
        f"{settings} was replaced by another file while the connection given had it open: open a new connection"
    )
