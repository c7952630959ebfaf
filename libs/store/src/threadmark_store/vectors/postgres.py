"""Vectors in a table of the saver's schema. Each question is one statement; an item's rows are a range of its index."""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import Program, from_column, to_column
from threadmark_postgres.arrays import Blobs, Numbers, Texts
from threadmark_postgres.columns import from_optional, optional
from threadmark_store.columns.postgres import Table, arrays_of, clauses_of, key_in, script_of
from threadmark_store.shapes import Cursor, ItemKey, Scope
from threadmark_store.vectors.contract import CHOICE, Scanned, Vector, VectorCounts, VectorRow

# Floats do not become smaller by compression, so long vectors are stored without the attempt.
_TABLES = (
    """
    CREATE TABLE tm.store_vector (
        checksum bigint NOT NULL,
        place bigint NOT NULL,
        namespace text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        field text COLLATE "C" NOT NULL,
        model text COLLATE "C" NOT NULL,
        owner text COLLATE "C",
        vector bytea NOT NULL,
        PRIMARY KEY (namespace, key, field, place)
    )
    """,
    "ALTER TABLE tm.store_vector ALTER COLUMN vector SET STORAGE EXTERNAL",
)

_ROWS = """
SELECT v.namespace, v.key, v.field, v.place, {vector}, v.model, v.checksum, v.owner
FROM unnest($1::text[], $2::text[]) AS asked (namespace, key)
JOIN tm.store_vector AS v ON v.namespace = asked.namespace AND v.key = asked.key
"""
_HEADS, _WHOLE_ROWS = _ROWS.format(vector="''::bytea"), _ROWS.format(vector="v.vector")

# Its items were put by the same transaction, so no other one adds the same rows.
_ADD = """
INSERT INTO tm.store_vector (namespace, key, field, place, vector, model, checksum, owner)
SELECT n.namespace, n.key, n.field, n.place, n.vector, n.model, n.checksum, n.owner
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::text[], $7::bigint[], $8::text[]
) AS n (namespace, key, field, place, vector, model, checksum, owner)
"""

_DELETE = """
DELETE FROM tm.store_vector AS v
USING unnest($1::text[], $2::text[]) AS asked (namespace, key)
WHERE v.namespace = asked.namespace AND v.key = asked.key AND ($3::text IS NULL OR v.owner = $3::text)
"""

_PAGE = """
SELECT namespace, key, field, place, vector, checksum
FROM tm.store_vector
WHERE model = $1::text
    AND (namespace, key, field, place) > ($2::text, $3::text, $4::text, $5::bigint)
    AND {clauses}
ORDER BY namespace, key, field, place
LIMIT $6::bigint
"""

_KEYS = """
SELECT DISTINCT namespace, key
FROM tm.store_vector
WHERE (namespace, key) > ($1::text, $2::text)
ORDER BY namespace, key
LIMIT $3::bigint
"""

_COUNTS = f"""
SELECT
    count(*) FILTER (WHERE model = $1::text),
    count(*) FILTER (WHERE model <> $1::text AND place <> {CHOICE})
FROM tm.store_vector
WHERE {{clauses}}
"""

_PAGE_SIZE = 2048
_KEYS_AT_ONCE = 256


def vectors_over(rows: Any) -> "PostgresVectors":
    """Return the vectors in a saver's database."""
    return PostgresVectors(rows._schema)  # noqa: SLF001 - both have their tables in one schema


def ddl(schema: str | None = None) -> str:
    """Return the SQL script that creates the table, if the saver's role may not. The saver's own tables come first."""
    return script_of(_TABLES, schema)


class PostgresVectors:
    """Vectors in a table of one schema. None is the first schema of the connection's search path."""

    def __init__(self, schema: str | None) -> None:
        self._table = Table(schema, "threadmark_store_vector", _TABLES)

    def exists(self) -> Program[bool]:
        return self._table.exists()

    def create(self) -> Program[None]:
        return self._table.create()

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        return self._table.hold(keys)

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return list(map(_row, (yield from self._table.execute(_HEADS, *arrays_of(keys)))))

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return list(map(_row, (yield from self._table.execute(_WHOLE_ROWS, *arrays_of(keys)))))

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[VectorRow]) -> Program[None]:
        yield from self.delete(keys, None)
        if rows:
            yield from self._table.execute(
                _ADD,
                *arrays_of([row.key for row in rows]),
                Texts(to_column(row.vector.field) for row in rows),
                Numbers(row.vector.number for row in rows),
                Blobs(row.vector.data for row in rows),
                Texts(to_column(row.model) for row in rows),
                Numbers(row.check for row in rows),
                Texts(optional(row.owner) for row in rows),
            )

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        yield from self._table.execute(_DELETE, *arrays_of(keys), optional(owner))

    def page(self, scope: Scope, model: str, cursor: Cursor | None) -> Program[tuple[list[Scanned], Cursor | None]]:
        after = cursor or (to_column(scope.prefix), "", "", CHOICE)
        clauses, params = clauses_of(scope, 7)
        statement = _PAGE.format(clauses=clauses)
        rows = yield from self._table.execute(statement, to_column(model), *after, _PAGE_SIZE, *params)
        found: list[Any] = rows
        return found, rows[-1][:4] if len(rows) == _PAGE_SIZE else None

    def text(self, column: str) -> str:
        return from_column(column)

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        rows = yield from self._table.execute(_KEYS, *(cursor or ("", "")), _KEYS_AT_ONCE)
        return [key_in(*columns) for columns in rows], rows[-1] if len(rows) == _KEYS_AT_ONCE else None

    def counts(self, scope: Scope, model: str) -> Program[VectorCounts]:
        clauses, params = clauses_of(scope, 2)
        ((of_model, of_others),) = yield from self._table.execute(
            _COUNTS.format(clauses=clauses), to_column(model), *params
        )
        return VectorCounts(of_model, of_others)


def _row(columns: Sequence[Any]) -> VectorRow:
    namespace, key, field, number, data, model, check, owner = columns
    vector = Vector(from_column(field), number, bytes(data))
    return VectorRow(key_in(namespace, key), vector, from_column(model), check, from_optional(owner))
