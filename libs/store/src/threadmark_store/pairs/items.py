"""The items of a replicated saver: each change enters the outbox in its own transaction."""

from collections.abc import Collection, Mapping, Sequence

from threadmark.backends import Program
from threadmark.replication.others import clock_of, keep, on_side, register
from threadmark.replication.side_store import SideStore
from threadmark_store.pairs.changes import NAME, SHARD_IDS, Removal, by_shard, moved_behind, shard_id_for
from threadmark_store.pairs.copying import ITEMS
from threadmark_store.pairs.tables import PairTable, ask_side
from threadmark_store.shapes import ItemKey, ItemRow


def items_over(rows: object) -> "PairItems":  # noqa: ARG001 - the driver of the pair chooses the side
    """Return the items of a pair."""
    register(NAME, ITEMS)
    return PairItems("items")


class PairItems(PairTable):
    """The items of the active side. While it is away, those of the other one are read."""

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:  # noqa: ARG002 - it never is
        return on_side(_put, rows)

    def delete(self, keys: Sequence[ItemKey], owner: str | None, *, last: bool = False) -> Program[None]:  # noqa: ARG002
        return on_side(_delete, keys, owner)

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        return on_side(_refresh, keys, now)

    def sweep(self, now: int, limit: int, *, last: bool = False) -> Program[list[ItemKey]]:  # noqa: ARG002 - see above
        return on_side(_sweep, now, limit)


def _record(store: SideStore, keys: Mapping[ItemKey, Removal | None]) -> Program[dict[str, int]]:
    """Enter changes in the outbox, which locks their shards: rows that are read then stay until the transaction ends.

    Returns the position for each shard, which is greater than that of every removal that began on this side.
    """
    positions: dict[str, int] = {}
    for shard_id, changed in by_shard(keys):
        positions[shard_id] = yield from store.record_others(shard_id, changed.to_bytes())
    return positions


def _put(store: SideStore, rows: Sequence[ItemRow]) -> Program[list[ItemKey]]:
    keys = [row.key for row in rows]
    times = yield from _record(store, dict.fromkeys(keys))
    before = yield from ask_side(store.side, "items", "items", keys)
    for shard_id in sorted({shard_id_for(key) for key in keys if key not in before}):
        clock = yield from clock_of(store.side.store, shard_id)
        times[shard_id] = max(times[shard_id], clock + 1)
    moved = [
        moved_behind(row, times[shard_id_for(row.key)] + number, before.get(row.key)) for number, row in enumerate(rows)
    ]
    refused: list[ItemKey] = yield from ask_side(store.side, "items", "put", moved)
    return refused


def _delete(store: SideStore, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
    """Remove items. It is recorded also if they are not there: the other side may have them."""
    times = yield from _record(store, dict.fromkeys(keys, Removal(owner=owner)))
    before = yield from ask_side(store.side, "items", "items", keys)
    ahead = {key: row.updated_at for key, row in before.items() if row.updated_at > times[shard_id_for(key)]}
    yield from _record_at(store, {key: Removal(at, owner) for key, at in ahead.items()})
    yield from ask_side(store.side, "items", "delete", keys, owner)


def _record_at(store: SideStore, removals: Mapping[ItemKey, Removal]) -> Program[None]:
    """Enter removals that may be ahead of their positions, and set the clocks of their shards."""
    yield from _record(store, removals)
    for shard_id, changed in by_shard(removals):
        latest = max(removal.at for removal in changed.keys.values() if removal)
        yield from keep(store.side.store, shard_id, latest)


def _refresh(store: SideStore, keys: Collection[ItemKey], now: int) -> Program[None]:
    """Let items live on. None ends sooner than before, so that of two versions the one that ends later is the later."""
    yield from _record(store, dict.fromkeys(keys))
    rows = yield from ask_side(store.side, "items", "items", list(keys))
    living = [key for key, row in rows.items() if row.ttl is not None and now + row.ttl > (row.expires_at or 0)]
    if living:
        yield from ask_side(store.side, "items", "refresh", living, now)


def _sweep(store: SideStore, now: int, limit: int) -> Program[list[ItemKey]]:
    """Remove expired items. All shards are locked first, as which items it will be is not known: puts lock them first.

    An item expires no sooner than it was updated, so `now` is late enough for the removal.
    """
    for shard_id in SHARD_IDS:
        yield from store.side.store.lock_lease(shard_id)
    keys: list[ItemKey] = yield from ask_side(store.side, "items", "sweep", now, limit)
    yield from _record_at(store, dict.fromkeys(keys, Removal(now)))
    return keys
