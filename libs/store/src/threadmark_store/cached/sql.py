"""Cached entries in a table of SQLite or Postgres. An entry without an owner has an empty one."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from threadmark.backends import Program
from threadmark_store.cached.contract import Placed
from threadmark_store.entries import Bound, Entry, EntryKey, likely_enough
from threadmark_store.shapes import Cursor, Scope
from threadmark_store.tables.sql import Columns, Database, Table, bytes_in, clauses_of, number_in, text_in

_COLUMNS: Columns = {
    "key": "bytea",
    "namespace": "bytea",
    "owner": "text",
    "value": "bytea",
    "checksum": "bigint",
    "size": "bigint",
    "used_at": "bigint",
    "expires_at": "bigint",
}

# The casts are for damaged files, whose columns may have values of other types.
_FIND = """
SELECT key, value, checksum, CAST(used_at AS bigint), CAST(expires_at AS bigint)
FROM tm.store_cached
WHERE key {among}
"""

_REPLACE = """
ON CONFLICT (key) DO UPDATE
SET value = excluded.value,
    checksum = excluded.checksum,
    size = excluded.size,
    used_at = excluded.used_at,
    expires_at = excluded.expires_at
"""

_WITH_KEYS = "SELECT rowid FROM tm.store_cached WHERE key {among}"

_PAGE = """
SELECT key, namespace, owner, value, checksum, CAST(used_at AS bigint), CAST(expires_at AS bigint), size, used_at
FROM tm.store_cached
WHERE key > ?bytea AND {clauses}
ORDER BY key
LIMIT ?bigint
"""
_PAGE_SIZE = 64

_SET = """
UPDATE tm.store_cached
SET value = ?bytea, checksum = ?bigint, size = ?bigint
WHERE key = ?bytea AND checksum = ?bigint
RETURNING 1
"""

_EXPIRED = """
SELECT rowid
FROM tm.store_cached
WHERE expires_at <= ?bigint AND {clauses}
LIMIT ?bigint
"""

_DELETE = "DELETE FROM tm.store_cached"

_SIZE = """
SELECT count(*), coalesce(sum(CAST(CAST(size AS bigint) AS double precision)), 0)
FROM tm.store_cached
WHERE {clauses}
"""

# The oldest entries whose predecessors do not yet free so many bytes.
_OLDEST = """
SELECT place
FROM (
    SELECT place, sum(size) OVER (ORDER BY used_at, place) - size AS freed
    FROM (
        SELECT rowid AS place, used_at, CAST(CAST(size AS bigint) AS double precision) AS size
        FROM tm.store_cached
        WHERE owner = ?text
        ORDER BY used_at
        LIMIT ?bigint
    ) AS first
) AS aged
WHERE freed < ?bigint
"""

_ALL: Final = 1 << 60
"""A limit that is none."""


class TableEntries(Table):
    """Entries in a table."""

    table = "cached"
    knows_size = False
    parts = 1

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        free = database.free
        self._touch = f"UPDATE tm.store_cached SET used_at = ?bigint WHERE rowid {free(_WITH_KEYS)}"
        self._drop = f"{_DELETE} WHERE rowid {free(f'{_WITH_KEYS} AND expires_at <= ?bigint')}"
        self._sweep = f"{_DELETE} WHERE rowid {free(_EXPIRED)}"
        oldest = f"SELECT rowid FROM tm.store_cached WHERE rowid {database.any_of(_OLDEST)}"
        self._evict = f"{_DELETE} WHERE rowid {free(oldest)} RETURNING CAST(size AS bigint)"

    def find(self, keys: Sequence[EntryKey], owner: str | None) -> Program[list[Entry]]:
        asked = {each.key: each for each in keys}
        rows = yield from self._database.among(_FIND, [[key] for key in asked], last=True)
        return [_entry(asked[key], owner, *columns) for key, *columns in rows]

    def add(self, entries: Sequence[Entry], owner: str | None, bound: Bound | None, now: int) -> Program[int | None]:
        left = None
        if bound is not None:
            left = yield from self._make_room(owner or "", bound, sum(entry.size for entry in entries), now)
        rows = [
            (*each.key, each.owner or "", each.value, each.check, each.size, each.used_at, each.expires_at)
            for each in sorted(entries, key=lambda each: each.key.key)
        ]
        yield from self._database.add("cached", _COLUMNS, rows, _REPLACE, last=bound is None)
        return left

    def note(self, used: Sequence[EntryKey], expired: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:
        asked = [[each.key] for each in used]
        yield from self._database.among(self._touch, asked, before=[now], last=not expired)
        yield from self._database.among(self._drop, [[each.key] for each in expired], now, last=not used)

    def clear(self, namespaces: Collection[bytes] | None, owner: str | None) -> Program[None]:
        """Waits for those who add entries, and they for it, so that none stays and none waits in a circle."""
        clauses, params = clauses_of(Scope(owner=owner))
        yield from self._database.lock("cached")
        if namespaces is None:
            yield from self._database.select(f"{_DELETE} WHERE {clauses}", *params)
        else:
            statement = f"{_DELETE} WHERE namespace {{among}} AND {clauses}"
            yield from self._database.among(statement, [[each] for each in namespaces], *params)

    def sweep(self, owner: str | None, now: int, limit: int) -> Program[int]:
        clauses, params = clauses_of(Scope(owner=owner))
        statement = f"{self._sweep.format(clauses=clauses)} RETURNING 1"
        return len((yield from self._database.select(statement, now, *params, limit, last=True)))

    def page(self, owner: str | None, cursor: Cursor | None) -> Program[tuple[list[Placed], Cursor | None]]:
        clauses, params = clauses_of(Scope(owner=owner))
        after = cursor[0] if cursor else b""
        rows = yield from self._database.select(_PAGE.format(clauses=clauses), after, *params, _PAGE_SIZE, last=True)
        found = [
            Placed(key, _whole_entry(EntryKey(bytes_in(key), bytes_in(namespace)), text_in(of) or None, *columns))
            for key, namespace, of, *columns in rows
        ]
        return found, (found[-1].place,) if len(found) == _PAGE_SIZE else None

    def replace(self, old: Placed, new: Entry | None) -> Program[bool]:
        if new is None:
            params: tuple[Any, ...] = old.place, old.entry.check
            statement = f"{_DELETE} WHERE key = ?bytea AND checksum = ?bigint RETURNING 1"
        else:
            params = new.value, new.check, new.size, old.place, old.entry.check
            statement = _SET
        return bool((yield from self._database.select(statement, *params, last=True)))

    def size(self, owner: str | None) -> Program[tuple[int, int]]:
        clauses, params = clauses_of(Scope(owner=owner))
        ((count, size),) = yield from self._database.select(_SIZE.format(clauses=clauses), *params, last=True)
        return count, int(size)

    def _make_room(self, owner: str, bound: Bound, size: int, now: int) -> Program[int]:
        """Make room for entries of an owner. Returns how many more bytes the bound leaves."""
        clauses, params = clauses_of(Scope(owner=owner))
        yield from self._database.select(self._sweep.format(clauses=clauses), now, *params, _ALL)
        ((count, stored),) = yield from self._database.select(_SIZE.format(clauses=clauses), *params)
        left = bound.most - size - int(stored)
        wanted = 0 if left >= 0 else bound.spare
        while left < wanted:
            limit = likely_enough(wanted - left, count, int(stored))
            rows = yield from self._database.select(self._evict, *params, limit, wanted - left)
            if not rows:  # the oldest are in the hands of others
                break
            left += sum(freed for (freed,) in rows)
        return left


rows_over = TableEntries


def _entry(key: EntryKey, owner: str | None, value: Any, check: Any, used_at: int, expires_at: int | None) -> Entry:
    return Entry(key, owner, bytes_in(value), number_in(check), used_at, expires_at)


def _whole_entry(key: EntryKey, owner: str | None, *columns: Any) -> Entry:
    """Return the entry of a row whose other columns a search does not look at. If one is damaged, it has no value."""
    *searched, size, used_at = columns
    entry = _entry(key, owner, *searched)
    return entry if size == entry.size and type(used_at) is int else entry._replace(value=b"")
