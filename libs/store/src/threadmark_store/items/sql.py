"""Items in a table of SQLite or Postgres: the questions that are the same for both.

A namespace sorts by code points, so the ones below it are a range of the index.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any

import orjson

from threadmark.backends import Program
from threadmark_store.shapes import Condition, ItemKey, ItemRow, Place, Scope
from threadmark_store.tables.sql import Database, Rows, Table, clauses_of, columns_of, key_in, name_in

Clause = tuple[str, tuple[Any, ...]]
"""A part of a statement, and its parameters."""

_ALIVE = "(expires_at IS NULL OR expires_at > ?bigint)"
_BEHIND_KEY = "(namespace, key) > (?text, ?text)"
_BEHIND_PLACE = """
{updated_at} <= ?bigint AND (updated_at < ?bigint OR (namespace, key) > (?text, ?text))
""".strip()
# All items are read in the order of their index. A database might also choose it for a large namespace, and read
# everything that is newer if that has not changed for long: the sign keeps it from that.
_NEWEST_OF_ALL, _NEWEST = "updated_at", "+updated_at"

_IN_KEY_ORDER = """
SELECT {columns}
FROM tm.store_item{parts}
WHERE {clauses}
ORDER BY namespace, key
LIMIT ?bigint
"""

_COUNT = "SELECT count(*), coalesce(sum({size}), 0) FROM tm.store_item{parts} WHERE {clauses}"

_NAMESPACES = "SELECT DISTINCT namespace FROM tm.store_item{parts} WHERE {clauses}"

# What a put does with an item that is there. One that had expired begins again.
REPLACE = """
ON CONFLICT (namespace, key) DO UPDATE
SET {values},
    checksum = excluded.checksum,
    created_at = CASE WHEN item.expires_at <= excluded.created_at THEN excluded.created_at ELSE item.created_at END,
    updated_at = excluded.updated_at,
    expires_at = excluded.expires_at,
    ttl = excluded.ttl
""".strip()

# Several sweepers share the work, and an item that a read is just refreshing stays.
_EXPIRED = """
SELECT rowid
FROM tm.store_item
WHERE expires_at <= ?bigint
ORDER BY expires_at
LIMIT ?bigint
"""


class TableItems(Table, ABC):
    """Items in a table."""

    table = "item"
    columns: str
    """Those of a row."""
    searching: str
    """The statement that returns items which meet `clauses`, in the order of a search by `updated_at`."""
    within: str
    """The condition that an item's namespace meets another one, as a search asks for it."""
    size: str
    """The bytes of an item's key and value."""
    with_fragment: str
    """The condition that the JSON of a value has a fragment, which other values may meet."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._item = f"SELECT {self.columns} FROM tm.store_item WHERE namespace = ?text AND key = ?text"
        self._items = f"SELECT {self.columns} FROM tm.store_item WHERE (namespace, key) {{among}}"
        self._sweep = f"DELETE FROM tm.store_item WHERE rowid {database.free(_EXPIRED)} RETURNING namespace, key"

    def items(self, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, ItemRow]]:
        if len(keys) == 1:
            rows = yield from self._database.select(self._item, *columns_of(keys[0]), last=True)
            return {keys[0]: self.row(rows[0])} if rows else {}
        rows = yield from self._database.among(self._items, keys, last=True)
        return {row.key: row for row in map(self.row, rows)}

    def lock(self, keys: Sequence[ItemKey]) -> Program[None]:
        """Lock the whole table: an item that is not there has no row to lock."""
        return self._database.lock(self.table)

    def search(self, scope: Scope, after: Place | None, limit: int, offset: int) -> Program[list[ItemRow]]:
        """One statement."""
        behind: list[Clause] = []
        updated_at = _NEWEST_OF_ALL
        if scope.prefix:
            updated_at = _NEWEST
            namespaces, prefix = clauses_of(Scope(scope.prefix))
            behind.append((self.within.format(namespaces), prefix))
            scope = scope._replace(prefix="")
        if after is not None:
            place = after.updated_at, after.updated_at, *columns_of(after.key)
            behind.append((_BEHIND_PLACE.format(updated_at=updated_at), place))
        asked = self._of_scope(self.searching, scope, behind, limit, offset, updated_at=updated_at)
        return list(map(self.row, (yield from asked)))

    def in_key_order(self, scope: Scope, after: ItemKey | None, limit: int) -> Program[list[ItemRow]]:
        """One statement."""
        behind: list[Clause] = [] if after is None else [(_BEHIND_KEY, columns_of(after))]
        return list(map(self.row, (yield from self._of_scope(_IN_KEY_ORDER, scope, behind, limit))))

    def namespaces(self, scope: Scope) -> Program[list[str]]:
        """One statement."""
        return [name_in(namespace) for (namespace,) in (yield from self._of_scope(_NAMESPACES, scope))]

    def sweep(self, now: int, limit: int) -> Program[list[ItemKey]]:
        """One statement. It leaves out items that others are changing."""
        return [key_in(*columns) for columns in (yield from self._database.select(self._sweep, now, limit))]

    def count(self, scope: Scope) -> Program[tuple[int, int]]:
        """One statement."""
        ((count, size),) = yield from self._of_scope(_COUNT, scope)
        return count, int(size)

    @abstractmethod
    def row(self, columns: Sequence[Any]) -> ItemRow:
        """Return the row of `columns`."""

    @abstractmethod
    def compare(self, condition: Condition, clauses: list[Clause], parts: list[Clause]) -> None:
        """Add clauses that leave out rows which do not meet a condition, and joins that these need."""

    def _narrow(self, condition: Condition, clauses: list[Clause], parts: list[Clause]) -> None:
        """Add clauses for a condition.

        Stored JSON has no spaces, so a value that equals another one begins as a fragment of the text. To find that
        takes less than reading the JSON, which is left for numbers (that fragment of a 5 is in a 50, too) and bounds.
        """
        path, sign, value = condition
        if sign == "=" and (isinstance(value, bool) or value != 0):  # a zero may have a sign
            clauses.append((self.with_fragment, (orjson.dumps({path[-1]: value}).decode()[1:-1],)))
        if sign != "=" or not isinstance(value, (str, bool)):
            self.compare(condition, clauses, parts)

    def _of_scope(
        self, statement: str, scope: Scope, behind: Sequence[Clause] = (), *params: Any, **words: str
    ) -> Program[Rows]:
        """Execute a statement with the clauses of a scope, whose parameters come before the others."""
        clauses, parts = [clauses_of(scope), *behind], list[Clause]()
        if scope.alive_at is not None:
            clauses.append((_ALIVE, (scope.alive_at,)))
        for condition in scope.conditions:
            self._narrow(condition, clauses, parts)
        written = statement.format(
            columns=self.columns,
            size=self.size,
            parts="".join(text for text, _ in parts),
            clauses=" AND ".join(text for text, _ in clauses),
            **words,
        )
        of_scope = chain.from_iterable(values for _, values in (*parts, *clauses))
        return self._database.select(written, *of_scope, *params, last=True)
