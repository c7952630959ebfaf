"""Cached entries in a dictionary of the memory saver, in whose transactions they are changed and undone."""

from collections.abc import Collection, Sequence

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.entries import Bound, Entry, EntryKey
from threadmark_store.tables.memory import MemoryTable


def rows_over(rows: object) -> "MemoryEntries":  # noqa: ARG001 - the dictionaries are the driver's
    """Return the cached entries in the database of a saver's rows."""
    return MemoryEntries()


class MemoryEntries(MemoryTable):
    """Entries in a dictionary."""

    knows_size = False
    parts = 1

    def find(self, keys: Sequence[EntryKey], owner: str | None) -> Program[list[Entry]]:  # noqa: ARG002 - part of a key
        return with_tables(lambda tables: [_rows(tables)[key] for key in keys if key in _rows(tables)])

    def add(self, entries: Sequence[Entry], owner: str | None, bound: Bound | None, now: int) -> Program[int | None]:
        def call(tables: Tables) -> int | None:
            left = None
            if bound is not None:
                left = _make_room(tables, owner, bound, sum(entry.size for entry in entries), now)
            for entry in entries:
                tables.set(_rows(tables), entry.key, entry)
            return left

        return with_tables(call)

    def touch(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:  # noqa: ARG002 - see above
        def call(tables: Tables) -> None:
            for key in keys:
                if (entry := _rows(tables).get(key)) is not None:
                    tables.set(_rows(tables), key, entry._replace(used_at=now))

        return with_tables(call)

    def drop(self, keys: Sequence[EntryKey], owner: str | None, now: int) -> Program[None]:  # noqa: ARG002 - see above
        def call(tables: Tables) -> None:
            for key in keys:
                entry = _rows(tables).get(key)
                if entry is not None and _has_expired(entry, now):
                    tables.unset(_rows(tables), key)

        return with_tables(call)

    def clear(self, namespaces: Collection[bytes] | None, owner: str | None) -> Program[None]:
        def call(tables: Tables) -> None:
            kept = {
                key: entry
                for key, entry in _rows(tables).items()
                if owner not in (None, entry.owner) or (namespaces is not None and key.namespace not in namespaces)
            }
            tables.set(tables.others, "cached", kept)

        return with_tables(call)

    def sweep(self, owner: str | None, now: int, limit: int) -> Program[int]:
        def call(tables: Tables) -> int:
            found = [
                key for key, entry in _rows(tables).items() if owner in (None, entry.owner) and _has_expired(entry, now)
            ]
            for key in found[:limit]:
                tables.unset(_rows(tables), key)
            return len(found[:limit])

        return with_tables(call)

    def size(self, owner: str | None) -> Program[tuple[int, int]]:
        def call(tables: Tables) -> tuple[int, int]:
            sizes = [entry.size for entry in _rows(tables).values() if owner in (None, entry.owner)]
            return len(sizes), sum(sizes)

        return with_tables(call)


def _rows(tables: Tables) -> dict[EntryKey, Entry]:
    found: dict[EntryKey, Entry] = tables.others.setdefault("cached", {})
    return found


def _has_expired(entry: Entry, now: int) -> bool:
    return entry.expires_at is not None and entry.expires_at <= now


def _make_room(tables: Tables, owner: str | None, bound: Bound, size: int, now: int) -> int:
    """Make room for entries of an owner. Returns how many more bytes the bound leaves."""
    entries = [entry for entry in _rows(tables).values() if entry.owner == owner]
    for entry in entries:
        if _has_expired(entry, now):
            tables.unset(_rows(tables), entry.key)
    entries = [entry for entry in entries if not _has_expired(entry, now)]
    left = bound.most - size - sum(entry.size for entry in entries)
    if left < 0:
        for entry in sorted(entries, key=lambda each: each.used_at):
            tables.unset(_rows(tables), entry.key)
            left += entry.size
            if left >= bound.spare:
                break
    return left
