"""Computing vectors and words again, if they are of another model or other fields, or missing, and removing orphans.

Each batch of items is read, computed between two transactions, and written if the items are still the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from threadmark.backends import Flow, Program
from threadmark.program import read, write
from threadmark_store.contract import ItemStore
from threadmark_store.embedding import Index
from threadmark_store.shapes import Cursor, ItemKey, ItemRow, Scope
from threadmark_store.texts import Fields, TextIndex, fields_of, texts_of
from threadmark_store.values import Values
from threadmark_store.vectors.contract import CHOICE, Vector, VectorRow, VectorTable
from threadmark_store.words.contract import WordRow, Words, WordStore, rows_of

Present = TypeVar("Present")
Made = TypeVar("Made")

_AT_ONCE = 256


class Lacking(NamedTuple):
    """An item to compute, and the fields that its put chose."""

    key: ItemKey
    value: Mapping[str, Any]
    fields: Fields


class FoundBy(Protocol[Present, Made]):
    """A way to find items."""

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        """Keep others from changing items until the end of the transaction."""

    def present(self, keys: Sequence[ItemKey]) -> Program[list[Present]]:
        """Return the stored vectors or words of items."""

    def lacking(self, item: ItemRow, value: Mapping[str, Any], present: Iterable[Present]) -> Lacking | None:
        """Return the texts to compute something of, None if the item has everything."""

    def made(self, lacking: Sequence[Lacking]) -> Flow[Any, Mapping[ItemKey, Made]]:
        """Compute it."""

    def replace(self, items: Sequence[ItemRow], made: Mapping[ItemKey, Made]) -> Program[None]:
        """Store it."""

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        """Return the keys of the next items that have any."""

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """Remove the stored vectors or words of items."""


@dataclass(frozen=True, slots=True)
class Reindexing(Generic[Present, Made]):
    """The work on one store."""

    items: ItemStore
    values: Values
    owner: str | None
    found_by: FoundBy[Present, Made]

    def all(self) -> Flow[Any, int]:
        """Go through all items. Returns for how many something was computed."""
        computed, after = 0, None
        while rows := (yield from read(self.items.in_key_order, Scope(owner=self.owner), after, _AT_ONCE)):
            after = rows[-1].key
            present: list[Any] = yield from read(self.found_by.present, [row.key for row in rows])
            of_item: dict[ItemKey, list[Any]] = {row.key: [] for row in rows}
            for each in present:
                of_item[each.key].append(each)
            lacking = [self.found_by.lacking(row, self.values.decoded(row), of_item[row.key]) for row in rows]
            wanted = [each for each in lacking if each is not None]
            if wanted:
                made = yield from self.found_by.made(wanted)
                computed += yield from write(self._write, [row for row in rows if row.key in made], made)
        cursor, is_over = None, False
        while not is_over:
            cursor = yield from write(self._remove_orphans, cursor)
            is_over = cursor is None
        return computed

    def _write(self, rows: Sequence[ItemRow], made: Mapping[ItemKey, Made]) -> Program[int]:
        yield from self.found_by.hold([row.key for row in rows])
        now = yield from self.items.items([row.key for row in rows])
        same = [now[row.key] for row in rows if row.key in now and now[row.key].check == row.check]
        yield from self.found_by.replace(same, made)
        return len(same)

    def _remove_orphans(self, cursor: Cursor | None) -> Program[Cursor | None]:
        keys, cursor = yield from self.found_by.keys(cursor)
        there = (yield from self.items.items(keys)) if keys else {}
        if orphans := [key for key in keys if key not in there]:
            yield from self.found_by.delete(orphans, self.owner)
        return cursor


class FoundByVectors(NamedTuple):
    """The vectors of items."""

    table: VectorTable
    embedded: Index

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        return self.table.store.hold(keys)

    def present(self, keys: Sequence[ItemKey]) -> Program[list[VectorRow]]:
        return self.table.store.rows(keys)

    def lacking(self, item: ItemRow, value: Mapping[str, Any], present: Iterable[VectorRow]) -> Lacking | None:
        mine = [row for row in present if row.check == item.check]
        fields: Fields = next((fields_of(row.vector.field) for row in mine if row.vector.number == CHOICE), None)
        found = {row.vector[:2] for row in mine if row.model == self.table.model}
        texts = {text[:2] for text in texts_of(value, fields, self.embedded.fields)}
        return None if found == texts else Lacking(item.key, value, fields)

    def made(self, lacking: Sequence[Lacking]) -> Flow[Any, Mapping[ItemKey, tuple[Vector, ...]]]:
        return self.embedded.of_values(lacking)

    def replace(self, items: Sequence[ItemRow], made: Mapping[ItemKey, tuple[Vector, ...]]) -> Program[None]:
        rows = [each for item in items for each in self.table.rows_of(item, made[item.key])]
        return self.table.store.replace([item.key for item in items], rows)

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        return self.table.store.keys(cursor)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        return self.table.store.delete(keys, owner)


class FoundByWords(NamedTuple):
    """The words of items."""

    store: WordStore
    text: TextIndex

    def hold(self, keys: Sequence[ItemKey]) -> Program[None]:
        return self.store.hold(keys)

    def present(self, keys: Sequence[ItemKey]) -> Program[list[WordRow]]:
        return self.store.heads(keys)

    def lacking(self, item: ItemRow, value: Mapping[str, Any], present: Iterable[WordRow]) -> Lacking | None:
        head = next((row.word for row in present if row.check == item.check), "")
        fields = self.text.chosen(head)
        return None if head == self.text.head or fields is not None else Lacking(item.key, value, fields)

    def made(self, lacking: Sequence[Lacking]) -> Flow[Any, Mapping[ItemKey, Words]]:
        yield from ()
        return {key: self.text.words(value, fields) for key, value, fields in lacking}

    def replace(self, items: Sequence[ItemRow], made: Mapping[ItemKey, Words]) -> Program[None]:
        rows = [each for item in items for each in rows_of(item, made[item.key])]
        return self.store.replace([item.key for item in items], rows)

    def keys(self, cursor: Cursor | None) -> Program[tuple[list[ItemKey], Cursor | None]]:
        return self.store.keys(cursor)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        return self.store.delete(keys, owner)
