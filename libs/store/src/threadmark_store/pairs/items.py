"""The items of a replicated saver: each change enters the outbox in its own transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from threadmark.backends import Program, now
from threadmark.replication.others import clock_of, keep, register
from threadmark.replication.side_store import SideStore, on_side
from threadmark_store.pairs.changes import NAME, SHARD_IDS, Removal, by_shard, moved_behind, shard_id_for, shards_of
from threadmark_store.pairs.copying import ITEMS
from threadmark_store.pairs.tables import PairTable, ask_side
from threadmark_store.shapes import ItemKey, ItemRow


def rows_over(rows: object) -> "PairItems":
    """Return the items of a pair."""
    register(NAME, ITEMS)
    return PairItems()


class PairItems(PairTable):
    """The items of the active side. While it is away, those of the other one are read."""

    def __init__(self, issued: int | None = None, shards: Sequence[str] = ()) -> None:
        super().__init__("items")
        self._issued = issued
        self._shards = shards

    def of_call(self, issued: int, keys: Iterable[ItemKey]) -> "PairItems":
        """Return the same items, for a call that changes these, made at this time.

        A transaction may be carried out long after its caller has made it again on the other side. So it has the time
        of the call. All shards are locked at first, so that two calls never wait for each other.
        """
        return PairItems(issued, shards_of(keys))

    def put(self, rows: Sequence[ItemRow], *, last: bool = False) -> Program[list[ItemKey]]:
        """Add or replace items, each later than everything that was known of it."""
        return on_side(_put, rows, self._shards)

    def delete(self, keys: Sequence[ItemKey], owner: str | None) -> Program[None]:
        """Remove items. It is recorded also if they are not there: the other side may have them."""
        return on_side(_delete, keys, owner, now() if self._issued is None else self._issued, self._shards)

    def lock(self, keys: Sequence[ItemKey]) -> Program[dict[str, int]]:
        """Keep others from changing items until the end of the transaction."""
        return on_side(_lock, shards_of(keys))

    def replace(self, rows: Sequence[ItemRow]) -> Program[None]:
        """Replace the stored form of items that are locked. They are as they were, but later by a microsecond."""
        return on_side(_replace, rows)

    def refresh(self, keys: Collection[ItemKey], now: int) -> Program[None]:
        """Let items live on. None ends sooner than before: of two equal versions the one that ends later is later."""
        return on_side(_refresh, keys, now)

    def sweep(self, now: int, limit: int) -> Program[list[ItemKey]]:
        """Remove expired items."""
        return on_side(_sweep, now, limit)


def _record(store: SideStore, keys: Mapping[ItemKey, Removal | None]) -> Program[None]:
    """Enter changes in the outbox.

    The clock of a shard is not before any removal, so that a put of an item that is gone can be later.
    """
    for shard_id, changed in by_shard(keys):
        yield from store.record_others(shard_id, changed.to_bytes())
        if removals := [removal.at for removal in changed.keys.values() if removal]:
            yield from keep(store.side.store, shard_id, max(removals))


def _lock(store: SideStore, shards: Iterable[str]) -> Program[dict[str, int]]:
    """Lock shards before anything else, so that no two transactions wait for each other. Returns their clocks."""
    clocks: dict[str, int] = {}
    for shard_id in shards:
        clocks[shard_id] = yield from clock_of(store.side.store, shard_id)
    return clocks


def _put(store: SideStore, rows: Sequence[ItemRow], shards: Sequence[str]) -> Program[list[ItemKey]]:
    keys = [row.key for row in rows]
    clocks = yield from _lock(store, shards or shards_of(keys))
    yield from _record(store, dict.fromkeys(keys))
    before = yield from ask_side(store.side, "items", "items", keys)
    times = [before[key].updated_at if key in before else clocks[shard_id_for(key)] for key in keys]
    moved = [moved_behind(row, time) for row, time in zip(rows, times, strict=True)]
    refused: list[ItemKey] = yield from ask_side(store.side, "items", "put", moved)
    return refused


def _replace(store: SideStore, rows: Sequence[ItemRow]) -> Program[None]:
    yield from _record(store, dict.fromkeys(row.key for row in rows))
    later = [row._replace(updated_at=row.updated_at + 1) for row in rows]
    yield from ask_side(store.side, "items", "put", later)


def _delete(
    store: SideStore, keys: Sequence[ItemKey], owner: str | None, issued: int, shards: Sequence[str]
) -> Program[None]:
    yield from _lock(store, shards or shards_of(keys))
    yield from _record(store, dict.fromkeys(keys, Removal(issued, owner)))
    before = yield from ask_side(store.side, "items", "items", keys)
    ahead = {key: Removal(row.updated_at, owner) for key, row in before.items() if row.updated_at > issued}
    yield from _record(store, ahead)
    yield from ask_side(store.side, "items", "delete", keys, owner)


def _refresh(store: SideStore, keys: Collection[ItemKey], now: int) -> Program[None]:
    yield from _lock(store, shards_of(keys))
    yield from _record(store, dict.fromkeys(keys))
    rows = yield from ask_side(store.side, "items", "items", list(keys))
    living = [key for key, row in rows.items() if row.ttl is not None and now + row.ttl > (row.expires_at or 0)]
    if living:
        yield from ask_side(store.side, "items", "refresh", living, now)


def _sweep(store: SideStore, now: int, limit: int) -> Program[list[ItemKey]]:
    """Remove expired items. All shards are locked first, as which items it will be is not known: puts lock them first.

    An item expires no sooner than it was updated, so `now` is late enough for the removal.
    """
    yield from _lock(store, SHARD_IDS)
    keys: list[ItemKey] = yield from ask_side(store.side, "items", "sweep", now, limit)
    yield from _record(store, dict.fromkeys(keys, Removal(now)))
    return keys
