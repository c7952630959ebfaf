"""Vectors on Postgres: the server compares them if the database has the extension pgvector, and numpy if not.

With pgvector the table has an additional column, `embedding`, of its type `vector`. A row has its numbers in that one
or in `vector`, never in both. Those in `vector` are sealed, or were stored before the table had an `embedding`.
"""

from collections.abc import Sequence
from math import isfinite
from struct import unpack
from typing import Any

from threadmark.backends import Program, to_column
from threadmark_postgres.arrays import Reals, reals_in
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.tables.postgres import EMBEDDING, Database, arrays, expect_indexable
from threadmark_store.tables.sql import Rows, clauses_of, key_in, packed
from threadmark_store.vectors.contract import SEALED_MODEL, Nearest, Scanned, VectorRow
from threadmark_store.vectors.sql import ROWS, TableVectors, columns_of, row_of

_REAL = 4
"""Bytes of a number."""
_LONGEST = 16_000 * _REAL
"""Bytes of the most dimensions that pgvector's type has."""
_ADOPTED_AT_ONCE = 256

# The extension's schema, whether the table has its column, and whether this role may add it.
_STATE = """
SELECT
    quote_ident(n.nspname),
    EXISTS (
        SELECT
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attname = 'embedding' AND NOT a.attisdropped
    ),
    pg_has_role(c.relowner, 'USAGE')
FROM pg_catalog.pg_extension AS e
JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(?text)
WHERE e.extname = 'vector' AND n.nspname !~ '[?{}]'  -- which have a meaning in statements before they are written
"""

# If the extension was dropped, its column went with it: a row without numbers belongs to no model.
_HEAD_COLUMNS = "CASE WHEN length(vector) > 0 {or_embedding}THEN model ELSE '' END, checksum, owner"
_HEADS = ROWS.format(columns=_HEAD_COLUMNS.format(or_embedding="OR embedding IS NOT NULL "))
_HEADS_WITHOUT = ROWS.format(columns=_HEAD_COLUMNS.format(or_embedding=""))

_WHOLE_COLUMNS = "vector, model, checksum, owner, {pgvector}.vector_send(embedding)"
_SENT_HEAD = 4
"""Bytes before the numbers of a vector that is sent."""

# As a subquery, the query's vector is made once, and not again for each row. The cast lets the server use an index of
# these vectors, if you made one.
_NEAREST = """
SELECT
    namespace,
    key,
    checksum,
    embedding::{pgvector}.vector({dims}) OPERATOR({pgvector}.<#>) (SELECT ?real[]::{pgvector}.vector) AS distance,
    EXISTS (SELECT FROM tm.store_vector WHERE embedding IS NULL AND model = ?text)
FROM tm.store_vector
WHERE embedding IS NOT NULL AND model = ?text AND {clauses}
ORDER BY distance, namespace, key
LIMIT ?bigint
"""

_ADD = """
INSERT INTO tm.store_vector ({columns}, embedding)
SELECT {columns}, CASE WHEN size > 0 THEN (?real[])[start + 1:start + size]::{pgvector}.vector END
FROM unnest({arrays}, ?bigint[], ?bigint[]) AS added ({columns}, start, size)
"""

_ADOPTABLE = f"""
SELECT DISTINCT namespace, key
FROM tm.store_vector
WHERE embedding IS NULL AND length(vector) > 0 AND (namespace, key) > (?text, ?text)
ORDER BY namespace, key
LIMIT {_ADOPTED_AT_ONCE}
"""


class PostgresVectors(TableVectors):
    """Vectors in a table of one schema."""

    _database: Database
    _pgvector: str | None = None
    """The schema of pgvector, quoted, once it is known that the table has its column."""

    def create(self) -> Program[None]:
        """Create the table if it is missing, and the column if the extension came later."""
        yield from super().create()
        if not (yield from self.is_complete()):
            yield from self._database.select(EMBEDDING)

    def is_complete(self) -> Program[bool]:
        return not any(may_add and not has_column for _, has_column, may_add in (yield from self._state()))

    def engine(self) -> Program[str]:
        return "numpy" if (yield from self._schema()) is None else "pgvector"

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        statement = _HEADS_WITHOUT if (yield from self._schema()) is None else _HEADS
        return self._heads((yield from self._database.among(statement, keys)))

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        pgvector = yield from self._schema()
        if pgvector is None:
            return (yield from super().whole_rows(keys))
        statement = ROWS.format(columns=_WHOLE_COLUMNS.format(pgvector=pgvector))
        found = yield from self._database.among(statement, keys)
        return [_whole_row(columns) for columns in found]

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        pgvector = yield from self._schema()
        return (yield from self._page(scope, model, cursor, "true" if pgvector is None else "embedding IS NULL"))

    def nearest(self, scope: Scope, model: str, query: bytes, limit: int | None) -> Program[Nearest]:
        pgvector = yield from self._schema()
        if pgvector is None or len(query) > _LONGEST:
            return Nearest([], True)
        clauses, params = clauses_of(scope)
        statement = _NEAREST.format(pgvector=pgvector, dims=len(query) // _REAL, clauses=clauses)
        models = [to_column(model)] * 2
        rows = yield from self._database.select(statement, Reals(query), *models, *params, limit)
        return Nearest([(*place, -distance) for *place, distance, _ in rows], not rows or rows[0][-1])

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[VectorRow]) -> Program[None]:
        pgvector = yield from self._schema()
        if pgvector is None or not rows:
            yield from super().replace(keys, rows)
            return
        yield from self.delete(keys, None)
        numbers, added = bytearray(), list[Sequence[Any]]()
        for row in rows:
            if _is_compared(row):
                start, size = len(numbers) // _REAL, len(row.vector.data) // _REAL
                numbers += row.vector.data
                added.append([*columns_of(row._replace(vector=row.vector._replace(data=b""))), start, size])
            else:
                added.append([*columns_of(row), 0, 0])
        kinds = list(self.columns.values())
        statement = _ADD.format(
            columns=", ".join(self.columns), arrays=", ".join(f"?{kind}[]" for kind in kinds), pgvector=pgvector
        )
        added = list(map(packed, added))
        expect_indexable(self.table, self.columns, added)
        columns = arrays([*kinds, "bigint", "bigint"], added)
        yield from self._database.select(statement, Reals(numbers), *columns)

    def adopt(self, cursor: Cursor | None) -> Program[Cursor | None]:
        if (yield from self._schema()) is None:
            return None
        rows = yield from self._database.select(_ADOPTABLE, *(cursor or ("", "")))
        if not rows:
            return None
        keys = [key_in(*columns) for columns in rows]
        yield from self.hold(keys)
        yield from self.replace(keys, (yield from self.whole_rows(keys)))
        return rows[-1]

    def _schema(self) -> Program[str | None]:
        """Return the schema of pgvector, None if the table has no column of its type: that is asked again each time."""
        if self._pgvector is None:
            for pgvector, has_column, _ in (yield from self._state()):
                self._pgvector = pgvector if has_column else None
        return self._pgvector

    def _state(self) -> Program[Rows]:
        return self._database.select(_STATE, self._database.written(f"tm.store_{self.table}"))


rows_over = PostgresVectors


def _is_compared(row: VectorRow) -> bool:
    """Return whether the type takes the numbers of a row: not if they are sealed, too many, or damaged."""
    data = row.vector.data
    if row.model.endswith(SEALED_MODEL) or not 0 < len(data) <= _LONGEST or len(data) % _REAL:
        return False
    return isfinite(sum(unpack(f"<{len(data) // _REAL}f", data)))


def _whole_row(columns: Sequence[Any]) -> VectorRow:
    *place, data, model, check, owner, sent = columns
    return row_of((*place, data if sent is None else reals_in(sent[_SENT_HEAD:]), model, check, owner))
