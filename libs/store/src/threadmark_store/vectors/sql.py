"""Vectors in a table of SQLite or Postgres, where an item's rows are a range of the index."""

from collections.abc import Sequence
from typing import Any, ClassVar

from threadmark.backends import Program, from_column, to_column
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.tables.sql import Columns, TableOfRows, clauses_of, from_optional, key_in
from threadmark_store.vectors.contract import CHOICE, Scanned, Vector, VectorCounts, VectorRow

_ROWS = """
SELECT namespace, key, field, place, {vector}model, checksum, owner
FROM tm.store_vector
WHERE (namespace, key) {{among}}
"""
_HEADS, _WHOLE_ROWS = _ROWS.format(vector=""), _ROWS.format(vector="vector, ")

_PAGE = """
SELECT namespace, key, field, place, vector, checksum
FROM tm.store_vector
WHERE model = ?text
    AND (namespace, key, field, place) > (?text, ?text, ?text, ?bigint)
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


class TableVectors(TableOfRows):
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
        rows = yield from self._database.among(_HEADS, keys)
        return [_row((*columns[:4], b"", *columns[4:])) for columns in rows]

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return list(map(_row, (yield from self._database.among(_WHOLE_ROWS, keys))))

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[VectorRow]) -> Program[None]:
        return self._replace(keys, [(*row.key, *row.vector, row.model, row.check, row.owner) for row in rows])

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        clauses, params = clauses_of(scope)
        after = cursor or (to_column(scope.prefix), "", "", CHOICE)
        statement = _PAGE.format(clauses=clauses)
        rows: list[Any] = yield from self._database.select(statement, to_column(model), *after, *params, _PAGE_SIZE)
        return rows, rows[-1][:4] if len(rows) == _PAGE_SIZE else None

    def text(self, column: str) -> str:
        return from_column(column)

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        clauses, params = clauses_of(scope)
        names = [to_column(model)] * 2
        rows = yield from self._database.select(_COUNTS.format(clauses=clauses), *names, *params, last=True)
        return VectorCounts(*rows[0])


rows_over = TableVectors


def _row(columns: Sequence[Any]) -> VectorRow:
    namespace, key, field, number, data, model, check, owner = columns
    vector = Vector(from_column(field), number, bytes(data))
    return VectorRow(key_in(namespace, key), vector, from_column(model), check, from_optional(owner))
