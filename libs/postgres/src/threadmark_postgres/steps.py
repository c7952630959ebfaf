"""The step of this backend's programs: a statement with its parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threadmark.program import Program, Step

Rows = list[tuple[Any, ...]]


@dataclass(slots=True)
class Query(Step):
    """One statement."""

    sql: str
    params: Sequence[Any] = ()
    likely_last: bool = False
    """Whether the program most likely ends with this statement.

    The driver then runs it as a transaction of its own, and starts the program anew in a whole transaction should it go
    on; so such a statement changes nothing unless the program ends with it.
    """
    turn: tuple[str, ...] = ()
    """Where it stands among those that it may travel with: all of them take rows in one order. Empty if it may not."""


def execute(sql: str, params: Sequence[Any] = (), *, likely_last: bool = False) -> Program[Rows]:
    """Execute one statement. Returns its rows, an empty list if it gives none."""
    rows: Rows = yield Query(sql, params, likely_last)
    return rows
