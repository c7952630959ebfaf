"""Programs in a transaction that is open already: in a block of several calls, or in your own transaction."""

import sqlite3
import threading
from contextlib import suppress
from functools import partial
from typing import Any

from threadmark.backends import StoreError, ThreadmarkError, Transaction, TransientStoreError, play
from threadmark.bounded_sqlite import reset_steps
from threadmark_sqlite.driver.connection import Settings, to_threadmark_error
from threadmark_sqlite.driver.playing import execute, expect_own_form, plain_text
from threadmark_sqlite.driver.waiting import is_busy
from threadmark_sqlite.sql import connections


class Savepoints:
    """Plays programs in the open transaction of a connection, one at a time. One that fails leaves nothing behind."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = threading.Lock()
        self._unfinished = False
        """Whether a program has not ended: an interrupt may have kept it from being undone."""
        self._lost = False
        """Whether SQLite rolled the whole transaction back after an error."""

    def play(self, connection: sqlite3.Connection, transaction: Transaction[Any]) -> Any:
        """Run a program. Returns its result."""
        self.expect_whole(connection)
        reset_steps(connection)
        was_open = connection.in_transaction
        try:
            if self._unfinished:
                self._undo(connection)
            self._unfinished = True
            connection.execute(connections.SAVEPOINT)
            if transaction.writes:
                expect_own_form(connection)
            result = play(transaction.begin(), partial(execute, connection))
            connection.execute(connections.RELEASE)
            self._unfinished = False
        except BaseException as error:
            self._lost = was_open and not connection.in_transaction
            self._undo(connection)
            if isinstance(error, sqlite3.Error):
                raise meaning_of(error, self._settings) from error
            raise
        return result

    def play_as_ours(self, connection: sqlite3.Connection, transaction: Transaction[Any]) -> Any:
        """Like `play`, on a connection of yours, whose factories are restored."""
        text_factory, row_factory = connection.text_factory, connection.row_factory
        try:
            connection.text_factory, connection.row_factory = plain_text, None
            return self.play(connection, transaction)
        finally:
            connection.text_factory, connection.row_factory = text_factory, row_factory

    def expect_whole(self, connection: sqlite3.Connection) -> None:
        """Raise StoreError if SQLite has rolled the transaction back."""
        if self._lost and not connection.in_transaction:
            raise lost_error(self._settings)

    def _undo(self, connection: sqlite3.Connection) -> None:
        """Undo the program that has not ended."""
        if connection.in_transaction:
            with suppress(sqlite3.OperationalError):  # there is no savepoint if the program had not begun
                connection.execute(connections.ROLLBACK_TO)
                connection.execute(connections.RELEASE)
        self._unfinished = False


def lost_error(settings: Settings) -> StoreError:
    """Return the error of a call after SQLite has rolled the whole transaction back."""
    return StoreError(f"{settings}: SQLite rolled the whole transaction back after an error: begin it again")


def meaning_of(error: sqlite3.Error, settings: Settings) -> ThreadmarkError:
    """Return the Threadmark error for an error of SQLite in an open transaction."""
    if is_busy(error):
        return TransientStoreError(
            f"{settings} is locked by another connection, or another one has stored something since this transaction "
            "began to read: roll it back, begin it with BEGIN IMMEDIATE, and repeat it"
        )
    return to_threadmark_error(error, settings)
