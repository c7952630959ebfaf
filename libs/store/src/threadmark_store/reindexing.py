"""Computing vectors and words again, if they are of another model or other fields, or missing, and removing orphans.

Each batch of items is read, computed between two transactions, and written if the items are still the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadmark.backends import Flow, Program
from threadmark.program import read, write
from threadmark_store.contract import ItemStore, RowsOfItems, orphans_behind
from threadmark_store.embedding import Index
from threadmark_store.shapes import Cursor, ItemKey, ItemRow, Scope
from threadmark_store.texts import TextIndex
from threadmark_store.values import Values

_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Reindexing:
    """The work on one store."""

    items: ItemStore
    values: Values
    owner: str | None
    table: RowsOfItems[Any]
    computing: Index | TextIndex
    rows_of: Callable[[ItemRow, Any], Iterable[Any]]
    """Returns the rows of an item, from its vectors or words."""

    def all(self) -> Flow[Any, int]:
        """Go through all items. Returns for how many something was computed."""
        computed, after = 0, None
        while items := (yield from read(self.items.in_key_order, Scope(owner=self.owner), after, _AT_ONCE)):
            after = items[-1].key
            rows = yield from read(self._rows, [item.key for item in items])
            lacking = [self.computing.lacking(item, self.values.decoded(item), rows[item.key]) for item in items]
            wanted = [each for each in lacking if each is not None]
            if wanted:
                made = yield from self.computing.of_values(wanted)
                computed += yield from write(self._write, [item for item in items if item.key in made], made, rows)
        cursor = yield from write(self._remove_orphans, None)
        while cursor is not None:
            cursor = yield from write(self._remove_orphans, cursor)
        return computed

    def _rows(self, keys: Sequence[ItemKey]) -> Program[dict[ItemKey, set[Any]]]:
        """Return the rows of each item."""
        found: list[Any] = yield from self.table.rows(keys)
        rows: dict[ItemKey, set[Any]] = {key: set() for key in keys}
        for row in found:
            rows[row.key].add(row)
        return rows

    def _write(
        self, items: Sequence[ItemRow], made: Mapping[ItemKey, Any], before: Mapping[ItemKey, set[Any]]
    ) -> Program[int]:
        """Store the rows that were made. An item that was put since then stays, also if its value is as before."""
        keys = [item.key for item in items]
        yield from self.table.hold(keys)
        now = yield from self.items.items(keys)
        rows_now = yield from self._rows(keys)
        unchanged = [item for item in items if rows_now[item.key] == before[item.key]]
        same = [now[item.key] for item in unchanged if item.key in now and now[item.key].check == item.check]
        rows = [row for item in same for row in self.rows_of(item, made[item.key])]
        yield from self.table.replace([item.key for item in same], rows)
        return len(same)

    def _remove_orphans(self, cursor: Cursor | None) -> Program[Cursor | None]:
        orphans, cursor = yield from orphans_behind(self.items, self.table, cursor)
        if orphans:
            yield from self.table.delete(orphans, self.owner)
        return cursor
