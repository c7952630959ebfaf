"""Vectors in a table of the saver's SQLite file. The index has every column but the vector itself."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from threadmark.backends import Program, from_column, to_column
from threadmark_sqlite.placeholders import chunks, with_pairs
from threadmark_sqlite.steps import Rows, execute, execute_alone, executemany
from threadmark_store.columns.sqlite import clauses_of, columns_of, from_optional, key_in, optional
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.vectors.contract import CHOICE, Scanned, Vector, VectorCounts, VectorRow

_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = 'threadmark_store_vector'"

_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS threadmark_store_vector (
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        field TEXT NOT NULL,
        place INTEGER NOT NULL,
        model TEXT NOT NULL,
        checksum INTEGER NOT NULL,
        owner TEXT,
        vector BLOB NOT NULL
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS threadmark_store_vector_item
    ON threadmark_store_vector (namespace, key, field, place, model, checksum, owner)
    """,
)

_ROWS = """
SELECT namespace, key, field, place, {vector}, model, checksum, owner
FROM threadmark_store_vector
WHERE (namespace, key) IN (VALUES {{placeholders}})
"""
_HEADS, _WHOLE_ROWS = _ROWS.format(vector="x''"), _ROWS.format(vector="vector")

_ADD = """
INSERT INTO threadmark_store_vector (namespace, key, field, place, vector, model, checksum, owner)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""

_DELETE = "DELETE FROM threadmark_store_vector WHERE namespace = ? AND key = ? AND (? IS NULL OR owner = ?)"

_PAGE = """
SELECT namespace, key, field, place, vector, checksum
FROM threadmark_store_vector
WHERE model = ? AND (namespace, key, field, place) > (?, ?, ?, ?) AND {clauses}
ORDER BY namespace, key, field, place
LIMIT ?
"""

_KEYS = """
SELECT DISTINCT namespace, key
FROM threadmark_store_vector
WHERE (namespace, key) > (?, ?)
ORDER BY namespace, key
LIMIT ?
"""

_COUNTS = f"""
SELECT
    coalesce(sum(model = ?), 0),
    coalesce(sum(model <> ? AND place <> {CHOICE}), 0)
FROM threadmark_store_vector
WHERE {{clauses}}
"""

_PAGE_SIZE = 2048
_KEYS_AT_ONCE = 256


def vectors_over(rows: object) -> "SqliteVectors":  # noqa: ARG001 - a file has one set of tables
    """Return the vectors in a saver's database."""
    return SqliteVectors()


class SqliteVectors:
    """Vectors in a table."""

    def exists(self) -> Program[bool]:
        return bool((yield from execute_alone(_EXISTS)))

    def create(self) -> Program[None]:
        for statement in _TABLES:
            yield from execute(statement)

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:  # noqa: ARG002 - there is one writer
        yield from ()

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return self._rows(_HEADS, keys)

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return self._rows(_WHOLE_ROWS, keys)

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[VectorRow]) -> Program[None]:
        yield from self.delete(keys, None)
        yield from executemany(_ADD, [_params(row) for row in rows])

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        owned = optional(owner)
        yield from executemany(_DELETE, [(*columns_of(key), owned, owned) for key in keys])

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        clauses, params = clauses_of(scope)
        after = cursor or (to_column(scope.prefix), "", "", CHOICE)
        rows = yield from execute(_PAGE.format(clauses=clauses), (to_column(model), *after, *params, _PAGE_SIZE))
        found: list[Any] = rows
        return found, rows[-1][:4] if len(rows) == _PAGE_SIZE else None

    def text(self, column: str) -> str:
        return from_column(column)

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        rows = yield from execute(_KEYS, (*(cursor or ("", "")), _KEYS_AT_ONCE))
        return [key_in(*columns) for columns in rows], rows[-1] if len(rows) == _KEYS_AT_ONCE else None

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        clauses, params = clauses_of(scope)
        name = to_column(model)
        ((of_model, of_others),) = yield from execute_alone(_COUNTS.format(clauses=clauses), (name, name, *params))
        return VectorCounts(of_model, of_others)

    def _rows(self, statement: str, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        found: Rows = []
        for some in chunks([columns_of(key) for key in keys]):
            found += yield from execute(with_pairs(statement, some), tuple(chain.from_iterable(some)))
        return list(map(_row, found))


def _params(row: VectorRow) -> tuple[Any, ...]:
    field, number, data = row.vector
    return *columns_of(row.key), to_column(field), number, data, to_column(row.model), row.check, optional(row.owner)


def _row(columns: Sequence[Any]) -> VectorRow:
    namespace, key, field, number, data, model, check, owner = columns
    return VectorRow(
        key_in(namespace, key),
        Vector(from_column(field), number, data),
        from_column(model),
        check,
        from_optional(owner),
    )
