"""The step of this backend's programs: a statement with its parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threadmark.backends import Program, Step

Rows = list[tuple[Any, ...]]


@dataclass(slots=True)
class Query(Step):
    """One statement."""

    sql: str
    params: Sequence[Any] = ()
    likely_last: bool = False
    """Whether the program will probably end with this statement.

    The driver then runs the statement as a transaction, and if the program goes on, starts the program again in a whole
    transaction. So such a statement must not change anything unless the program ends with it.
    """
    turn: tuple[str, ...] = ()
    """The statement's place among those that it may be sent with: all take rows in one order. Empty if it may not."""


def execute(sql: str, params: Sequence[Any] = (), *, likely_last: bool = False) -> Program[Rows]:
    """Execute one statement. Returns its rows, an empty list if it gives none."""
    rows: Rows = yield Query(sql, params, likely_last)
    return rows
