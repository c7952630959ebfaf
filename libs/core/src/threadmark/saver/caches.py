"""The two caches of a saver between calls: encodings for the next put, and segments for the next read.

`EncodingCache` holds recent encodings, and the checkpoints that runs are about to continue. It makes a put cheap (the
parent's bytes need not be read) and is never trusted. Encodings are found by their digest, so their bytes cannot be
wrong. The transaction that relies on one proves that its segments still exist by comparing the thread's epoch. The
cache is bounded in bytes, and shared by both APIs and all threads.

`SegmentCache` serves checkpoints of one thread while they are read together: it holds segments, and the proofs of their
values.
"""

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.format.digests import Proof
from threadmark.format.header import Header
from threadmark.format.rope import Source
from threadmark.format.stored import EXPANSION_BYTES, MOST_COMPRESSED, Allowance, Stored, expand
from threadmark.program import Program
from threadmark.runtime.logs import log
from threadmark.runtime.processes import reset_after_fork
from threadmark.sealing import SegmentNames
from threadmark.store.contract import CheckpointRow, Store


class SegmentCache:
    """The segments that were fetched. Each is expanded once, however many values are made of it.

    Values of one channel mostly resemble each other, so each proof uses that of the one before.
    """

    def __init__(
        self,
        segments: Mapping[bytes, bytes] | None = None,
        *,
        expansion: int = EXPANSION_BYTES,
        names: SegmentNames | None = None,
    ) -> None:
        self._stored: dict[bytes, bytes] = dict(segments or {})
        self._whole: dict[bytes, bytes] = {}
        self._recent: dict[str, tuple[Stored, Proof]] = {}
        self._names = names
        self.allowance = Allowance(expansion)

    def lacking(self, keys: Iterable[bytes]) -> list[bytes]:
        """The segments that are still to be fetched."""
        return sorted({key for key in keys if key not in self._whole and key not in self._stored})

    def add(self, segments: Mapping[bytes, bytes]) -> None:
        """Segments as they are stored."""
        self._stored.update(segments)

    def segment(self, key: bytes, size: int) -> bytes:
        """Return a segment of this size, which is not yet proven against its key."""
        if key not in self._whole:
            if key not in self._stored:
                raise CorruptDataError(f"segment {key.hex()} is missing")
            self.allowance.take(size - MOST_COMPRESSED * len(self._stored[key]))
            self._whole[key] = expand(self._stored[key], size)
        return self._whole[key]

    @property
    def weight(self) -> int:
        """How many bytes the segments take."""
        return sum(map(len, self._stored.values())) + sum(map(len, self._whole.values()))

    def keep(self, keys: set[bytes]) -> None:
        """Forget all other segments, and values that have none of these."""
        held = len(self._stored) + len(self._whole)
        self._stored = {key: data for key, data in self._stored.items() if key in keys and key not in self._whole}
        self._whole = {key: data for key, data in self._whole.items() if key in keys}
        self._recent = {
            channel: recent for channel, recent in self._recent.items() if not keys.isdisjoint(recent[0].segment_keys())
        }
        if evicted := held - len(self._stored) - len(self._whole):
            log.write(logging.DEBUG, "the segment cache of a listing: %d of %d segments were evicted", evicted, held)

    def data(self, value: Stored, channel: str | None = None) -> bytes:
        """Return a value's verified bytes. Raises CorruptDataError if they are damaged."""
        if not value.digest:
            return value.packed
        known = self._recent.get(channel) if channel is not None else None
        if known is not None and known[0] == value:  # the same segments, too: others would have to be proven
            return known[1].data
        proven = value.proof(self._stored, self._whole, known[1] if known else None, self.allowance)
        if self._names is not None and not self._names.are_proven:
            self._names.prove(value.segment_keys(), self._whole)
        if channel is not None:
            self._recent[channel] = value, proven
        return proven.data


def fill(segment_cache: SegmentCache, store: Store, thread_id: str, keys: Iterable[bytes]) -> Program[None]:
    """Fetch those of the thread's segments that are not in the cache yet."""
    if lacking := segment_cache.lacking(keys):
        segment_cache.add((yield from store.segments(thread_id, lacking)))


_ENTRY_OVERHEAD = 400
"""About how much memory the interpreter needs for an entry in addition to its bytes: many tiny entries are not free."""


class BoundedCache:
    """Entries whose costs add up to no more than a capacity. The least recently used are evicted first.

    Threads may share it. It begins empty in the child of a fork, because another thread may have been at work in here,
    and after a change that was interrupted.
    """

    def __init__(self, capacity: int, *, most_entries: float = math.inf, overhead: int = _ENTRY_OVERHEAD) -> None:
        self.capacity = capacity
        self._most_entries = most_entries
        self._overhead = overhead
        self._entries: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        """The cost of each entry, and its value."""
        self._used = 0
        self._is_sound = True
        """Whether `_used` is the cost of the entries: not while they change, and not after an interrupted change."""
        self._lock = threading.Lock()
        reset_after_fork(self)

    @property
    def used(self) -> int:
        """The cost of the entries, never more than the capacity."""
        return self._used

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self._entries)

    def get(self, key: Hashable) -> Any:
        """Return the value of a key, which is the last used one now. None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def set(self, *new: tuple[Hashable, Any, int]) -> None:
        """Keep entries (key, value, size), under one lock. One that is too large is not kept."""
        entries, capacity, evicted, freed = self._entries, self.capacity, 0, 0
        with self._lock:
            if not self._is_sound:
                self._clear()
            self._is_sound = False
            for key, value, size in new:
                cost = size + self._overhead
                former = entries.pop(key, None)
                if former is not None:
                    self._used -= former[0]
                if cost <= capacity:
                    entries[key] = cost, value
                    self._used += cost
                    while self._used > capacity or len(entries) > self._most_entries:
                        _, (former_cost, _) = entries.popitem(last=False)
                        self._used -= former_cost
                        evicted, freed = evicted + 1, freed + former_cost
            self._is_sound = True
        if evicted:
            self._has_evicted(evicted, freed)

    def forget(self, key: Hashable) -> None:
        """Remove an entry, if it is there."""
        with self._lock:
            self._is_sound, was_sound = False, self._is_sound
            cost, _ = self._entries.pop(key, (0, None))
            self._used -= cost
            self._is_sound = was_sound

    def oldest(self, count: int) -> list[tuple[Any, Any]]:
        """Return the entries that were used longest ago."""
        with self._lock:
            return [(key, value) for key, (_, value) in islice(self._entries.items(), count)]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._clear()

    def _reset_after_fork(self) -> None:
        """In the child of a fork."""
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._entries.clear()
        self._used = 0
        self._is_sound = True

    def _has_evicted(self, entries: int, size: int) -> None:
        """For a subclass that tells of it."""


_LINES_PER_CAPACITY = 8
"""A line is logged whenever this part of the capacity has been evicted: a full cache evicts with every put."""

_EntryKey = tuple[object, ...]
_Entry = tuple[_EntryKey, object, int]
"""A key, a value, and how long the value is."""

_NAMESPACES_KEPT = 4
_THREAD_SIZE = 1024
"""The cost of a thread's own entry, with so many namespaces."""

_SIBLINGS_KEPT = 24
_RECENT_KEPT = 8


class Known(NamedTuple):
    """A stored checkpoint as a later put needs it."""

    epoch: int
    rank: str
    header: Header
    source: Source
    """The header's own encoding."""
    body: bytes
    """The header's own stored form."""
    has_manifests: bool = True
    """Whether any of its values may be more than a literal."""
    row: CheckpointRow | None = None
    """Its row, if it was made here or has been proven: a reader that finds the same row need not prove it again."""


class _Thread:
    """The remembered facts about a thread itself."""

    __slots__ = ("epoch", "newest")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        """As last seen."""
        self.newest: dict[str, str] = {}
        """The id of the checkpoint that was last read or stored, by namespace: of the last few namespaces."""


class EncodingCache(BoundedCache):
    """A saver's cache. The first part of an entry's key tells the type of its value."""

    def __init__(self, capacity: int) -> None:
        self._evicted = self._freed = 0
        """Entries that were evicted since a line was logged, and their bytes."""
        super().__init__(capacity)

    def epoch(self, thread_id: str) -> int | None:
        """The thread's epoch as last seen."""
        thread = self.get(("thread", thread_id))
        return None if thread is None else thread.epoch

    def see_epoch(self, thread_id: str, epoch: int) -> None:
        """Remember the epoch that a transaction read. Mostly it is the one that is known."""
        thread = self.get(("thread", thread_id))
        if thread is None:
            self.set((("thread", thread_id), _Thread(epoch), _THREAD_SIZE))
        else:
            thread.epoch = epoch

    def checkpoint(self, thread_id: str, ns: str, checkpoint_id: str) -> Known | None:
        """The checkpoint, if it is remembered from the thread's present epoch."""
        known: Known | None = self.get(("checkpoint", thread_id, ns, checkpoint_id))
        return known if known is not None and known.epoch == self.epoch(thread_id) else None

    def newest_held(self, thread_id: str, ns: str) -> str | None:
        """The rank of the checkpoint that was last read or stored, if the bytes of all its values are remembered."""
        thread = self.get(("thread", thread_id))
        checkpoint_id = None if thread is None else thread.newest.get(ns)
        known = self.get(("checkpoint", thread_id, ns, checkpoint_id))
        if known is None:
            return None
        values = known.header.values.values()
        held = all(self.data(thread_id, value.digest) is not None for value in values if value.digest)
        return known.rank if held else None

    def see_checkpoint(self, thread_id: str, ns: str, checkpoint_id: str, known: Known) -> None:
        """Remember a checkpoint that was read or stored."""
        key, thread_key = ("checkpoint", thread_id, ns, checkpoint_id), ("thread", thread_id)
        size = 5 * len(known.source.data)  # a decoded header takes several times the memory of its encoding
        if known.row is not None:
            size += len(known.row.outline.metadata)
        with self._lock:
            entry = self._entries.get(thread_key)
            if entry is not None:
                self._entries.move_to_end(thread_key)
            thread: _Thread = _Thread(known.epoch) if entry is None else entry[1]
            thread.epoch, newest = known.epoch, thread.newest
            newest.pop(ns, None)
            newest[ns] = checkpoint_id
            if len(newest) > _NAMESPACES_KEPT:
                del newest[next(iter(newest))]
        if entry is None:
            self.set((thread_key, thread, _THREAD_SIZE), (key, known, size))
        else:
            self.set((key, known, size))

    def header(self, thread_id: str, ns: str, checkpoint_id: str, body: bytes) -> Known | None:
        """The checkpoint, if its header has this stored form, whenever it was seen."""
        known: Known | None = self.get(("checkpoint", thread_id, ns, checkpoint_id))
        return known if known is not None and known.body == body else None

    def data(self, thread_id: str, digest: bytes) -> bytes | None:
        """The bytes with this digest, whenever they were seen."""
        found = self.get(("value", thread_id, digest))
        return None if found is None else found[1].data

    def all_data(self, thread_id: str, digests: Iterable[bytes]) -> dict[bytes, bytes] | None:
        """The bytes with these digests, whenever they were seen. None if some of them are forgotten."""
        found: dict[bytes, bytes] = {}
        for digest in digests:
            data = self.data(thread_id, digest)
            if data is None:
                return None
            found[digest] = data
        return found

    def source(self, thread_id: str, digest: bytes, epoch: int | None) -> Source | None:
        """The stored encoding with this digest, if its segments were there in this epoch."""
        found = self.get(("value", thread_id, digest))
        return found[1] if found is not None and found[0] == epoch else None

    def see_values(self, thread_id: str, epoch: int, values: Iterable[tuple[Stored, Source]]) -> None:
        """Remember values that were read or stored, the last of them longest. Literals are not worth it."""
        new: list[_Entry] = []
        recent = {}
        for stored, source in values:
            if stored.digest:
                # A part of a manifest takes about 100 bytes of memory, and in the packed form ten or so: a slice five,
                # a whole segment 14, a literal a little more than its length.
                cost = len(source.data) + 10 * len(stored.packed)
                new.append((("value", thread_id, stored.digest), (epoch, source), cost))
                recent[len(source.data)] = stored.digest  # those of one length are mostly alike, as packets are
        if new:
            self.set(*new, self._longer(("recent", thread_id), list(recent.values()), _RECENT_KEPT))

    def see_writes(self, thread_id: str, ns: str, checkpoint_id: str, written: Iterable[tuple[str, bytes]]) -> None:
        """Remember the writes of the step after this checkpoint, by channel: each will be its channel's next value."""
        digests: dict[str, list[bytes]] = {}
        for channel, digest in written:
            if digest:
                digests.setdefault(channel, []).append(digest)
        key = "writes", thread_id, ns, checkpoint_id
        self.set(*[self._longer((*key, channel), some, _SIBLINGS_KEPT) for channel, some in digests.items()])

    def written(
        self, thread_id: str, ns: str, checkpoint_id: str | None, channel: str, epoch: int | None
    ) -> list[Source]:
        """The writes to a channel in the step after this checkpoint, the last first."""
        return self._sources(("writes", thread_id, ns, checkpoint_id, channel), epoch)

    def see_emptied(self, thread_id: str, ns: str, emptied: Iterable[tuple[str, bytes]]) -> None:
        """Remember the digests of the values that channels had before a step emptied them."""
        size = len(thread_id) + len(ns)
        self.set(*[(("emptied", thread_id, ns, channel), [digest], size) for channel, digest in emptied])

    def emptied(self, thread_id: str, ns: str, channel: str, epoch: int | None) -> list[Source]:
        """The last value of a channel that was emptied, in a list, or an empty list."""
        return self._sources(("emptied", thread_id, ns, channel), epoch)

    def recent(self, thread_id: str, epoch: int | None) -> list[Source]:
        """The thread's last values, of any channel."""
        return self._sources(("recent", thread_id), epoch)

    def add_waste(self, thread_id: str, size: int) -> int:
        """Count bytes of segments that may be unused by now. Returns the total since it was last reset to 0."""
        waste = size + (self.get(("waste", thread_id)) or 0) if size else 0
        self.set((("waste", thread_id), waste, len(thread_id)))
        return waste

    def outlive(self, thread_id: str, ns: str, checkpoint_id: str, epoch: int) -> None:
        """Remember a checkpoint and its values as of another epoch, which a removal began that spared all of them."""
        known = self.checkpoint(thread_id, ns, checkpoint_id)
        if known is None:
            return
        spared = []
        for stored in known.header.values.values():
            source = self.source(thread_id, stored.digest, known.epoch) if stored.digest else None
            if source is not None and source.packed == stored.packed:  # the slices of another writer may be gone
                spared.append((stored, source))
        self.see_values(thread_id, epoch, spared)
        self.see_checkpoint(thread_id, ns, checkpoint_id, known._replace(epoch=epoch))

    def put_before_removal(self, thread_id: str, ns: str) -> bool:
        """Count one put. Returns whether it comes before the next removal, as far as is known."""
        left = self.get(("puts left", thread_id, ns)) or 0
        if left < 1:
            return False
        self.set_puts_left(thread_id, ns, left - 1)
        return True

    def set_puts_left(self, thread_id: str, ns: str, puts: int) -> None:
        """Remember how many puts to a namespace come before the next removal."""
        self.set((("puts left", thread_id, ns), puts, len(thread_id) + len(ns)))

    def _sources(self, key: _EntryKey, epoch: int | None) -> list[Source]:
        found = (self.source(str(key[1]), digest, epoch) for digest in self.get(key) or ())
        return [source for source in found if source is not None]

    def _longer(self, key: _EntryKey, digests: Sequence[bytes], kept: int) -> _Entry:
        """Return a list with digests at its beginning, the last of them first."""
        former = self._entries.get(key)  # not as the last used one: it is about to be set
        held: list[bytes] = former[1] if former is not None else []
        return key, list(dict.fromkeys([*digests[::-1], *held]))[:kept], 40 * kept

    def _has_evicted(self, entries: int, size: int) -> None:
        """Log evictions, whenever they are a good part of the capacity."""
        with self._lock:
            evicted, freed = self._evicted + entries, self._freed + size
            is_due = freed * _LINES_PER_CAPACITY > self.capacity
            self._evicted, self._freed = (0, 0) if is_due else (evicted, freed)
        if is_due:
            log.write(
                logging.DEBUG,
                "the encoding cache (cache_bytes=%d) is full: %d entries of %d bytes were evicted",
                self.capacity,
                evicted,
                freed,
            )
