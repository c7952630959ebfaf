"""Transactions as exchanges with the server: the statements that are sent together, and the consequences of their rows.

A `Conversation` is a flow that asks for statements to be sent together, receives the rows of each, and returns the
program's result. The driver that plays it rolls back when it raises.
"""

from collections.abc import Sequence
from typing import Any

from psycopg.errors import UniqueViolation

from threadmark.backends import Flow, Program, Step, StoreError, Transaction
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query

Conversation = Flow[Sequence[Query], Any]


def conversation(transaction: Transaction[Any]) -> Conversation:
    """Return the conversation that runs a program in one transaction.

    A program whose first statement is `likely_last` costs one round trip if it ends there: the statement is then the
    whole transaction. Otherwise the first statement is sent with BEGIN. A statement that failed because a row exists
    has added nothing: that counts as no rows, and it is not sent again.
    """
    program = transaction.begin()
    try:
        first = _query(next(program))
        if first.likely_last:
            failed = False
            try:
                (rows,) = yield (first,)
            except UniqueViolation:
                rows, failed = [], True
            program.send(rows)
            program.close()
            program = transaction.begin()
            first = _query(next(program))
            if failed:
                first = _query(program.send([]))
    except StopIteration as stop:
        return stop.value
    return (
        yield from _in_transaction(
            program, first, connections.BEGIN_WRITE if transaction.writes else connections.BEGIN_READ
        )
    )


def _in_transaction(program: Program[Any], first: Query, begin: str) -> Conversation:
    _, rows = yield (Query(begin), first)
    try:
        while True:
            step = _query(program.send(rows))
            (rows,) = yield (step,)
    except StopIteration as stop:
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
