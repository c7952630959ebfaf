"""Copying items from one database of a pair to the other, and comparing all of them.

The entries of a shard name the items that changed. They are read as they are by then, and written in one transaction of
the target that locks the shard there and compares how far it was copied: what another process has copied since is not
undone. The later version of an item wins (`changes.wins`), so it does not matter which side is copied first. If a
removal replaces an item of which the target has an entry itself, the target records the removal, too: its own version
may still be on the way to the source.
"""

from collections.abc import Sequence
from typing import NamedTuple

from threadmark.backends import Program, StaleTermError
from threadmark.replication.others import CopiedOthers, OtherRoute, ReconciledOthers, clock_of, keep, settle
from threadmark.replication.steps import PairFlow, Side, read_on, write_on
from threadmark.store.replica import Copied, Entry, ReplicaStore
from threadmark_store.backends import may_be_paired, may_have_items, over
from threadmark_store.contract import ItemStore
from threadmark_store.pairs.changes import (
    SHARD_IDS,
    Changed,
    Removal,
    Version,
    by_shard,
    of_one_owner,
    shards_of,
    wins,
)
from threadmark_store.pairs.tables import ask_side, is_there
from threadmark_store.shapes import ItemKey, ItemRow, Scope

_ENTRIES = 256
"""Entries that are copied in one transaction."""
_ALL_ENTRIES = 2**31 - 1
_PAGE = 512


class _Part(NamedTuple):
    """The versions that the first entries of a shard name."""

    entries: int
    position: int
    """That of the last of these entries, or of the shard if there are none."""
    versions: dict[ItemKey, Version]


class PairedItems:
    """The items of a pair, as `threadmark.replication` has them copied."""

    def is_empty(self, store: ReplicaStore) -> Program[bool]:
        """Return whether a database has no items."""
        if not may_have_items(store):
            return True
        items: ItemStore = over(store, "items")
        return not (yield from items.exists()) or not (yield from items.in_key_order(Scope(), None, 1))

    def copy(self, route: OtherRoute, goal: int) -> PairFlow[CopiedOthers]:
        """Copy a shard's changes up to a position, 0 for all, and settle them."""
        rows = 0
        while True:
            part = yield from read_on(route.source, _read, route)
            if part.versions:
                rows += yield from write_on(route.target, _apply, route, part)
            if part.entries:
                yield from write_on(route.source, settle, route.source.store, route.shard_id, part.position)
            if part.entries < _ENTRIES or 0 < goal <= part.position:
                return CopiedOthers(part.position, rows)

    def reconcile(
        self, source: Side, target: Side, term: int, *, both_ways: bool, dry_run: bool
    ) -> PairFlow[ReconciledOthers]:
        """Compare all items, and copy the later version of each that differs."""
        if not (may_be_paired(source.store) and may_be_paired(target.store)):
            return ReconciledOthers()
        run = _Comparison(source, target, term, both_ways=both_ways, dry_run=dry_run)
        yield from run.compare(source, target)
        yield from run.compare(target, source)
        return (yield from run.result())


class _Comparison:
    """A comparison: it records the keys of items that differ, so that they are copied like any others."""

    def __init__(self, source: Side, target: Side, term: int, *, both_ways: bool, dry_run: bool) -> None:
        self._source = source
        self._target = target
        self._term = term
        self._both_ways = both_ways
        self._dry_run = dry_run
        self._differing = 0
        self._only_there = 0

    def compare(self, one: Side, other: Side) -> PairFlow[None]:
        """Record the items of one side that the other one lacks, or has in an earlier version."""
        after: ItemKey | None = None
        while rows := (yield from read_on(one, ask_side, one, "items", "in_key_order", Scope(), after, _PAGE)):
            after = rows[-1].key
            there = yield from read_on(other, ask_side, other, "items", "items", [row.key for row in rows])
            lacking = [row.key for row in rows if row.key not in there]
            later = [row.key for row in rows if row.key in there and wins(row, there[row.key])]
            if one is self._target and lacking:
                lacking = yield from self._never_copied(lacking)
                self._only_there += 0 if self._both_ways else len(lacking)
            keys = later if one is self._target and not self._both_ways else [*lacking, *later]
            self._differing += len(keys)
            if keys and not self._dry_run:
                yield from write_on(one, _note, one.store, keys, self._term)

    def _never_copied(self, keys: Sequence[ItemKey]) -> PairFlow[list[ItemKey]]:
        """Return the keys of the target's items that the source did not remove just now."""
        source, target = self._source, self._target
        waiting: set[ItemKey] = set()
        for shard_id in shards_of(keys):
            entries = yield from read_on(source, source.store.outbox, shard_id, _ALL_ENTRIES)
            waiting.update(Changed.in_entries(entries).keys)
        # If the entry of a removal is gone by now, so is the item.
        there = yield from read_on(target, ask_side, target, "items", "items", keys)
        return [key for key in keys if key in there and key not in waiting]

    def result(self) -> PairFlow[ReconciledOthers]:
        """Copy the recorded items. Returns how many."""
        if self._dry_run:
            return ReconciledOthers(self._differing, self._only_there)
        rows = 0
        for one, other in ((self._source, self._target), (self._target, self._source)):
            for shard_id in SHARD_IDS:
                copied = yield from ITEMS.copy(OtherRoute(one, other, shard_id, self._term), 0)
                rows += copied.rows
        return ReconciledOthers(rows, self._only_there)


def _note(store: ReplicaStore, keys: Sequence[ItemKey], term: int) -> Program[None]:
    changes = by_shard(dict.fromkeys(keys))
    for shard_id, _ in changes:
        yield from clock_of(store, shard_id)
    for shard_id, changed in changes:
        yield from _recorded(store, shard_id, changed, term)


def _recorded(store: ReplicaStore, shard_id: str, changed: Changed, term: int) -> Program[None]:
    if (yield from store.record(shard_id, changed.to_bytes(), term)) is None:
        raise StaleTermError


def _read(route: OtherRoute) -> Program[_Part]:
    """Read the first entries of a shard, and after them the items that they name."""
    store, shard_id = route.source.store, route.shard_id
    entries: list[Entry] = yield from store.outbox(shard_id, _ENTRIES)
    if not entries:
        positions = yield from store.positions([shard_id])
        return _Part(0, positions.get(shard_id, 0), {})
    changed = Changed.in_entries(entries).keys
    rows = yield from ask_side(route.source, "items", "items", list(changed))
    # If it is not there and none of these entries has removed it, a later one has.
    found = {key: rows.get(key, removal) for key, removal in changed.items()}
    versions = {key: version for key, version in found.items() if version is not None}
    return _Part(len(entries), entries[-1].position, versions)


def _apply(route: OtherRoute, part: _Part) -> Program[int]:
    """Write the versions that win over those of the target. Returns how many did."""
    _, target, shard_id, term = route
    store = target.store
    if (yield from store.replica()).term > term:
        raise StaleTermError
    removals = {key: version for key, version in part.versions.items() if isinstance(version, Removal)}
    yield from keep(store, shard_id, max((removal.at for removal in removals.values()), default=0))
    copied = (yield from store.copied([shard_id])).get(shard_id)
    if copied is not None and copied.position >= part.position:
        return 0
    own = Changed.in_entries((yield from store.outbox(shard_id, _ALL_ENTRIES))).keys
    there = yield from ask_side(target, "items", "items", list(part.versions))
    won = {key: each for key, each in part.versions.items() if wins(each, there.get(key) or own.get(key))}
    yield from _replace(target, won, there)
    lost = {key: removal for key, removal in removals.items() if key in won and key in there and key in own}
    if lost:
        yield from _recorded(store, shard_id, Changed(lost), term)
    yield from store.set_copied(shard_id, Copied(part.position, 0))
    return len(won)


def _replace(side: Side, won: dict[ItemKey, Version], there: dict[ItemKey, ItemRow]) -> Program[None]:
    """Replace items by others or by nothing. Their vectors and words go: they were of another value."""
    replaced = [key for key in won if key in there]
    if replaced:
        for folder in ("items", "vectors", "words"):
            if (yield from is_there(side, folder)):
                yield from ask_side(side, folder, "delete", replaced, None)
    for rows in of_one_owner([version for version in won.values() if isinstance(version, ItemRow)]):
        yield from ask_side(side, "items", "put", rows)


ITEMS = PairedItems()
"""The package announces it as an entry point, too: a process may copy items without having a store."""
