"""Statements for SQLite and Postgres alike, which `tables.sqlite` and `tables.postgres` write as each wants them.

A parameter is `?` and its type, a table `tm.` and its name, and the place of a row `rowid`. Before a statement is
written, `{among}` stands for the condition that columns are those of one of several keys, and `{clauses}` for the
conditions of a scope.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from threadmark.backends import CorruptDataError, Program, from_column, to_column
from threadmark_store.namespaces import bounds_below
from threadmark_store.shapes import Cursor, ItemKey, Scope

Rows = list[tuple[Any, ...]]
Kind = Literal["text", "bigint", "bytea"]
Columns = Mapping[str, Kind]
"""The columns of a table by name, in the order of its rows."""

Keys = Sequence[Sequence[str | bytes]]
"""The columns of keys: an item's namespace and key as they are, or a single column."""

_KEYS = """
SELECT DISTINCT namespace, key
FROM tm.store_{table}
WHERE (namespace, key) > (?text, ?text)
ORDER BY namespace, key
LIMIT ?bigint
"""
_KEYS_AT_ONCE = 256


class Database(Protocol):
    """A database with tables of a store. Each method is a program of the saver's own driver."""

    def any_of(self, query: str) -> str:
        """Return the condition that a column is in the result of a query."""

    def free(self, query: str) -> str:
        """Like `any_of`, without the rows that others have locked. Locks the rows."""

    def exists(self, table: str) -> Program[bool]:
        """Return whether a table exists."""

    def create(self, table: str) -> Program[None]:
        """Create a table if it is missing. Raises StoreError if that is not allowed."""

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        """Lock items until the end of the transaction, if the database does not do so anyway."""

    def lock(self, table: str) -> Program[None]:
        """Wait for all others that change a table, and keep them from it, if the database does not do so anyway."""

    def select(self, statement: str, *params: Any, last: bool = False) -> Program[Rows]:
        """Execute a statement. With `last`, the program usually ends with it."""

    def among(
        self, statement: str, keys: Keys, *params: Any, before: Sequence[Any] = (), last: bool = False
    ) -> Program[Rows]:
        """Execute a statement with keys. `before` are parameters that stand before them."""

    def add(
        self, table: str, columns: Columns, rows: Sequence[Sequence[Any]], conflict: str = "", *, last: bool = False
    ) -> Program[None]:
        """Add rows. `conflict` is the clause about rows that are there."""


class Table:
    """A table of a database."""

    table: ClassVar[str]

    def __init__(self, database: Database) -> None:
        self._database = database

    def exists(self) -> Program[bool]:
        return self._database.exists(self.table)

    def create(self) -> Program[None]:
        return self._database.create(self.table)


class TableOfRows(Table):
    """A table whose rows belong to items, of which each may have several."""

    columns: ClassVar[Columns]

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        return self._database.hold(keys)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        clauses, params = clauses_of(Scope(owner=owner))
        statement = f"DELETE FROM tm.store_{self.table} WHERE (namespace, key) {{among}} AND {clauses}"
        yield from self._database.among(statement, keys, *params)

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        rows = yield from self._database.select(_KEYS.format(table=self.table), *(cursor or ("", "")), _KEYS_AT_ONCE)
        return [key_in(*columns) for columns in rows], rows[-1] if len(rows) == _KEYS_AT_ONCE else None

    def _replace(self, keys: Sequence[ItemKey], rows: Sequence[Sequence[Any]]) -> Program[None]:
        # The items were put by the same transaction, so no other one adds the same rows.
        yield from self.delete(keys, None)
        yield from self._database.add(self.table, self.columns, rows)


def clauses_of(scope: Scope) -> tuple[str, tuple[Any, ...]]:
    """Return the condition of a scope's namespaces and owner, and its parameters."""
    clauses, params = ["true"], list[Any]()
    if scope.prefix:
        prefix = to_column(scope.prefix)
        first, end = bounds_below(prefix)
        clauses.append("namespace >= ?text AND namespace < ?text AND (namespace = ?text OR namespace >= ?text)")
        params += [prefix, end, prefix, first]
    if scope.owner is not None:
        clauses.append("owner = ?text")
        params.append(to_column(scope.owner))
    return " AND ".join(clauses), tuple(params)


def columns_of(key: ItemKey) -> tuple[str, str]:
    """Return the columns of a key."""
    return to_column(key.namespace), to_column(key.key)


def packed(row: Iterable[Any]) -> list[Any]:
    """Return the columns of a row."""
    return [to_column(each) if isinstance(each, str) else each for each in row]


def key_in(namespace: Any, key: Any) -> ItemKey:
    """Return the key of columns. Raises CorruptDataError if they are no text: no page could continue behind them."""
    return ItemKey(name_in(namespace), name_in(key))


def name_in(column: Any) -> str:
    """Return a part of a key. Raises CorruptDataError if a damaged file has anything but text there."""
    if type(column) is not str:
        raise CorruptDataError(
            f"a row of a store has {type(column).__name__} where a namespace or a key belongs: remove the row"
        )
    return from_column(column)


def text_in(column: Any) -> str:
    """Return the text of a column. A damaged file may have anything there, which becomes another text."""
    return from_column(column) if type(column) is str else f"\ufffd{type(column).__name__}"


def number_in(column: Any) -> int:
    """Return the number of a column. A damaged file may have anything there, which becomes 0."""
    return column if type(column) is int else 0


def bytes_in(column: Any) -> bytes:
    """Return the bytes of a column. A damaged file may have anything there, which becomes bytes that are no value."""
    return column if type(column) is bytes else b"\xff"


def optional(text: str | None) -> str | None:
    """Return text as a column, NULL if there is none."""
    return None if text is None else to_column(text)


def from_optional(column: Any) -> str | None:
    """Return the text of a column that may be NULL, as `text_in` does."""
    return None if column is None else text_in(column)
