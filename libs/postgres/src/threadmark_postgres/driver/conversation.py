"""Transactions as exchanges with the server: the statements that are sent together, and the consequences of their rows.

A `Conversation` is a flow that asks for statements to be sent together, receives the rows of each, and returns the
program's result. The driver that plays it rolls back when it raises.
"""

from collections.abc import Sequence
from typing import Any

from psycopg.errors import InvalidParameterValue, OperationalError, SerializationFailure, UniqueViolation

from threadmark.backends import Flow, Program, Step, StoreError, Transaction
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query

Conversation = Flow[Sequence[Query], Any]


class LostCommit:
    """The commit of an operation whose answer has not come. The next attempt asks the server about it first.

    A program that was run again after its commit would see its own changes: it would report that it removed nothing.
    """

    __slots__ = ("number", "result")

    def __init__(self) -> None:
        self.number: Sequence[Any] = ()
        """The transaction that was told to commit, as `NUMBER` tells it, empty if there is none."""
        self.result: Any = None
        """The result of its program."""

    def was_carried_out(self) -> Flow[Sequence[Query], bool]:
        """Ask the server. Raises OperationalError, as a lost connection does, if it is not decided yet.

        The number is kept, because a server that cannot know, such as a standby, may be asked before one that does.
        """
        if not self.number:
            return False
        try:
            ((status,),), *_ = yield (Query(connections.STATUS, self.number),)
        except InvalidParameterValue:  # the server has never had it
            status = None
        if status == "in progress":
            raise OperationalError("the server is still carrying out a commit whose answer was lost")
        return bool(status == "committed")


def conversation(transaction: Transaction[Any], lost: LostCommit | None = None) -> Conversation:
    """Return the conversation that runs a program in one transaction.

    A program whose first statement is `likely_last` costs one round trip if it ends there: the statement is then the
    whole transaction, of the default isolation level. Otherwise the first statement is sent with BEGIN: also after it
    asked for that, or failed because of the level. A statement that failed because a row exists has added nothing: that
    counts as no rows, and it is not sent again. `lost` is the same in all attempts.
    """
    lost = lost or LostCommit()
    if (yield from lost.was_carried_out()):
        return lost.result
    program = transaction.begin()
    try:
        first = _query(next(program))
        if first.likely_last:
            failed = False
            try:
                (rows,) = yield (first,)
                program.send(rows)
            except UniqueViolation:
                failed = True
            except SerializationFailure:  # because of the default isolation level: it would fail again
                pass
            program.close()
            program = transaction.begin()
            first = _query(next(program))
            if failed:
                first = _query(program.send([]))
    except StopIteration as stop:
        return stop.value
    return (yield from _in_transaction(program, first, lost if transaction.writes else None))


def _in_transaction(program: Program[Any], first: Query, lost: LostCommit | None) -> Conversation:
    begin = (Query(connections.BEGIN_WRITE), Query(connections.NUMBER)) if lost else (Query(connections.BEGIN_READ),)
    _, *numbers, rows = yield (*begin, first)
    try:
        while True:
            step = _query(program.send(rows))
            (rows,) = yield (step,)
    except StopIteration as stop:
        if lost:
            lost.number, lost.result = numbers[0][0], stop.value
        yield (Query(connections.COMMIT),)
        return stop.value
    finally:
        program.close()


def in_savepoint(transaction: Transaction[Any]) -> Conversation:
    """Return the conversation that runs a program in the transaction that is open already.

    If it raises, the driver undoes the savepoint. Raises StoreError if the program writes, and the transaction goes on
    seeing the database as it was at the beginning: a change must see what was there when it got its lock.
    """
    program = transaction.begin()
    try:
        first = _query(next(program))
    except StopIteration as stop:
        return stop.value
    try:
        opening = (Query(connections.SAVEPOINT), *([Query(connections.ISOLATION)] if transaction.writes else []))
        try:
            _, *isolation, rows = yield (*opening, first)
        except UniqueViolation:
            if not first.likely_last:
                raise
            _, *isolation = yield (Query(connections.ROLLBACK_TO), *opening[1:])
            rows = []
        if isolation and isolation[0][0][0] != _NEEDED:
            raise StoreError(
                f"the transaction of the connection given has the isolation level {isolation[0][0][0].upper()}, in "
                f"which nothing can be stored safely: begin it with {_NEEDED.upper()}"
            )
        while True:
            step = _query(program.send(rows))
            (rows,) = yield (step,)
    except StopIteration as stop:
        yield (Query(connections.RELEASE),)
        return stop.value
    finally:
        program.close()


_NEEDED = "read committed"


def _query(step: Step) -> Query:
    if not isinstance(step, Query):
        raise TypeError(f"the Postgres backend has no {type(step).__name__}")
    return step
