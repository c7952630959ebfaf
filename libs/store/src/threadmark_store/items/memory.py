"""Items in a dictionary of the memory saver, in whose transactions they are changed and undone."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from threadmark.backends import Program
from threadmark.memory.tables import Tables, with_tables
from threadmark_store.namespaces import is_within
from threadmark_store.shapes import ItemKey, ItemRow, Place, Scope
from threadmark_store.tables.memory import MemoryTable


def rows_over(rows: object) -> "MemoryItems":  # noqa: ARG001 - the dictionaries are the driver's
    """Return the items next to a saver's rows."""
    return MemoryItems()


class MemoryItems(MemoryTable):
    """Items in a dictionary."""

    def items(self, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, ItemRow]]:
        return with_tables(lambda tables: {key: _rows(tables)[key] for key in keys if key in _rows(tables)})

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        def call(tables: Tables) -> list[ItemKey]:
            refused = []
            for row in rows:
                before = _rows(tables).get(row.key)
                if before is not None and row.owner is not None and before.owner != row.owner:
                    refused.append(row.key)
                elif before is None:
                    tables.set(_rows(tables), row.key, row)
                else:
                    kept = row._replace(created_at=before.created_at, owner=before.owner)
                    tables.set(_rows(tables), row.key, kept)
            return refused

        return with_tables(call)

    def delete(self, keys: Sequence[ItemKey], owner: str | None, *, last: bool = False) -> Program[None]:
        def call(tables: Tables) -> None:
            for key in keys:
                row = _rows(tables).get(key)
                if row is not None and owner in (None, row.owner):
                    tables.unset(_rows(tables), key)

        return with_tables(call)

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        def call(tables: Tables) -> None:
            for key in keys:
                row = _rows(tables).get(key)
                if row is not None and row.ttl is not None:
                    tables.set(_rows(tables), key, row._replace(expires_at=now + row.ttl))

        return with_tables(call)

    def search(self, scope: Scope, after: Place | None, limit: int, offset: int) -> Program[list[ItemRow]]:
        def call(tables: Tables) -> list[ItemRow]:
            rows = sorted(_in(tables, scope), key=_place)
            if after is not None:
                rows = [row for row in rows if _place(row) > (-after.updated_at, after.key)]
            return rows[offset : offset + limit]

        return with_tables(call)

    def in_key_order(self, scope: Scope, after: ItemKey | None, limit: int) -> Program[list[ItemRow]]:
        def call(tables: Tables) -> list[ItemRow]:
            rows = [row for row in _in(tables, scope) if after is None or row.key > after]
            return sorted(rows, key=lambda row: row.key)[:limit]

        return with_tables(call)

    def namespaces(self, scope: Scope) -> Program[list[str]]:
        return with_tables(lambda tables: sorted({row.key.namespace for row in _in(tables, scope)}))

    def sweep(self, now: int, limit: int, *, last: bool = False) -> Program[list[ItemKey]]:
        def call(tables: Tables) -> list[ItemKey]:
            expired = [
                key for key, row in _rows(tables).items() if row.expires_at is not None and row.expires_at <= now
            ]
            for key in expired[:limit]:
                tables.unset(_rows(tables), key)
            return expired[:limit]

        return with_tables(call)

    def count(self, scope: Scope) -> Program[tuple[int, int]]:
        def call(tables: Tables) -> tuple[int, int]:
            sizes = [sum(map(_size, (*row.key, row.value))) for row in _in(tables, scope)]
            return len(sizes), sum(sizes)

        return with_tables(call)


def _rows(tables: Tables) -> dict[ItemKey, ItemRow]:
    found: dict[ItemKey, ItemRow] = tables.others.setdefault("item", {})
    return found


def _in(tables: Tables, scope: Scope) -> Iterator[ItemRow]:
    for row in _rows(tables).values():
        if (
            is_within(row.key.namespace, scope.prefix)
            and scope.owner in (None, row.owner)
            and (scope.alive_at is None or row.expires_at is None or row.expires_at > scope.alive_at)
        ):
            yield row


def _place(row: ItemRow) -> tuple[int, ItemKey]:
    return -row.updated_at, row.key


def _size(text: Any) -> int:
    return len(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
