"""Items in a table of the saver's schema. Most questions are one statement, and so one round trip.

JSON is in a column that keeps its text as it came, everything else in one of bytes. A statement that changes several
items takes them in the order of their keys, so that two batches wait for each other at most.
"""

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from threadmark.backends import Program
from threadmark_postgres.steps import Query, Rows
from threadmark_store.items.sql import REPLACE, Clause, TableItems
from threadmark_store.shapes import Condition, ItemKey, ItemRow
from threadmark_store.tables.postgres import Database, arrays, expect_indexable
from threadmark_store.tables.sql import Kind, columns_of, from_optional, key_in, optional

_COLUMNS = "namespace, key, json::text, data, checksum, created_at, updated_at, owner, expires_at, ttl"

# Returns the items that were stored.
_PUT = f"""
INSERT INTO tm.store_item AS item (
    namespace, key, json, data, checksum, created_at, updated_at, owner, expires_at, ttl
)
{{rows}}
{REPLACE.format(values="json = excluded.json, data = excluded.data")}
WHERE excluded.owner IS NULL OR item.owner = excluded.owner
RETURNING item.namespace, item.key
"""
_KINDS: Sequence[Kind] = ("text", "text", "text", "bytea", "bigint", "bigint", "bigint", "text", "bigint", "bigint")
# One item is the most frequent change by far, and arrays take the server half as long again.
_PUT_ONE = _PUT.format(
    rows="VALUES (?text, ?text, ?text::json, ?bytea, ?bigint, ?bigint, ?bigint, ?text, ?bigint, ?bigint)"
)
_PUT_SEVERAL = _PUT.format(
    rows="""
SELECT
    unnest(?text[]), unnest(?text[]), unnest(?text[])::json, unnest(?bytea[]), unnest(?bigint[]), unnest(?bigint[]),
    unnest(?bigint[]), unnest(?text[]), unnest(?bigint[]), unnest(?bigint[])
""".strip()
)

# Rows are locked in the order of their keys.
_HELD = """
WITH held AS (
    SELECT namespace, key
    FROM tm.store_item
    WHERE (namespace, key) {among}
    ORDER BY namespace, key
    FOR UPDATE
)
""".strip()
_DELETE = f"""
{_HELD}
DELETE FROM tm.store_item AS item
USING held
WHERE item.namespace = held.namespace AND item.key = held.key AND (?text IS NULL OR item.owner = ?text)
"""
_REFRESH = f"""
{_HELD}
UPDATE tm.store_item AS item
SET expires_at = ?bigint + item.ttl
FROM held
WHERE item.namespace = held.namespace AND item.key = held.key AND item.ttl IS NOT NULL
"""

_SEARCH = """
SELECT {columns}
FROM tm.store_item{parts}
WHERE {clauses}
ORDER BY {updated_at} DESC, namespace, key
LIMIT ?bigint OFFSET ?bigint
"""

_SIZE = "octet_length(namespace) + octet_length(key) + coalesce(octet_length(json::text), octet_length(data), 0)"

_WITH_TEXT = '(json IS NULL OR (json{steps} ->> ?text) COLLATE "C" {sign} ?text)'

# The JSON of a value, up to the end of a number. If the text has its key once, this takes less than reading all JSON.
# Otherwise it is read step by step, in half the time of `#>`.
_PART = """
CROSS JOIN LATERAL (
    SELECT CASE
            WHEN split_part(json::text, ?text, 3) = ''
                THEN split_part(split_part(split_part(json::text, ?text, 2), ',', 1), '}}', 1)
            ELSE (json{steps})::text
        END COLLATE "C" AS part
    OFFSET 0
) AS {name}
""".rstrip()
# Only the JSON of a number begins with a sign or a digit. A number that could be too large for the server's type comes
# along, as do all that have an exponent.
_WITH_NUMBER = """
(json IS NULL OR CASE
    WHEN {name}.part < '-' OR {name}.part >= ':' THEN false
    WHEN length({name}.part) > 400 OR strpos({name}.part, 'e') > 0 OR strpos({name}.part, 'E') > 0 THEN true
    ELSE {name}.part::numeric {sign} ?text::numeric
END)
""".strip()


class PostgresItems(TableItems):
    """Items in a table of one schema."""

    _database: Database
    columns = _COLUMNS
    searching = _SEARCH
    within = "{}"
    with_fragment = "(json IS NULL OR strpos(json::text, ?text) > 0)"
    size = _SIZE

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        """One statement. One item travels with the changes of other callers.

        If some of several items may be refused, it is part of a transaction: the caller undoes it.
        """
        sent = {columns_of(row.key): row for row in rows}
        expect_indexable(self.table, ("namespace", "key"), list(sent))
        columns = [_columns(key, sent[key]) for key in sorted(sent)]
        if len(rows) == 1:
            turn = (*columns[0][:2], "item") if last else ()
            query = Query(self._database.written(_PUT_ONE), columns[0], last, turn)
        else:
            ends = last and all(row.owner is None for row in rows)
            query = Query(self._database.written(_PUT_SEVERAL), arrays(_KINDS, columns), ends)
        stored: Rows = yield query
        if len(stored) == len(rows):
            return []
        refused = sent.keys() - set(stored)
        return [row.key for key, row in sent.items() if key in refused]

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """One statement."""
        yield from self._database.among(_DELETE, keys, *[optional(owner)] * 2)

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        """One statement."""
        yield from self._database.among(_REFRESH, list(keys), now, last=True)

    def row(self, columns: Sequence[Any]) -> ItemRow:
        """Return a row. If it has lost its value, its check reports that."""
        namespace, key, json, data, check, created_at, updated_at, owner, expires_at, ttl = columns
        value = json if json is not None else bytes(data or b"")
        place = key_in(namespace, key)
        return ItemRow(place, value, check, created_at, updated_at, from_optional(owner), expires_at, ttl)

    def compare(self, condition: Condition, clauses: list[Clause], parts: list[Clause]) -> None:
        """Add clauses, and for numbers a join."""
        path, sign, value = condition
        if isinstance(value, str):
            clauses.append((_WITH_TEXT.format(steps=_steps(path[:-1]), sign=sign), (*path, value)))
        else:
            name, key = f"part_{len(parts)}", f"{orjson.dumps(path[-1]).decode()}:"
            parts.append((_PART.format(steps=_steps(path), name=name), (key, key, *path)))
            clauses.append((_WITH_NUMBER.format(name=name, sign=sign), (repr(value),)))


rows_over = PostgresItems


def _steps(path: Sequence[str]) -> str:
    return " -> ?text" * len(path)


def _columns(key: tuple[str, str], row: ItemRow) -> tuple[Any, ...]:
    value = (row.value, None) if isinstance(row.value, str) else (None, row.value)
    times = row.created_at, row.updated_at
    return *key, *value, row.check, *times, optional(row.owner), row.expires_at, row.ttl
