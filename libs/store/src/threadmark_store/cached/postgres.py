"""Cached entries in a table of the saver's schema on Postgres. An entry without an owner has an empty one.

Statements lock rows in the order of their keys, or leave out those that others have locked: so none waits in a circle.
"""

from collections.abc import Collection, Sequence
from typing import Any

from threadmark.backends import Program, to_column
from threadmark_postgres.arrays import Blobs, Numbers
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql.connections import LOCK_SETUP
from threadmark_postgres.steps import Rows, execute
from threadmark_store.columns.postgres import exists
from threadmark_store.entries import Bound, Entry, EntryKey, likely_enough

_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS tm.store_cached (
        key bytea PRIMARY KEY,
        namespace bytea NOT NULL,
        owner text COLLATE "C" NOT NULL,
        value bytea NOT NULL,
        checksum bigint NOT NULL,
        size bigint NOT NULL,
        used_at bigint NOT NULL,
        expires_at bigint
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS threadmark_store_cached_used
    ON tm.store_cached (owner, used_at) INCLUDE (size)
    """,
    "CREATE INDEX IF NOT EXISTS threadmark_store_cached_namespace ON tm.store_cached (namespace)",
    """
    CREATE INDEX IF NOT EXISTS threadmark_store_cached_expiry
    ON tm.store_cached (expires_at)
    WHERE expires_at IS NOT NULL
    """,
)

_FIND = """
SELECT key, value, checksum, used_at, expires_at
FROM tm.store_cached
WHERE key = ANY($1::bytea[])
"""

_ADD = """
INSERT INTO tm.store_cached (key, namespace, owner, value, checksum, size, used_at, expires_at)
SELECT key, namespace, $3::text, value, checksum, size, $6::bigint, expires_at
FROM unnest($1::bytea[], $2::bytea[], $4::bytea[], $5::bigint[], $7::bigint[], $8::bigint[])
    AS given (key, namespace, value, checksum, size, expires_at)
ORDER BY key
ON CONFLICT (key) DO UPDATE
SET value = excluded.value,
    checksum = excluded.checksum,
    size = excluded.size,
    used_at = excluded.used_at,
    expires_at = excluded.expires_at
"""

_TOUCH = """
WITH used AS (
    SELECT key
    FROM tm.store_cached
    WHERE key = ANY($1::bytea[])
    FOR UPDATE SKIP LOCKED
)
UPDATE tm.store_cached AS entry
SET used_at = $2::bigint
FROM used
WHERE entry.key = used.key
"""

_DROP = """
WITH expired AS (
    SELECT key
    FROM tm.store_cached
    WHERE key = ANY($1::bytea[]) AND expires_at <= $2::bigint
    FOR UPDATE SKIP LOCKED
)
DELETE FROM tm.store_cached AS entry
USING expired
WHERE entry.key = expired.key
"""

# Waits for transactions that add entries, and they for it, so that none of them stays and none waits in a circle.
_LOCK = "LOCK TABLE tm.store_cached IN SHARE ROW EXCLUSIVE MODE"

_CLEAR = """
DELETE FROM tm.store_cached
WHERE ($1::bytea[] IS NULL OR namespace = ANY($1::bytea[])) AND ($2::text IS NULL OR owner = $2::text)
"""

_SWEEP = """
WITH expired AS (
    SELECT key
    FROM tm.store_cached
    WHERE expires_at <= $1::bigint AND ($2::text IS NULL OR owner = $2::text)
    LIMIT $3::bigint
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM tm.store_cached AS entry
    USING expired
    WHERE entry.key = expired.key
    RETURNING 1
)
SELECT count(*) FROM removed
"""

_SIZE = """
SELECT count(*), coalesce(sum(size), 0)::bigint
FROM tm.store_cached
WHERE $1::text IS NULL OR owner = $1::text
"""

_SIZE_OF_OWNER = "SELECT count(*), coalesce(sum(size), 0)::bigint FROM tm.store_cached WHERE owner = $1::text"

# The oldest entries whose predecessors do not yet free so many bytes.
_EVICT = """
WITH aged AS (
    SELECT key, sum(size) OVER (ORDER BY used_at, key) - size AS freed
    FROM (
        SELECT key, used_at, size
        FROM tm.store_cached
        WHERE owner = $1::text
        ORDER BY used_at
        LIMIT $3::bigint
    ) AS first
), oldest AS (
    SELECT entry.key
    FROM tm.store_cached AS entry
    JOIN aged ON aged.key = entry.key
    WHERE aged.freed < $2::bigint
    FOR UPDATE OF entry SKIP LOCKED
), removed AS (
    DELETE FROM tm.store_cached AS entry
    USING oldest
    WHERE entry.key = oldest.key
    RETURNING entry.size
)
SELECT coalesce(sum(size), 0)::bigint FROM removed
"""


def entries_over(rows: Any) -> "PostgresEntries":
    """Return the cached entries in the database of a saver's rows."""
    return PostgresEntries(rows._schema)  # noqa: SLF001 - the tables lie in the schema of the saver's


class PostgresEntries:
    """Entries in a table."""

    knows_size = False
    parts = 1

    def __init__(self, schema: str | None) -> None:
        self._schema = schema

    def exists(self) -> Program[bool]:
        return exists("threadmark_store_cached", self._schema, likely_last=True)

    def create(self) -> Program[None]:
        yield from self._execute(LOCK_SETUP)
        for statement in _TABLES:
            yield from self._execute(statement)

    def find(self, keys: Sequence[EntryKey], owner: str | None) -> Program[list[Entry]]:
        asked = {each.key: each for each in keys}
        rows = yield from self._execute(_FIND, Blobs(asked), likely_last=True)
        return [Entry(asked[key], owner, *columns) for key, *columns in rows]

    def add(self, entries: Sequence[Entry], owner: str | None, bound: Bound | None, now: int) -> Program[int | None]:
        left = None
        if bound is not None:
            left = yield from self._make_room(to_column(owner or ""), bound, sum(entry.size for entry in entries), now)
        yield from self._execute(
            _ADD,
            Blobs(entry.key.key for entry in entries),
            Blobs(entry.key.namespace for entry in entries),
            to_column(owner or ""),
            Blobs(entry.value for entry in entries),
            Numbers(entry.check for entry in entries),
            now,
            Numbers(entry.size for entry in entries),
            Numbers(entry.expires_at for entry in entries),
            likely_last=bound is None,
        )
        return left

    def touch(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:  # noqa: ARG002 - part of a key
        yield from self._execute(_TOUCH, Blobs(each.key for each in keys), now, likely_last=True)

    def drop(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:  # noqa: ARG002 - see above
        yield from self._execute(_DROP, Blobs(each.key for each in keys), now, likely_last=True)

    def clear(self, namespaces: Collection[bytes] | None, owner: str | None) -> Program[None]:
        asked = None if namespaces is None else Blobs(namespaces)
        yield from self._execute(_LOCK)
        yield from self._execute(_CLEAR, asked, _whose(owner))

    def sweep(self, owner: str | None, now: int, limit: int) -> Program[int]:
        ((count,),) = yield from self._execute(_SWEEP, now, _whose(owner), limit, likely_last=True)
        return int(count)

    def size(self, owner: str | None) -> Program[tuple[int, int]]:
        ((count, size),) = yield from self._execute(_SIZE, _whose(owner), likely_last=True)
        return int(count), int(size)

    def _make_room(self, owner: str, bound: Bound, size: int, now: int) -> Program[int]:
        """Make room for entries of an owner. Returns how many more bytes the bound leaves."""
        yield from self._execute(_SWEEP, now, owner, None)
        ((count, stored),) = yield from self._execute(_SIZE_OF_OWNER, owner)
        left = int(bound.most - size - stored)
        wanted = 0 if left >= 0 else bound.spare
        while left < wanted:
            limit = likely_enough(wanted - left, count, stored)
            ((freed,),) = yield from self._execute(_EVICT, owner, wanted - left, limit)
            if not freed:  # the oldest are in the hands of others
                break
            left += int(freed)
        return left

    def _execute(self, statement: str, *params: Any, likely_last: bool = False) -> Program[Rows]:
        return execute(in_schema(statement, self._schema), params, likely_last=likely_last)


def _whose(owner: str | None) -> str | None:
    return None if owner is None else to_column(owner)
