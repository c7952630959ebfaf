"""Which items changed, as entries of the outbox have it, and which of two versions of an item is the later one.

An entry names keys, not values: the items are read as they are when they are copied. Of a removed item it has the time
and the owner who asked for it, since no row has them any more.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from threadmark.backends import CorruptDataError
from threadmark.replication.others import shard_id_of
from threadmark.store.replica import Entry
from threadmark_store.shapes import ItemKey, ItemRow

NAME = "items"
SHARDS = 16
"""The changes of a shard wait for each other, and are copied together."""

SHARD_IDS = tuple(sorted(shard_id_of(NAME, shard) for shard in range(SHARDS)))
"""In the order in which they are locked."""


class Removal(NamedTuple):
    """When an item was removed, and by which owner, None for anyone."""

    at: int
    owner: str | None = None
    earlier: tuple["Removal", ...] = ()
    """The last ones by other owners: an owner's removal of an item that is gone does not take their place."""

    @classmethod
    def last_of(cls, times: Mapping[str | None, int]) -> "Removal | None":
        """Return the last of the removals by these owners, with the others; None if there are none."""
        removals = sorted((cls(at, owner) for owner, at in times.items()), key=lambda each: each.at)
        return removals[-1]._replace(earlier=tuple(removals[:-1])) if removals else None

    def of(self, item: ItemRow) -> "Removal | None":
        """Return the last removal that concerns this version of the item: an owner removes no item of another."""
        mine = [each for each in (self, *self.earlier) if each.owner in (None, item.owner)]
        return max(mine, key=lambda each: each.at, default=None)


Version = ItemRow | Removal

Place = tuple[int, bool, int, int, int, int, str]
"""Where a version stands among all of its key."""


class Changed(NamedTuple):
    """The keys that changed, each with its last removals if it was removed."""

    keys: Mapping[ItemKey, Removal | None]

    def to_bytes(self) -> bytes:
        """Return the body of an entry."""
        body: list[list[object]] = []
        for key, removal in self.keys.items():
            removals = [removal, *removal.earlier] if removal else []
            body += [[*key, each.at, each.owner] for each in removals] or [[*key]]
        return json.dumps(body, separators=(",", ":")).encode()

    @classmethod
    def in_entries(cls, entries: Iterable[Entry]) -> "Changed":
        """Return all changes of some entries. Raises CorruptDataError if one cannot be read."""
        removed: dict[ItemKey, dict[str | None, int]] = {}
        try:
            for entry in entries:
                for namespace, key, *removal in json.loads(entry.body):
                    times = removed.setdefault(ItemKey(namespace, key), {})
                    if removal:
                        at, owner = removal
                        times[owner] = max(at, times.get(owner, 0))
        except (ValueError, TypeError) as error:
            raise CorruptDataError("an entry of the outbox about items is damaged, or from a later release") from error
        return cls({key: Removal.last_of(times) for key, times in removed.items()})


def shard_id_for(key: ItemKey) -> str:
    """Return the id of the shard of an item: items of one namespace are in one shard."""
    return SHARD_IDS[crc32(key.namespace.encode("utf-8", "surrogatepass")) % SHARDS]


def shards_of(keys: Iterable[ItemKey]) -> list[str]:
    """Return the ids of the shards of items, in the order in which they are locked."""
    return sorted(set(map(shard_id_for, keys)))


def by_shard(keys: Mapping[ItemKey, Removal | None]) -> list[tuple[str, Changed]]:
    """Return the changes of each shard, in the order in which shards are locked."""
    found: dict[str, dict[ItemKey, Removal | None]] = {}
    for key, removal in keys.items():
        found.setdefault(shard_id_for(key), {})[key] = removal
    return [(shard_id, Changed(found[shard_id])) for shard_id in sorted(found)]


def place_of(version: Version) -> Place:
    """Return where a version stands. At the same time a removal wins, so both databases decide alike."""
    if isinstance(version, Removal):
        return version.at, True, 0, 0, 0, 0, ""
    expires_at, ttl = (-1 if number is None else number for number in (version.expires_at, version.ttl))
    return version.updated_at, False, expires_at, ttl, version.check, version.created_at, version.owner or ""


def wins(version: Version, there: Version | None) -> bool:
    """Whether a version replaces the one that is there, None if none is known. An owner removes no item of another."""
    if there is None:
        return True
    if isinstance(version, Removal) and isinstance(there, ItemRow):
        removal = version.of(there)
        return removal is not None and place_of(removal) > place_of(there)
    if isinstance(version, ItemRow) and isinstance(there, Removal):
        removal = there.of(version)
        return removal is None or place_of(version) > place_of(removal)
    return place_of(version) > place_of(there)


def moved_behind(row: ItemRow, time: int) -> ItemRow:
    """Return a row that is later than a time, and ends no sooner than it was updated."""
    updated_at = max(row.updated_at, time + 1)
    expires_at = None if row.ttl is None else updated_at + max(row.ttl, 0)
    return row._replace(created_at=updated_at, updated_at=updated_at, expires_at=expires_at)


def of_one_owner(rows: Sequence[ItemRow]) -> list[list[ItemRow]]:
    """Return the rows of each owner."""
    owners: dict[str | None, list[ItemRow]] = {}
    for row in rows:
        owners.setdefault(row.owner, []).append(row)
    return list(owners.values())
