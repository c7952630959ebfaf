"""Limits on the work and memory that a SQLite file can demand of its reader.

In a crafted file a table may be a view, and pages may be in several places at once. Reading it may then never end, or
give more than there is memory for, although the file is small. So tables have to be tables, the steps of a transaction
are limited by the file's size, and so are the bytes that a statement may return.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain, count, repeat
from operator import length_hint
from pathlib import Path
from typing import Any

from threadmark.bounded_sqlite import sql
from threadmark.errors import SchemaError

Rows = list[tuple[Any, ...]]

_EVERY = 1_000_000
"""So many steps of SQLite's virtual machine are taken between two looks: 20 ms or more."""
_FREE_PORTIONS = 20
"""So many portions of that size any transaction may take, however small its file is."""
_STEPS_PER_BYTE = 100
"""Nothing that is read takes a tenth of it."""

FEW = 16
"""So many rows are taken without a look at how large they are. None has a value that is larger than the file: SQLite
looks at its length first."""
MUCH = 64_000_000
_TIMES = 4
"""So many times the size of a file may come from it by one statement."""


class BoundedConnection(sqlite3.Connection):
    """A connection whose transactions have an end. `reset_steps` is called before each.

    sqlite3 loses an exception of a signal handler that strikes while it asks whether to go on, and ends the statement
    instead. So no Python code answers for the first portions of steps, which are all that most transactions take.
    """

    _path: str | None = None
    _free = repeat(False, 0)
    """One for each portion that is left of the first ones."""

    def bound(self, path: str) -> None:
        """Bound the data read from the file with this path."""
        self._path = path
        self.restart()

    def restart(self) -> None:
        """Count the steps from the beginning, if any were counted."""
        if self._path is not None and length_hint(self._free) < _FREE_PORTIONS:
            self._free = repeat(False, _FREE_PORTIONS)
            others = map(partial(_is_too_many, self._path), count(1))
            self.set_progress_handler(chain(self._free, others).__next__, _EVERY)


def _is_too_many(path: str, portions: int) -> bool:
    """Return whether so many portions after the first ones are more than a file of this size needs."""
    real = Path(path).resolve()  # the log is next to the file, not next to a symbolic link
    size = sum(_size(f"{real}{end}") for end in ("", "-wal"))
    return portions * _EVERY > _STEPS_PER_BYTE * size


def reset_steps(connection: sqlite3.Connection) -> None:
    """Say that a transaction begins, of a connection that may be bounded."""
    if isinstance(connection, BoundedConnection):
        connection.restart()


def fetched(cursor: sqlite3.Cursor) -> Rows:
    """Return the rows of a statement. Raises sqlite3.DatabaseError if they cannot all be in the file."""
    rows: Rows = []
    size, most = 0, MUCH
    try:
        while True:
            some = cursor.fetchmany(FEW)
            if len(some) < FEW:
                return rows + some if rows else some
            rows += some
            size += sum(map(length_hint, chain.from_iterable(some)))  # 0 for a value without a length
            if size > most:
                most = expect_plausible(cursor.connection, size)
    except BaseException:
        cursor.close()  # or the connection would read this snapshot for as long as the traceback is kept
        raise


def expect_plausible(connection: sqlite3.Connection, size: int) -> int:
    """Return how many bytes a statement may give. Raises sqlite3.DatabaseError if these are more."""
    ((pages,),), ((page_bytes,),) = connection.execute(sql.PAGES), connection.execute(sql.PAGE_BYTES)
    most = MUCH + _TIMES * int(pages) * int(page_bytes)
    if size > most:
        raise damage("more is read from it than it has room for")
    return most


def damage(problem: str) -> sqlite3.DatabaseError:
    """Return the error of SQLite for a damaged file."""
    error = sqlite3.DatabaseError(problem)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def expect_plain_tables(connection: sqlite3.Connection, names: Iterable[str], path: str) -> None:
    """Raise SchemaError if one of these exists and is a view, or computes its columns or its stored values."""
    for name in names:
        columns = _columns(connection, name)
        computed = any(column[sql.COMPUTED] for column in columns)
        for kind, made in connection.execute(sql.SCHEMA_OF_TABLE, (name, name)).fetchall():
            virtual = _as_text(made).upper().startswith(sql.VIRTUAL)
            if _as_text(kind) not in ("table", "index") or computed or virtual:
                raise SchemaError(f"{path!r} has no plain table {name!r}, but one that is computed: it is not read")


def _columns(connection: sqlite3.Connection, table: str) -> Rows:
    """Return the columns of a table. This is the first statement that reads the schema."""
    try:
        return connection.execute(sql.COLUMNS.format(name=table)).fetchall()
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged schema, and sqlite3 cannot read that
        raise damage(f"its schema is damaged ({error})") from error


def _as_text(column: str | bytes) -> str:
    """A text, with any text factory of the connection."""
    return column if isinstance(column, str) else column.decode("utf-8", "replace")


def _size(path: str) -> int:
    with suppress(OSError):
        return Path(path).stat().st_size
    return 0
