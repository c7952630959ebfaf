"""Running programs on connections, in transactions."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar

from threadmark.backends import Program, Step, Transaction, play
from threadmark.bounded_sqlite import fetched, reset_steps
from threadmark_sqlite import migrations
from threadmark_sqlite.sql import connections
from threadmark_sqlite.steps import Alone, Direct, Many, Query

T = TypeVar("T")

plain_text = methodcaller("decode", "utf-8", "surrogateescape")
"""Reads any text: damaged text must reach the row's check, which names its place, and not fail before."""


def committed(
    connection: sqlite3.Connection,
    transaction: Transaction[Any],
    waiting: Sequence[object] = (),
    join: Callable[[], None] | None = None,
) -> Any:
    """Run a program in a transaction, which is rolled back if anything fails. Returns its result.

    If callers are `waiting` at the time of the commit, `join` lets them share it.
    """
    try:
        reset_steps(connection)
        if transaction.writes:
            connection.execute(connections.BEGIN_WRITE)
            expect_own_form(connection)
            result, has_begun = play(transaction.begin(), partial(execute, connection)), True
        else:
            result, has_begun = _read(connection, transaction)
        if waiting and join is not None:
            join()
        if has_begun:
            connection.execute(connections.COMMIT)
    except BaseException:
        if connection.in_transaction:  # inline, because an interrupt could strike in a call of our own function
            connection.execute(connections.ROLLBACK)
        raise
    return result


def expect_own_form(connection: sqlite3.Connection) -> None:
    """Raise SchemaError if the file was switched to a form of a later release, in a transaction that will write."""
    ((written,),) = connection.execute(connections.GET_WRITTEN).fetchall()
    if written > migrations.CURRENT:
        raise migrations.refusal(connection)


def _read(connection: sqlite3.Connection, transaction: Transaction[Any]) -> tuple[Any, bool]:
    """Run a program that reads. Returns its result, and whether a transaction was begun for it."""
    snapshot = _Snapshot(connection)
    try:
        result = play(transaction.begin(), snapshot.answer)
    except _AnotherSnapshotError:
        result = play(transaction.begin(), partial(execute, connection))
    return result, snapshot.has_begun


class _AnotherSnapshotError(BaseException):
    """Another connection committed between a program's first statement and the beginning of its transaction.

    It is not an `Exception`, because that would be thrown into the program.
    """


class _Snapshot:
    """Answers the steps of a program that reads, all of them from one snapshot of the database.

    A single statement sees one snapshot. So the transaction begins only if the program asks for more than one `Alone`.
    Then that statement is executed again: if its answer is the same, the program's work so far holds in the
    transaction, too.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._alone: tuple[Alone, Any] | None = None
        """The statement that was executed without a transaction, and its answer."""
        self.has_begun = False

    def answer(self, step: Step) -> Any:
        connection, alone = self._connection, self._alone
        if not self.has_begun:
            if alone is None and isinstance(step, Alone):
                rows = execute(connection, step)
                self._alone = step, rows
                return rows
            connection.execute(connections.BEGIN_READ)
            self.has_begun = True
            if alone is not None and execute(connection, alone[0]) != alone[1]:
                raise _AnotherSnapshotError
        return execute(connection, step)


def end_transaction(connection: sqlite3.Connection) -> None:
    """Roll back an open transaction. An error or interrupt while another one was handled may leave one."""
    if connection.in_transaction:
        connection.execute(connections.ROLLBACK)


def played(connection: sqlite3.Connection, program: Program[T]) -> T:
    """Run a program. Returns its result."""
    return play(program, partial(execute, connection))


def execute(connection: sqlite3.Connection, step: Step) -> Any:
    """Execute one step. Returns its rows."""
    try:
        if isinstance(step, Direct):
            return step.work(connection.execute, step.argument)
        if isinstance(step, Query):
            # No variable may refer to the cursor: an error's traceback would keep it and its file open.
            return fetched(connection.execute(*step))
        if isinstance(step, Many):
            connection.cursor().executemany(*step)
            return []
    except (sqlite3.OperationalError, UnicodeDecodeError) as error:
        return again(connection, step, error)
    raise TypeError(f"the SQLite backend has no {type(step).__name__}")


def again(connection: sqlite3.Connection, step: Step, error: Exception) -> Any:
    """Execute a step that met damaged text once more, so that the text can be read. Raises any other error."""
    if isinstance(error, UnicodeDecodeError):
        # SQLite quotes damaged text in its message, which sqlite3 cannot read.
        damage = sqlite3.DatabaseError("the database's own structures are damaged")
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage from error
    if not _met_damaged_text(connection, error):
        raise error
    connection.text_factory = plain_text  # not from the beginning, because it takes longer than sqlite3's own decoding
    return execute(connection, step)


def _met_damaged_text(connection: sqlite3.Connection, error: Exception) -> bool:
    """Return whether sqlite3 could not decode a column. That is not an error of SQLite, so it has no code."""
    is_operational = isinstance(error, sqlite3.OperationalError)
    return is_operational and connection.text_factory is str and not hasattr(error, "sqlite_errorcode")
