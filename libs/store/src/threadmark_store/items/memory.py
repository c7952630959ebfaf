"""Items in a dictionary of the memory saver."""

from collections.abc import Collection, Iterator, Sequence

from threadmark.memory.tables import Tables
from threadmark_store.namespaces import is_within
from threadmark_store.shapes import ItemKey, ItemRow, Place, Scope
from threadmark_store.tables.memory import MemoryTable, program


class MemoryItems(MemoryTable):
    """Items in a dictionary."""

    table = "item"

    @program
    def items(self, tables: Tables, keys: Sequence[ItemKey]) -> dict[ItemKey, ItemRow]:
        rows = self._of(tables)
        return {key: rows[key] for key in keys if key in rows}

    @program
    def lock(self, tables: Tables, keys: Sequence[ItemKey]) -> None:
        """Nothing to do: there is one writer."""

    @program
    def put(self, tables: Tables, rows: Sequence[ItemRow], *, last: bool = False) -> list[ItemKey]:
        refused = []
        for row in rows:
            before = self._of(tables).get(row.key)
            if before is None:
                tables.set(self._of(tables), row.key, row)
            elif row.owner in (None, before.owner):
                is_new = before.expires_at is not None and before.expires_at <= row.created_at
                kept = row._replace(created_at=row.created_at if is_new else before.created_at, owner=before.owner)
                tables.set(self._of(tables), row.key, kept)
            else:
                refused.append(row.key)
        return refused

    @program
    def delete(self, tables: Tables, keys: Sequence[ItemKey], owner: str | None) -> None:
        for key in keys:
            row = self._of(tables).get(key)
            if row is not None and owner in (None, row.owner):
                tables.unset(self._of(tables), key)

    @program
    def refresh(self, tables: Tables, keys: Collection[ItemKey], now: int) -> None:
        for key in keys:
            row = self._of(tables).get(key)
            if row is not None and row.ttl is not None:
                tables.set(self._of(tables), key, row._replace(expires_at=now + row.ttl))

    @program
    def search(self, tables: Tables, scope: Scope, after: Place | None, limit: int, offset: int) -> list[ItemRow]:
        rows = sorted(self._in(tables, scope), key=_place)
        if after is not None:
            rows = [row for row in rows if _place(row) > (-after.updated_at, after.key)]
        return rows[offset : offset + limit]

    @program
    def in_key_order(self, tables: Tables, scope: Scope, after: ItemKey | None, limit: int) -> list[ItemRow]:
        rows = [row for row in self._in(tables, scope) if after is None or row.key > after]
        return sorted(rows, key=lambda row: row.key)[:limit]

    @program
    def namespaces(self, tables: Tables, scope: Scope) -> list[str]:
        return sorted({row.key.namespace for row in self._in(tables, scope)})

    @program
    def sweep(self, tables: Tables, now: int, limit: int) -> list[ItemKey]:
        rows = self._of(tables)
        expired = [key for key, row in rows.items() if row.expires_at is not None and row.expires_at <= now]
        for key in expired[:limit]:
            tables.unset(rows, key)
        return expired[:limit]

    @program
    def count(self, tables: Tables, scope: Scope) -> tuple[int, int]:
        sizes = [row.size for row in self._in(tables, scope)]
        return len(sizes), sum(sizes)

    def _in(self, tables: Tables, scope: Scope) -> Iterator[ItemRow]:
        for row in self._of(tables).values():
            if is_within(row.key.namespace, scope.prefix) and scope.has(row):
                yield row


rows_over = MemoryItems


def _place(row: ItemRow) -> tuple[int, ItemKey]:
    return -row.updated_at, row.key
