"""What checkpoints of one thread share while they are read together: segments, and what has been proven of values."""

import logging
from collections.abc import Iterable, Mapping

from threadmark.digests import Proof
from threadmark.errors import CorruptDataError
from threadmark.logs import log
from threadmark.program import Program
from threadmark.sealing import SegmentNames
from threadmark.store import Store
from threadmark.stored import EXPANSION_BYTES, MOST_COMPRESSED, Allowance, Stored, expand


class SegmentCache:
    """The segments that were fetched. Each is expanded once, however many values are made of it.

    Values of one channel mostly resemble each other, so each is proven with what the one before has proven.
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
        self._near: dict[str, tuple[Stored, Proof]] = {}
        self._names = names
        self.allowance = Allowance(expansion)

    def lacking(self, keys: Iterable[bytes]) -> list[bytes]:
        """The segments that are still to be fetched."""
        return sorted({key for key in keys if key not in self._whole and key not in self._stored})

    def add(self, segments: Mapping[bytes, bytes]) -> None:
        """Segments as they are stored."""
        self._stored.update(segments)

    def segment(self, key: bytes, size: int) -> bytes:
        """Return a segment of this size, which is not proven to be what was written under the key."""
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
        self._near = {
            channel: near for channel, near in self._near.items() if not keys.isdisjoint(near[0].segment_keys())
        }
        if evicted := held - len(self._stored) - len(self._whole):
            log.write(logging.DEBUG, "the segment cache of a listing: %d of %d segments were evicted", evicted, held)

    def data(self, value: Stored, channel: str | None = None) -> bytes:
        """Return a value's verified bytes. Raises CorruptDataError if they are damaged."""
        if not value.digest:
            return value.packed
        known = self._near.get(channel) if channel is not None else None
        if known is not None and known[0] == value:  # the same segments, too: others would have to be proven
            return known[1].data
        proven = value.proof(self._stored, self._whole, known[1] if known else None, self.allowance)
        if self._names is not None and not self._names.are_proven:
            self._names.prove(value.segment_keys(), self._whole)
        if channel is not None:
            self._near[channel] = value, proven
        return proven.data


def fill(segment_cache: SegmentCache, store: Store, thread_id: str, keys: Iterable[bytes]) -> Program[None]:
    """Fetch those of the thread's segments that are not in the cache yet."""
    if lacking := segment_cache.lacking(keys):
        segment_cache.add((yield from store.segments(thread_id, lacking)))
