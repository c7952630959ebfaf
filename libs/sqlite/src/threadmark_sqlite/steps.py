"""The steps of this backend's programs: a statement with its parameters, once or for many rows."""

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


@dataclass(slots=True)
class Many(Step):
    """One statement that is executed for each item of `params`."""

    sql: str
    params: Sequence[Sequence[Any]]


def execute(sql: str, params: Sequence[Any] = ()) -> Program[Rows]:
    """Execute one statement. Returns its rows, an empty list if it gives none."""
    rows: Rows = yield Query(sql, params)
    return rows


def executemany(sql: str, params: Sequence[Sequence[Any]]) -> Program[None]:
    """Execute one statement for each item of `params`."""
    if params:
        yield Many(sql, params)
