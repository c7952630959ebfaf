"""The steps of this backend's programs: a statement with its parameters, run once or for many rows."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from threadmark.backends import Program, Step

Rows = list[tuple[Any, ...]]


class _Statement(NamedTuple):
    sql: str
    params: Sequence[Any] = ()


class Query(_Statement, Step):
    """One statement."""

    __slots__ = ()


class Alone(Query):
    """A statement with which its program usually ends.

    As the first step of a program that reads, it is executed without a transaction, because it sees one snapshot by
    itself. If the program goes on, the driver begins the transaction and executes it once more; see
    `connection.committed`.
    """

    __slots__ = ()


class Many(_Statement, Step):
    """One statement that is executed for each item of `params`."""

    __slots__ = ()


Work = Callable[[Callable[..., Any], Any], Any]
"""Runs several statements at once, with a connection's `execute` and an argument."""


class _Call(NamedTuple):
    work: Work
    argument: Any


class Direct(_Call, Step):
    """Statements of which each depends only on how many rows the one before has changed.

    The answer is the result of the work; None means that nothing was done. A driver without a cursor of sqlite3 answers
    None, and the program goes on with other steps.
    """

    __slots__ = ()


def execute(sql: str, params: Sequence[Any] = ()) -> Program[Rows]:
    """Execute one statement. Returns its rows, an empty list if it gives none."""
    rows: Rows = yield Query(sql, params)
    return rows


def execute_alone(sql: str, params: Sequence[Any] = ()) -> Program[Rows]:
    """Like `execute`, for the first statement of a program that usually ends with it."""
    rows: Rows = yield Alone(sql, params)
    return rows


def executemany(sql: str, params: Sequence[Sequence[Any]]) -> Program[None]:
    """Execute one statement for each item of `params`."""
    if params:
        yield Many(sql, params)
