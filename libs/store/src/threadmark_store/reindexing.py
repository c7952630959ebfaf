"""Computing vectors again: those of another model, and those that items lack. Removing those that have no item.

Each batch of items is read, embedded between two transactions, and written if the items are still the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadmark.backends import Flow, Program
from threadmark.program import read, write
from threadmark_store.contract import ItemStore
from threadmark_store.embedding import Fields, Index, fields_of
from threadmark_store.shapes import ItemKey, ItemRow, Scope
from threadmark_store.values import Values
from threadmark_store.vectors.contract import CHOICE, Cursor, Vector, VectorRow, VectorTable

_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Reindexing:
    """The work on one store."""

    items: ItemStore
    table: VectorTable
    index: Index
    values: Values
    owner: str | None

    def all(self) -> Flow[Any, int]:
        """Go through all items. Returns for how many the vectors were computed."""
        computed, after = 0, None
        while True:
            rows, vectors = yield from read(self._page, after)
            if not rows:
                break
            after = rows[-1].key
            lacking = list(self._lacking(rows, vectors))
            made = yield from self.index.of_values(lacking)
            if lacking:
                computed += yield from write(self._write, [row for row in rows if row.key in made], made)
        cursor, is_over = None, False
        while not is_over:
            cursor = yield from write(self._remove_orphans, cursor)
            is_over = cursor is None
        return computed

    def _page(self, after: ItemKey | None) -> Program[tuple[list[ItemRow], list[VectorRow]]]:
        rows = yield from self.items.in_key_order(Scope(owner=self.owner), after, _AT_ONCE)
        return rows, (yield from self.table.store.rows([row.key for row in rows])) if rows else []

    def _lacking(
        self, rows: Iterable[ItemRow], vectors: Iterable[VectorRow]
    ) -> Iterator[tuple[ItemKey, Mapping[str, Any], Fields]]:
        """Yield the items that lack a vector, or have one too many, with the fields that their puts chose."""
        checks = {row.key: row.check for row in rows}
        present: dict[ItemKey, list[VectorRow]] = {}
        for each in vectors:
            if each.check == checks[each.key]:
                present.setdefault(each.key, []).append(each)
        for row in rows:
            mine, value = present.get(row.key, []), self.values.decoded(row)
            fields: Fields = next((fields_of(each.vector) for each in mine if each.vector.number == CHOICE), None)
            found = {each.vector[:2] for each in mine if each.model == self.table.model}
            if found != {text[:2] for text in self.index.texts(value, fields)}:
                yield row.key, value, fields

    def _write(self, rows: Sequence[ItemRow], made: Mapping[ItemKey, tuple[Vector, ...]]) -> Program[int]:
        now = yield from self.items.items([row.key for row in rows])
        same = [now[row.key] for row in rows if row.key in now and now[row.key].check == row.check]
        vectors = [each for row in same for each in self.table.rows_of(row, made[row.key])]
        yield from self.table.store.replace([row.key for row in same], vectors)
        return len(same)

    def _remove_orphans(self, cursor: Cursor | None) -> Program[Cursor | None]:
        keys, cursor = yield from self.table.store.keys(cursor)
        there = (yield from self.items.items(keys)) if keys else {}
        if orphans := [key for key in keys if key not in there]:
            yield from self.table.store.delete(orphans, self.owner)
        return cursor
