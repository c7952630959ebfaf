"""Items in a table of the saver's SQLite file. `value` is text if it is JSON, which SQLite compares, else a blob."""

from collections.abc import Collection, Sequence
from typing import Any

from threadmark.backends import Program
from threadmark_store.items.sql import REPLACE, Clause, TableItems
from threadmark_store.shapes import Condition, ItemKey, ItemRow
from threadmark_store.tables.sql import columns_of, from_optional, key_in, optional
from threadmark_store.tables.sqlite import Database

_COLUMNS = "namespace, key, value, checksum, created_at, updated_at, owner, expires_at, ttl"

_PUT = f"""
INSERT INTO tm.store_item AS item ({_COLUMNS})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
{REPLACE.format(values="value = excluded.value")}
"""

_OTHERS = "SELECT namespace, key FROM tm.store_item WHERE (namespace, key) {among} AND owner IS NOT ?text"

_DELETE = "DELETE FROM tm.store_item WHERE namespace = ?text AND key = ?text AND (?text IS NULL OR owner = ?text)"

_REFRESH = """
UPDATE tm.store_item
SET expires_at = ?bigint + ttl
WHERE namespace = ?text AND key = ?text AND ttl IS NOT NULL
"""

# Only the rows of the page are read whole: values need not be sorted.
_SEARCH = """
SELECT {columns}
FROM tm.store_item
WHERE rowid IN (
    SELECT rowid
    FROM tm.store_item{parts}
    WHERE {clauses}
    ORDER BY {updated_at} DESC, namespace, key
    LIMIT ?bigint OFFSET ?bigint
)
ORDER BY updated_at DESC, namespace, key
"""


class SqliteItems(TableItems):
    """Items in a table of a file."""

    _database: Database
    columns = _COLUMNS
    searching = _SEARCH
    # In the order of the rows, so that each page is read once.
    within = "rowid IN (SELECT rowid FROM tm.store_item WHERE {})"
    with_fragment = "(typeof(value) <> 'text' OR instr(value, ?text) > 0)"
    size = "length(CAST(namespace AS BLOB)) + length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))"

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        if rows[0].owner is not None:
            keys = [row.key for row in rows]
            refused = yield from self._database.among(_OTHERS, keys, optional(rows[0].owner))
            if refused:
                return [key_in(*columns) for columns in refused]
        yield from self._database.each(_PUT, sorted(map(_params, rows)))
        return []

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        owned = optional(owner)
        yield from self._database.each(_DELETE, [(*columns_of(key), owned, owned) for key in keys])

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        yield from self._database.each(_REFRESH, [(now, *columns_of(key)) for key in keys])

    def row(self, columns: Sequence[Any]) -> ItemRow:
        """Return the row of `columns`. One with a wrong type has a check that is wrong."""
        namespace, key, value, check, created_at, updated_at, owner, expires_at, ttl = columns
        key = key_in(namespace, key)
        numbers = check, created_at, updated_at, *(each for each in (expires_at, ttl) if each is not None)
        if type(value) not in (str, bytes) or set(map(type, numbers)) != {int}:
            return ItemRow(key, b"", 0, 0, 0)
        return ItemRow(key, value, check, created_at, updated_at, from_optional(owner), expires_at, ttl)

    def compare(self, condition: Condition, clauses: list[Clause], parts: list[Clause]) -> None:
        """Add a clause, unless the path of the condition cannot be written.

        Values of different types compare, and text is greater than any number, so too many rows may come, and none
        lacks.
        """
        if not any(sign < " " or sign in '"\\' for key in condition.path for sign in key):
            path = "$" + "".join(f'."{key}"' for key in condition.path)
            part = (
                f"CASE WHEN json_valid(value) THEN json_extract(value, ?text) {condition.operator} ?text ELSE true END"
            )
            clause = f"(typeof(value) <> 'text' OR {part})"
            clauses.append((clause, (path, condition.value)))


rows_over = SqliteItems


def _params(row: ItemRow) -> tuple[Any, ...]:
    times, owner = (row.created_at, row.updated_at), optional(row.owner)
    return *columns_of(row.key), row.value, row.check, *times, owner, row.expires_at, row.ttl
