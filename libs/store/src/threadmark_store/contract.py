"""The questions that a backend answers about items. Each method is a program of the saver's own driver.

Rows are added and read whole; what they mean is decided in `operations`. An implementation gets only checked arguments.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from threadmark.backends import Program
from threadmark_store.shapes import Cursor, ItemKey, ItemRow, Place, Scope

Row = TypeVar("Row", bound=Any)


class Table(Protocol):
    """A table of one database."""

    def exists(self) -> Program[bool]:
        """Return whether the table exists."""

    def create(self) -> Program[None]:
        """Create the table if it is missing. Runs in a transaction that writes."""


class RowsOfItems(Table, Protocol[Row]):
    """A table whose rows belong to items, of which each may have several.

    Rows count only while their item has the check that is in them. So a value that changed without them is an item
    without rows, never one that is found by its old text.
    """

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        """Keep others from changing items until the end of the transaction, if the database does not do so anyway."""

    def rows(self, keys: Sequence[ItemKey]) -> Program[list[Row]]:
        """Return the rows of items: vectors without data, and of words only the heads."""

    def whole_rows(self, keys: Sequence[ItemKey]) -> Program[list[Row]]:
        """Return all rows of items, with their data."""

    def replace(self, keys: Sequence[ItemKey], rows: Sequence[Row]) -> Program[None]:
        """Remove all rows of items, and add these."""

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """Remove all rows of items; with an owner, only those of this owner."""

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        """Return the keys of the next items that have rows. The cursor is None at the beginning and at the end."""


class ItemStore(Table, Protocol):
    """The items of one database."""

    def items(self, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, ItemRow]]:
        """Return those of the items that exist, expired or not."""

    def lock(self, keys: Sequence[ItemKey]) -> Program[object]:
        """Keep others from adding and changing items until the end of the transaction.

        If the database does not do so anyway, this comes first in it. Redis notices changes instead, and begins again.
        """

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        """Add or replace items. Keys are distinct. One that is replaced keeps its `created_at`, unless it had expired.

        Returns the keys of those that were not stored because they belong to another owner than the row's. With `last`
        the program ends with this, or raises if there are such keys, so that a backend may save round trips.
        """

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """Remove items; with an owner, only those of this owner."""

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        """Let items with a `ttl` live on for that long from now."""

    def search(self, scope: Scope, after: Place | None, limit: int, offset: int) -> Program[list[ItemRow]]:
        """Return items of a scope, the most recently updated first and then by key, from behind a place."""

    def in_key_order(self, scope: Scope, after: ItemKey | None, limit: int) -> Program[list[ItemRow]]:
        """Return items of a scope in the order of their namespaces and keys, from behind a key."""

    def namespaces(self, scope: Scope) -> Program[list[str]]:
        """Return the namespaces of the items of a scope, each once."""

    def sweep(self, now: int, limit: int) -> Program[list[ItemKey]]:
        """Remove items that had expired at this time, at most `limit`. Returns their keys."""

    def count(self, scope: Scope) -> Program[tuple[int, int]]:
        """Return how many items a scope has, and the bytes of their keys and values."""


def by_item(rows: Iterable[Row]) -> dict[ItemKey, list[Row]]:
    """Return the rows of each item that has any."""
    found: dict[ItemKey, list[Row]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


def orphans_behind(
    items: ItemStore, table: RowsOfItems[Any], cursor: Cursor | None
) -> Program[tuple[list[ItemKey], Cursor | None]]:
    """Return the keys of the next items that are gone, but have rows. The cursor is that of `RowsOfItems.keys`."""
    keys, cursor = yield from table.keys(cursor)
    there = (yield from items.items(keys)) if keys else {}
    return [key for key in keys if key not in there], cursor


def delete_all(
    tables: Iterable[ItemStore | RowsOfItems[Any] | None], keys: Sequence[ItemKey], owner: str | None
) -> Program[None]:
    """Remove items, and their vectors and words as far as there are such tables."""
    for table in tables:
        if table and keys:
            yield from table.delete(keys, owner)
