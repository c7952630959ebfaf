"""Cached entries in a table of the saver's SQLite file. An entry without an owner has an empty one."""

from collections.abc import Collection, Sequence
from typing import Any

from threadmark.backends import Program, to_column
from threadmark_sqlite.placeholders import chunks, with_placeholders
from threadmark_sqlite.steps import execute, execute_alone, executemany
from threadmark_store.entries import Bound, Entry, EntryKey, likely_enough

_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = 'threadmark_store_cached'"

_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS threadmark_store_cached (
        key BLOB NOT NULL,
        namespace BLOB NOT NULL,
        owner TEXT NOT NULL,
        value BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        size INTEGER NOT NULL,
        used_at INTEGER NOT NULL,
        expires_at INTEGER
    )
    """,
    "CREATE UNIQUE INDEX IF NOT EXISTS threadmark_store_cached_key ON threadmark_store_cached (key)",
    """
    CREATE INDEX IF NOT EXISTS threadmark_store_cached_used
    ON threadmark_store_cached (owner, used_at, size)
    """,
    "CREATE INDEX IF NOT EXISTS threadmark_store_cached_namespace ON threadmark_store_cached (namespace)",
    """
    CREATE INDEX IF NOT EXISTS threadmark_store_cached_expiry
    ON threadmark_store_cached (expires_at)
    WHERE expires_at IS NOT NULL
    """,
)

_FIND = """
SELECT key, value, checksum, CAST(used_at AS INTEGER), CAST(expires_at AS INTEGER)
FROM threadmark_store_cached
WHERE key IN ({placeholders})
"""

_ADD = """
INSERT INTO threadmark_store_cached (key, namespace, owner, value, checksum, size, used_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE
SET value = excluded.value,
    checksum = excluded.checksum,
    size = excluded.size,
    used_at = excluded.used_at,
    expires_at = excluded.expires_at
"""

_TOUCH = "UPDATE threadmark_store_cached SET used_at = ? WHERE key = ?"

_DROP = "DELETE FROM threadmark_store_cached WHERE key = ? AND expires_at <= ?"

_CLEAR = "DELETE FROM threadmark_store_cached"
_OF_OWNER = "WHERE owner = ?"
_IN_NAMESPACE = "WHERE namespace = ? AND (? IS NULL OR owner = ?)"

_SWEEP = """
DELETE FROM threadmark_store_cached
WHERE rowid IN (
    SELECT rowid
    FROM threadmark_store_cached
    WHERE expires_at <= ? AND (? IS NULL OR owner = ?)
    LIMIT ?
)
RETURNING 1
"""

_SIZE = "SELECT count(*), coalesce(sum(size), 0) FROM threadmark_store_cached"

# The oldest entries whose predecessors do not yet free so many bytes.
_EVICT = """
DELETE FROM threadmark_store_cached
WHERE rowid IN (
    SELECT id
    FROM (
        SELECT id, sum(size) OVER (ORDER BY used_at, id) - size AS freed
        FROM (
            SELECT rowid AS id, used_at, size
            FROM threadmark_store_cached
            WHERE owner = ?
            ORDER BY used_at
            LIMIT ?
        )
    )
    WHERE freed < ?
)
RETURNING size
"""

_ALL = -1
"""A limit that is none."""

_ALONE = 256
"""As many entries are found by one statement."""


def entries_over(rows: object) -> "SqliteEntries":  # noqa: ARG001 - a file has one set of tables
    """Return the cached entries in the database of a saver's rows."""
    return SqliteEntries()


class SqliteEntries:
    """Entries in a table."""

    knows_size = False
    parts = 1

    def exists(self) -> Program[bool]:
        return bool((yield from execute_alone(_EXISTS)))

    def create(self) -> Program[None]:
        for statement in _TABLES:
            yield from execute(statement)

    def find(self, keys: Sequence[EntryKey], owner: str | None) -> Program[list[Entry]]:
        asked = {each.key: each for each in keys}
        ask = execute_alone if len(asked) <= _ALONE else execute
        found = {}
        for some in chunks(list(asked)):
            for key, *columns in (yield from ask(with_placeholders(_FIND, some), some)):
                found[key] = Entry(asked[key], owner, *columns)
        return list(found.values())

    def add(self, entries: Sequence[Entry], owner: str | None, bound: Bound | None, now: int) -> Program[int | None]:
        left = None
        if bound is not None:
            left = yield from _make_room(to_column(owner or ""), bound, sum(entry.size for entry in entries), now)
        yield from executemany(_ADD, [_params(entry) for entry in entries])
        return left

    def touch(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:  # noqa: ARG002 - part of a key
        yield from executemany(_TOUCH, [(now, each.key) for each in keys])

    def drop(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:  # noqa: ARG002 - see above
        yield from executemany(_DROP, [(each.key, now) for each in keys])

    def clear(self, namespaces: Collection[bytes] | None, owner: str | None) -> Program[None]:
        whose = None if owner is None else to_column(owner)
        if namespaces is not None:
            yield from executemany(f"{_CLEAR} {_IN_NAMESPACE}", [(each, whose, whose) for each in namespaces])
        elif whose is None:
            yield from execute(_CLEAR)
        else:
            yield from execute(f"{_CLEAR} {_OF_OWNER}", (whose,))

    def sweep(self, owner: str | None, now: int, limit: int) -> Program[int]:
        whose = None if owner is None else to_column(owner)
        return len((yield from execute(_SWEEP, (now, whose, whose, limit))))

    def size(self, owner: str | None) -> Program[tuple[int, int]]:
        if owner is None:
            rows = yield from execute_alone(_SIZE)
        else:
            rows = yield from execute_alone(f"{_SIZE} {_OF_OWNER}", (to_column(owner),))
        ((count, size),) = rows
        return count, size


def _make_room(owner: str, bound: Bound, size: int, now: int) -> Program[int]:
    """Make room for entries of an owner. Returns how many more bytes the bound leaves."""
    yield from execute(_SWEEP, (now, owner, owner, _ALL))
    ((count, stored),) = yield from execute(f"{_SIZE} {_OF_OWNER}", (owner,))
    left = int(bound.most - size - stored)
    wanted = 0 if left >= 0 else bound.spare
    while left < wanted:
        rows = yield from execute(_EVICT, (owner, likely_enough(wanted - left, count, stored), wanted - left))
        if not rows:
            break
        left += sum(freed for (freed,) in rows)
    return left


def _params(entry: Entry) -> tuple[Any, ...]:
    owner = to_column(entry.owner or "")
    return *entry.key, owner, entry.value, entry.check, entry.size, entry.used_at, entry.expires_at
