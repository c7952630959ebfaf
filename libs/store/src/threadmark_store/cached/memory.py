"""Cached entries in a dictionary of the memory saver."""

from collections.abc import Collection, Sequence

from threadmark.memory.tables import Tables
from threadmark_store.cached.contract import Placed
from threadmark_store.entries import Bound, Entry, EntryKey
from threadmark_store.shapes import Cursor
from threadmark_store.tables.memory import MemoryTable, program


class MemoryEntries(MemoryTable):
    """Entries in a dictionary."""

    table = "cached"
    knows_size = False
    parts = 1

    @program
    def find(self, tables: Tables, keys: Sequence[EntryKey], owner: str | None) -> list[Entry]:
        rows = self._of(tables)
        return [rows[key] for key in keys if key in rows]

    @program
    def add(
        self, tables: Tables, entries: Sequence[Entry], owner: str | None, bound: Bound | None, now: int
    ) -> int | None:
        left = None
        if bound is not None:
            left = self._make_room(tables, owner, bound, sum(entry.size for entry in entries), now)
        for entry in entries:
            tables.set(self._of(tables), entry.key, entry)
        return left

    @program
    def note(
        self, tables: Tables, used: Sequence[EntryKey], expired: Sequence[EntryKey], owner: str | None, now: int
    ) -> None:
        rows = self._of(tables)
        for key in used:
            if key in rows:
                tables.set(rows, key, rows[key]._replace(used_at=now))
        for key in expired:
            if key in rows and _has_expired(rows[key], now):
                tables.unset(rows, key)

    @program
    def clear(self, tables: Tables, namespaces: Collection[bytes] | None, owner: str | None) -> None:
        kept = {
            key: entry
            for key, entry in self._of(tables).items()
            if owner not in (None, entry.owner) or (namespaces is not None and key.namespace not in namespaces)
        }
        tables.set(tables.others, self.table, kept)

    @program
    def sweep(self, tables: Tables, owner: str | None, now: int, limit: int) -> int:
        rows = self._of(tables)
        found = [key for key, entry in rows.items() if owner in (None, entry.owner) and _has_expired(entry, now)]
        for key in found[:limit]:
            tables.unset(rows, key)
        return len(found[:limit])

    @program
    def page(self, tables: Tables, owner: str | None, cursor: Cursor | None) -> tuple[list[Placed], Cursor | None]:
        found = self._of(tables).values()
        return [Placed(entry.key, entry) for entry in found if owner in (None, entry.owner)], None

    @program
    def replace(self, tables: Tables, old: Placed, new: Entry | None) -> bool:
        rows = self._of(tables)
        if old.place not in rows or rows[old.place].check != old.entry.check:
            return False
        if new is None:
            tables.unset(rows, old.place)
        else:
            tables.set(rows, old.place, rows[old.place]._replace(value=new.value, check=new.check))
        return True

    @program
    def size(self, tables: Tables, owner: str | None) -> tuple[int, int]:
        sizes = [entry.size for entry in self._of(tables).values() if owner in (None, entry.owner)]
        return len(sizes), sum(sizes)

    def _make_room(self, tables: Tables, owner: str | None, bound: Bound, size: int, now: int) -> int:
        """Make room for entries of an owner. Returns how many more bytes the bound leaves."""
        rows = self._of(tables)
        entries = [entry for entry in rows.values() if entry.owner == owner]
        for entry in entries:
            if _has_expired(entry, now):
                tables.unset(rows, entry.key)
        entries = [entry for entry in entries if not _has_expired(entry, now)]
        left: int = bound.most - size - sum(entry.size for entry in entries)
        if left < 0:
            for entry in sorted(entries, key=lambda each: each.used_at):
                tables.unset(rows, entry.key)
                left += entry.size
                if left >= bound.spare:
                    break
        return left


rows_over = MemoryEntries


def _has_expired(entry: Entry, now: int) -> bool:
    return entry.expires_at is not None and entry.expires_at <= now
