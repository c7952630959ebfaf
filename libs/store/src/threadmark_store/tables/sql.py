"""Statements for SQLite and Postgres alike, which `tables.sqlite` and `tables.postgres` write as each wants them.

A parameter is `?` and its type, a table `tm.` and its name, and the place of a row `rowid`. Before a statement is
written, `{among}` stands for the condition that columns are those of one of several keys, and `{clauses}` for the
conditions of a scope.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

from threadmark.backends import Program, from_column, to_column
from threadmark_store.namespaces import bounds_below
from threadmark_store.shapes import ItemKey, Scope

Rows = list[tuple[Any, ...]]
Kind = Literal["text", "bigint", "bytea"]
Columns = Mapping[str, Kind]
"""The columns of a table by name, in the order of its rows."""

ITEM: tuple[Kind, Kind] = ("text", "text")
"""The columns of an item's key: its namespace, and the key."""


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
        self,
        statement: str,
        kinds: Sequence[Kind],
        keys: Sequence[Sequence[Any]],
        *params: Any,
        before: Sequence[Any] = (),
        last: bool = False,
    ) -> Program[Rows]:
        """Execute a statement with keys whose columns are of these kinds. `before` are parameters before the keys."""

    def add(
        self, table: str, columns: Columns, rows: Sequence[Sequence[Any]], conflict: str = "", *, last: bool = False
    ) -> Program[None]:
        """Add rows. `conflict` is the clause about rows that are there."""


class TableOfRows:
    """A table whose rows belong to items, of which each may have several."""

    table: str
    columns: ClassVar[Columns]

    def __init__(self, database: Database) -> None:
        self._database = database

    def exists(self) -> Program[bool]:
        return self._database.exists(self.table)

    def create(self) -> Program[None]:
        return self._database.create(self.table)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        return self._database.hold(keys)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        clauses, params = clauses_of(Scope(owner=owner))
        statement = f"DELETE FROM tm.store_{self.table} WHERE (namespace, key) {{among}} AND {clauses}"
        yield from self._database.among(statement, ITEM, keys, *params)

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


def packed(row: Sequence[Any], kinds: Iterable[Kind]) -> list[Any]:
    """Return the columns of a row, or of any other values of these kinds."""
    return [optional(each) if kind == "text" else each for each, kind in zip(row, kinds, strict=True)]


def key_in(namespace: str, key: str) -> ItemKey:
    """Return the key of columns."""
    return ItemKey(from_column(namespace), from_column(key))


def optional(text: str | None) -> str | None:
    """Return text as a column, NULL if there is none."""
    return None if text is None else to_column(text)


def from_optional(column: str | None) -> str | None:
    """Return the text of a column that may be NULL."""
    return None if column is None else from_column(column)
