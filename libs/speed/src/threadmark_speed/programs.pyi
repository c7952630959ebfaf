import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

from threadmark.program import Program, Step

_T = TypeVar("_T")

def played(
    connection: sqlite3.Connection,
    program: Program[_T],
    query: type,
    direct: type,
    execute: Callable[[sqlite3.Connection, Step], Any],
    again: Callable[[sqlite3.Connection, Step, Exception], Any],
) -> _T: ...
