"""Vectors in a table of SQLite or Postgres, where an item's rows are a range of the index."""

from collections.abc import Sequence
from typing import Any, ClassVar

from threadmark.backends import Program, to_column
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.tables.sql import (
    Columns,
    Rows,
    TableOfRows,
    bytes_in,
    clauses_of,
    from_optional,
    key_in,
    name_in,
    number_in,
    text_in,
)
from threadmark_store.vectors.contract import CHOICE, ComparedByNumpy, Scanned, Vector, VectorCounts, VectorRow

ROWS = """
SELECT namespace, key, field, place, {columns}
FROM tm.store_vector
WHERE (namespace, key) {{among}}
"""
_HEADS = ROWS.format(columns="model, checksum, owner")
_WHOLE_ROWS = ROWS.format(columns="vector, model, checksum, owner")

_PAGE = """
SELECT namespace, key, field, place, vector, checksum
FROM tm.store_vector
WHERE model = ?text
    AND (namespace, key, field, place) > (?text, ?text, ?text, ?bigint)
    AND {condition}
    AND {clauses}
ORDER BY namespace, key, field, place
LIMIT ?bigint
"""

_COUNTS = f"""
SELECT
    count(*) FILTER (WHERE model = ?text),
    count(*) FILTER (WHERE model <> ?text AND place <> {CHOICE})
FROM tm.store_vector
WHERE {{clauses}}
"""

_PAGE_SIZE = 2048


class TableVectors(ComparedByNumpy, TableOfRows):
    """Vectors in a table."""

    table = "vector"
    columns: ClassVar[Columns] = {
        "namespace": "text",
        "key": "text",
        "field": "text",
        "place": "bigint",
        "vector": "bytea",
        "model": "text",
        "checksum": "bigint",
        "owner": "text",
    }

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return self._heads((yield from self._database.among(_HEADS, keys)))

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return list(map(row_of, (yield from self._database.among(_WHOLE_ROWS, keys))))

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[VectorRow]) -> Program[None]:
        return self._replace(keys, list(map(columns_of, rows)))

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        return self._page(scope, model, cursor)

    def _page(
        self, scope: Scope, model: str, cursor: Cursor | None, condition: str = "true"
    ) -> Program[tuple[list[Scanned], Cursor | None]]:
        clauses, params = clauses_of(scope)
        after = cursor or (to_column(scope.prefix), "", "", CHOICE)
        statement = _PAGE.format(condition=condition, clauses=clauses)
        rows: list[Any] = yield from self._database.select(statement, to_column(model), *after, *params, _PAGE_SIZE)
        return rows, rows[-1][:4] if len(rows) == _PAGE_SIZE else None

    def text(self, column: str) -> str:
        return name_in(column)

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        clauses, params = clauses_of(scope)
        names = [to_column(model)] * 2
        rows = yield from self._database.select(_COUNTS.format(clauses=clauses), *names, *params, last=True)
        return VectorCounts(*rows[0])

    @staticmethod
    def _heads(rows: Rows) -> list[VectorRow]:
        return [row_of((*columns[:4], b"", *columns[4:])) for columns in rows]


rows_over = TableVectors


def columns_of(row: VectorRow) -> tuple[Any, ...]:
    """Return the columns of a row."""
    return *row.key, *row.vector, row.model, row.check, row.owner


def row_of(columns: Sequence[Any]) -> VectorRow:
    """Return the row of columns."""
    namespace, key, field, number, data, model, check, owner = columns
    vector = Vector(text_in(field), number_in(number), bytes_in(data))
    return VectorRow(key_in(namespace, key), vector, text_in(model), number_in(check), from_optional(owner))
