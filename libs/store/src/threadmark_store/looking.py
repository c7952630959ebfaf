"""`Items`: the items of a saver's database for tools such as the command, which need neither LangGraph nor a `Store`.

Its methods return operations, which `run` and `arun` carry out. Only `delete` changes anything.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from threadmark.backends import Operation, Program, Saver, arun, run
from threadmark.errors import LocatedError
from threadmark.program import read, write
from threadmark.saver.kit import time_of
from threadmark_store.contract import delete_all
from threadmark_store.namespaces import labels_of
from threadmark_store.operating import OnItems, Rows, existing, rows_of, stats, verify
from threadmark_store.shapes import ItemKey, ItemRow, Place, Scope, StoreStats, StoreVerifyReport

T = TypeVar("T")

_AT_ONCE = 256


class ItemView(NamedTuple):
    """An item, also one whose value cannot be read."""

    namespace: tuple[str, ...]
    key: str
    value: Any
    """None if there is a problem."""
    problem: str | None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    owner: str | None
    bytes: int


class Items:
    """The items of a saver's database that belong to the saver's owner."""

    def __init__(self, saver: Saver) -> None:
        self.rows = rows_of(saver)
        self._driver = saver._driver  # noqa: SLF001 - it works on the saver's database as the saver itself does

    def run(self, operation: Operation[T]) -> T:
        """Carry out what a method returned."""
        return run(self._driver, operation)

    async def arun(self, operation: Operation[T]) -> T:
        """Like `run`, for asyncio."""
        return await arun(self._driver, operation)

    def verify(self, *, decode: bool = False, progress: OnItems | None = None) -> Operation[StoreVerifyReport]:
        """Return the result of `Store.verify`."""
        return verify(self.rows, decode=decode, progress=progress)

    def stats(self) -> Operation[StoreStats]:
        """Return the result of `Store.stats`."""
        return stats(self.rows)

    def page(
        self, prefix: str, limit: int, after: Place | None = None
    ) -> Operation[tuple[list[ItemView], Place | None]]:
        """Return items of a namespace and those below it, the last updated first, and the place to go on from."""
        there = yield from existing(self.rows)
        if there is None:
            return [], None
        found = yield from read(there.items.search, Scope(prefix, there.owner), after, limit, 0)
        end = Place(found[-1].updated_at, found[-1].key) if len(found) == limit else None
        return [self._view(row) for row in found], end

    def item(self, namespace: str, key: str) -> Operation[ItemView | None]:
        """Return one item."""
        there = yield from existing(self.rows)
        if there is None:
            return None
        asked = ItemKey(namespace, key)
        row = (yield from read(there.items.items, [asked])).get(asked)
        return None if row is None or there.owner not in (None, row.owner) else self._view(row)

    def namespaces(self, prefix: str) -> Operation[list[str]]:
        """Return this namespace and those below it, as far as they have items, in order."""
        there = yield from existing(self.rows)
        return [] if there is None else sorted((yield from read(there.items.namespaces, Scope(prefix, there.owner))))

    def count(self, prefix: str) -> Operation[tuple[int, int]]:
        """Return how many items a namespace and those below it have, and their bytes."""
        there = yield from existing(self.rows)
        return (0, 0) if there is None else (yield from read(there.items.count, Scope(prefix, there.owner)))

    def delete(self, prefix: str, key: str | None = None) -> Operation[int]:
        """Remove an item, or without a key all of a namespace and those below it. Returns how many."""
        there = yield from existing(self.rows)
        removed = 0
        while there is not None:
            gone = yield from write(_remove, there, prefix, key)
            removed += gone
            if gone < _AT_ONCE:
                break
        return removed

    def _view(self, row: ItemRow) -> ItemView:
        value, problem = None, None
        try:
            value = self.rows.values.decoded(row)
        except LocatedError as error:
            problem = error.problem
        ends = None if row.expires_at is None else time_of(row.expires_at)
        times = time_of(row.created_at), time_of(row.updated_at), ends
        return ItemView(labels_of(row.key.namespace), row.key.key, value, problem, *times, row.owner, row.size)


def _remove(there: Rows, prefix: str, key: str | None) -> Program[int]:
    keys: Sequence[ItemKey]
    if key is None:
        keys = [row.key for row in (yield from there.items.in_key_order(Scope(prefix, there.owner), None, _AT_ONCE))]
    else:
        found = yield from there.items.items([ItemKey(prefix, key)])
        keys = [row.key for row in found.values() if there.owner in (None, row.owner)]
    yield from delete_all((there.items, there.vectors, there.words), keys, there.owner)
    return len(keys)
