"""Items in a table of the saver's schema. Most questions are one statement, and so one round trip.

JSON is in a column that keeps its text as it came, everything else in one of bytes. A statement that changes several
items takes them in the order of their keys, so that two batches wait for each other at most.
"""

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from threadmark.backends import ConfigError, Program, short_repr
from threadmark_postgres.arrays import Blobs, Numbers, Texts
from threadmark_postgres.steps import Query, Rows
from threadmark_store.items.sql import REPLACE, Clause, TableItems
from threadmark_store.shapes import Condition, ItemKey, ItemRow
from threadmark_store.tables.postgres import Database
from threadmark_store.tables.sql import columns_of, from_optional, key_in, optional

_LONGEST_KEY = 2600
"""In bytes, with its namespace. The server indexes hardly more."""
_MOST_BYTES = 4
"""The most bytes of one character in a column."""

_COLUMNS = "namespace, key, json::text, data, checksum, created_at, updated_at, owner, expires_at, ttl"

# Returns the items that were stored.
_PUT = f"""
INSERT INTO tm.store_item AS item (
    namespace, key, json, data, checksum, created_at, updated_at, owner, expires_at, ttl
)
SELECT n.namespace, n.key, n.json::json, n.data, n.checksum, n.created_at, n.updated_at, n.owner, n.expires_at, n.ttl
FROM unnest(
    ?text[], ?text[], ?text[], ?bytea[], ?bigint[], ?bigint[], ?bigint[], ?text[], ?bigint[], ?bigint[]
) AS n (namespace, key, json, data, checksum, created_at, updated_at, owner, expires_at, ttl)
{REPLACE.format(values="json = excluded.json, data = excluded.data")}
WHERE excluded.owner IS NULL OR item.owner = excluded.owner
RETURNING item.namespace, item.key
"""

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

_WITH_FRAGMENT = "(json IS NULL OR strpos(json::text, ?text) > 0)"
_WITH_TEXT = '(json IS NULL OR (json{steps} ->> ?text) COLLATE "C" {sign} ?text)'

# The JSON at a path, read once. Step by step takes half the time of `#>`.
_PART = """
CROSS JOIN LATERAL (SELECT (json{steps})::text COLLATE "C" AS part OFFSET 0) AS {name}
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
    size = _SIZE

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        """One statement. One item travels with the changes of other callers.

        If some of several items may be refused, it is part of a transaction: the caller undoes it.
        """
        sent = {_checked_columns_of(row.key): row for row in rows}
        keys = sorted(sent)
        params = _params(keys, [sent[key] for key in keys])
        ends = last and (len(rows) == 1 or all(row.owner is None for row in rows))
        turn = (*keys[0], "item") if ends and len(rows) == 1 else ()
        stored: Rows = yield Query(self._database.written(_PUT), params, ends, turn)
        if len(stored) == len(rows):
            return []
        refused = sent.keys() - set(stored)
        return [row.key for key, row in sent.items() if key in refused]

    def delete(self, keys: Sequence[ItemKey], owner: str | None, *, last: bool = False) -> Program[None]:
        """One statement."""
        yield from self._database.among(_DELETE, keys, *[optional(owner)] * 2, last=last)

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
        """Add clauses, and for numbers a join.

        Stored JSON has no spaces, so a value that equals another one begins as a fragment of the text. To find that
        takes less than reading the JSON, which is left for numbers: that fragment of a 5 is in a 50, too.
        """
        path, sign, value = condition
        if sign == "=" and (isinstance(value, bool) or value != 0):  # a zero may have a sign
            clauses.append((_WITH_FRAGMENT, (orjson.dumps({path[-1]: value}).decode()[1:-1],)))
        if isinstance(value, str):
            if sign != "=":
                clauses.append((_WITH_TEXT.format(steps=_steps(path[:-1]), sign=sign), (*path, value)))
        elif not isinstance(value, bool):
            name = f"part_{len(parts)}"
            parts.append((_PART.format(steps=_steps(path), name=name), path))
            clauses.append((_WITH_NUMBER.format(name=name, sign=sign), (repr(value),)))


rows_over = PostgresItems


def _steps(path: Sequence[str]) -> str:
    return " -> ?text" * len(path)


def _checked_columns_of(key: ItemKey) -> tuple[str, str]:
    """Return the columns of a key. Raises ConfigError if they are longer than an index holds."""
    columns = columns_of(key)
    if _MOST_BYTES * sum(map(len, columns)) > _LONGEST_KEY:
        size = sum(len(column.encode()) for column in columns)
        if size > _LONGEST_KEY:
            raise ConfigError(
                f"item {short_repr(key.key)} of namespace {short_repr(key.namespace)} has a key of {size} bytes with "
                f"its namespace, and Postgres indexes at most {_LONGEST_KEY}: give a shorter one, such as a digest"
            )
    return columns


def _params(keys: Sequence[tuple[str, str]], rows: Sequence[ItemRow]) -> tuple[Texts | Blobs | Numbers, ...]:
    """Return one array for each column."""
    return (
        Texts(namespace for namespace, _ in keys),
        Texts(key for _, key in keys),
        Texts(row.value if isinstance(row.value, str) else None for row in rows),
        Blobs(None if isinstance(row.value, str) else row.value for row in rows),
        Numbers(row.check for row in rows),
        Numbers(row.created_at for row in rows),
        Numbers(row.updated_at for row in rows),
        Texts(optional(row.owner) for row in rows),
        Numbers(row.expires_at for row in rows),
        Numbers(row.ttl for row in rows),
    )
