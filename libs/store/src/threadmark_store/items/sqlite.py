"""Items in a table of the saver's SQLite file.

`value` is text if it is JSON, which the file can compare, and a blob otherwise. It is the last column, so that the
others are read without it, however long it is. A namespace sorts as UTF-8, so the ones below it are a range of the
index.
"""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

from threadmark.backends import Program, from_column, to_column
from threadmark_sqlite.placeholders import chunks, with_pairs
from threadmark_sqlite.steps import Rows, execute, execute_alone, executemany
from threadmark_store.columns.sqlite import columns_of, from_optional, key_in, optional
from threadmark_store.namespaces import bounds_below
from threadmark_store.shapes import Condition, ItemKey, ItemRow, Place, Scope

_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = 'threadmark_store_item'"

_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS threadmark_store_item (
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        checksum INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        owner TEXT,
        expires_at INTEGER,
        ttl INTEGER,
        value NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS threadmark_store_item_key ON threadmark_store_item (namespace, key)",
    "CREATE INDEX IF NOT EXISTS threadmark_store_item_newest ON threadmark_store_item (updated_at)",
    """
    CREATE INDEX IF NOT EXISTS threadmark_store_item_expiry
    ON threadmark_store_item (expires_at)
    WHERE expires_at IS NOT NULL
    """,
)

_COLUMNS = "namespace, key, value, checksum, created_at, updated_at, owner, expires_at, ttl"

_ITEM = f"SELECT {_COLUMNS} FROM threadmark_store_item WHERE namespace = ? AND key = ?"

_ITEMS = f"SELECT {_COLUMNS} FROM threadmark_store_item WHERE (namespace, key) IN (VALUES {{placeholders}})"

_PUT = f"""
INSERT INTO threadmark_store_item ({_COLUMNS})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, key) DO UPDATE
SET value = excluded.value,
    checksum = excluded.checksum,
    updated_at = excluded.updated_at,
    expires_at = excluded.expires_at,
    ttl = excluded.ttl
"""

_OTHERS = """
SELECT namespace, key
FROM threadmark_store_item
WHERE (namespace, key) IN (VALUES {placeholders}) AND owner IS NOT ?
"""

_DELETE = "DELETE FROM threadmark_store_item WHERE namespace = ? AND key = ? AND (? IS NULL OR owner = ?)"

_REFRESH = """
UPDATE threadmark_store_item
SET expires_at = ? + ttl
WHERE namespace = ? AND key = ? AND ttl IS NOT NULL
"""

# Only the rows of the page are read whole: values need not be sorted.
_SEARCH = f"""
SELECT {_COLUMNS}
FROM (
    SELECT rowid AS place
    FROM threadmark_store_item
    WHERE {{clauses}}
    ORDER BY {{updated_at}} DESC, namespace, key
    LIMIT ? OFFSET ?
)
JOIN threadmark_store_item ON threadmark_store_item.rowid = place
ORDER BY updated_at DESC, namespace, key
"""
# All items are read in the order of an index, those of a namespace by the other one.
_NEWEST_OF_ALL, _NEWEST = "updated_at", "+updated_at"

_IN_KEY_ORDER = f"""
SELECT {_COLUMNS}
FROM threadmark_store_item
WHERE {{clauses}}
ORDER BY namespace, key
LIMIT ?
"""

_NAMESPACES = "SELECT DISTINCT namespace FROM threadmark_store_item WHERE {clauses}"

_SWEEP = """
DELETE FROM threadmark_store_item
WHERE rowid IN (SELECT rowid FROM threadmark_store_item WHERE expires_at <= ? LIMIT ?)
RETURNING namespace, key
"""

_COUNT = """
SELECT
    count(*),
    coalesce(sum(length(CAST(namespace AS BLOB)) + length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))), 0)
FROM threadmark_store_item
WHERE {clauses}
"""


def items_over(rows: object) -> "SqliteItems":  # noqa: ARG001 - a file has one set of tables
    """Return the items next to a saver's rows."""
    return SqliteItems()


class SqliteItems:
    """Items in a table."""

    def exists(self) -> Program[bool]:
        return bool((yield from execute_alone(_EXISTS)))

    def create(self) -> Program[None]:
        for statement in _TABLES:
            yield from execute(statement)

    def items(self, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, ItemRow]]:
        if len(keys) == 1:
            rows = yield from execute_alone(_ITEM, columns_of(keys[0]))
            return dict(zip(keys, map(_row, rows), strict=False))
        found: dict[ItemKey, ItemRow] = {}
        for some in chunks([columns_of(key) for key in keys]):
            rows = yield from execute(with_pairs(_ITEMS, some), tuple(chain.from_iterable(some)))
            found.update((row.key, row) for row in map(_row, rows))
        return found

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        owner = rows[0].owner
        if owner is not None and (refused := (yield from self._of_others(rows, owner))):
            return refused
        yield from executemany(_PUT, [_params(row) for row in rows])
        return []

    def delete(self, keys: Sequence[ItemKey], owner: str | None, *, last: bool = False) -> Program[None]:
        yield from executemany(_DELETE, [(*columns_of(key), owner, owner) for key in keys])

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        yield from executemany(_REFRESH, [(now, *columns_of(key)) for key in keys])

    def search(self, scope: Scope, after: Place | None, limit: int, offset: int) -> Program[list[ItemRow]]:
        clauses, params = _clauses(scope)
        updated_at = _NEWEST if scope.prefix else _NEWEST_OF_ALL
        if after is not None:
            clauses.append(f"{updated_at} <= ? AND (updated_at < ? OR (namespace, key) > (?, ?))")
            params += (after.updated_at, after.updated_at, *columns_of(after.key))
        statement = _SEARCH.format(clauses=" AND ".join(clauses), updated_at=updated_at)
        return list(map(_row, (yield from execute_alone(statement, (*params, limit, offset)))))

    def in_key_order(self, scope: Scope, after: ItemKey | None, limit: int) -> Program[list[ItemRow]]:
        clauses, params = _clauses(scope)
        if after is not None:
            clauses.append("(namespace, key) > (?, ?)")
            params += columns_of(after)
        statement = _IN_KEY_ORDER.format(clauses=" AND ".join(clauses))
        return list(map(_row, (yield from execute_alone(statement, (*params, limit)))))

    def namespaces(self, scope: Scope) -> Program[list[str]]:
        clauses, params = _clauses(scope)
        rows = yield from execute_alone(_NAMESPACES.format(clauses=" AND ".join(clauses)), params)
        return [from_column(row[0]) for row in rows]

    def sweep(self, now: int, limit: int, *, last: bool = False) -> Program[list[ItemKey]]:
        return [key_in(*columns) for columns in (yield from execute(_SWEEP, (now, limit)))]

    def count(self, scope: Scope) -> Program[tuple[int, int]]:
        clauses, params = _clauses(scope)
        ((count, size),) = yield from execute_alone(_COUNT.format(clauses=" AND ".join(clauses)), params)
        return count, size

    def _of_others(self, rows: Sequence[ItemRow], owner: str) -> Program[list[ItemKey]]:
        found: Rows = []
        for some in chunks([columns_of(row.key) for row in rows]):
            found += yield from execute(with_pairs(_OTHERS, some), (*chain.from_iterable(some), to_column(owner)))
        return [key_in(*columns) for columns in found]


def _params(row: ItemRow) -> tuple[Any, ...]:
    times, owner = (row.created_at, row.updated_at), optional(row.owner)
    return *columns_of(row.key), row.value, row.check, *times, owner, row.expires_at, row.ttl


def _row(columns: Sequence[Any]) -> ItemRow:
    namespace, key, value, check, created_at, updated_at, owner, expires_at, ttl = columns
    key = key_in(namespace, key)
    return ItemRow(key, value, check, created_at, updated_at, from_optional(owner), expires_at, ttl)


def _clauses(scope: Scope) -> tuple[list[str], tuple[Any, ...]]:
    """Return the conditions of a scope, at least one, and their parameters."""
    clauses: list[str] = ["true"]
    params: list[Any] = []
    if scope.prefix:
        prefix = to_column(scope.prefix)
        clauses.append("(namespace = ? OR (namespace >= ? AND namespace < ?))")
        params += [prefix, *bounds_below(prefix)]
    if scope.owner is not None:
        clauses.append("owner = ?")
        params.append(to_column(scope.owner))
    if scope.alive_at is not None:
        clauses.append("(expires_at IS NULL OR expires_at > ?)")
        params.append(scope.alive_at)
    for clause, more in map(_compared, scope.conditions):
        clauses += clause
        params += more
    return clauses, tuple(params)


def _compared(condition: Condition) -> tuple[list[str], list[Any]]:
    """Return the clause for a condition, or none if its path cannot be written.

    Values of different types compare, and text is greater than any number, so too many rows may come, and none lacks.
    """
    if any(sign < " " or sign in '"\\' for key in condition.path for sign in key):
        return [], []
    path = "$" + "".join(f'."{key}"' for key in condition.path)
    return [f"(typeof(value) <> 'text' OR json_extract(value, ?) {condition.operator} ?)"], [path, condition.value]
