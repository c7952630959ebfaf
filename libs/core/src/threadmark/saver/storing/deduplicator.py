"""Turning encoded values into stored form, each against what the thread already holds."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from threadmark.digests import proof
from threadmark.header import HEADER_TAG
from threadmark.rope import Deduplicated, Source, deduplicate, keys_in, pack, patch
from threadmark.saver.context import SaverContext
from threadmark.stored import LITERAL_LIMIT, Encoded, Stored, shrink

_SOURCES = 24

_MUCH = 1024
"""With this many new bytes, it pays to search everything that is remembered."""


class Deduplicator:
    """The values of one change, each compared with what it most likely repeats.

    What is remembered serves only if it is of the epoch that the change will prove; `lent` holds sources that were
    read in that epoch, whether or not they are still remembered.
    """

    def __init__(self, context: SaverContext, thread_id: str, epoch: int | None, lent: Mapping[bytes, Source]) -> None:
        self._encoding_cache = context.encoding_cache
        self._segment_key = context.segment_key
        self._thread_id = thread_id
        self._epoch = epoch
        self._lent = lent
        self._fresh: dict[bytes, bytes] = {}
        self._used: set[bytes] = set()
        self.deduplicated: list[tuple[Stored, Source]] = []
        """What was deduplicated, for the encoding cache."""

    def store(self, encoded: Encoded, near: Sequence[Source], beside: Collection[bytes] = ()) -> Stored:
        """The stored form of a value: compared with sources near it, and if much of it is new, with all others."""
        return self._stored(encoded, near, partial(self._deduplicated, encoded.data, near, beside))

    def store_header(self, data: bytes, parent: Source | None) -> Stored:
        """The stored form of a header: it resembles its parent's, and nothing else resembles a header."""
        near = [parent] if parent else []
        return self._stored(Encoded(HEADER_TAG, data), near, partial(patch, data, parent, self._segment_key))

    def inherit(self, stored: Stored) -> Stored:
        """A value that the thread already holds."""
        self._used.update(stored.segment_keys())
        return stored

    def sources(self, stored: Stored | None) -> list[Source]:
        """Return the bytes of a stored value, to compare with. Empty for literals and values not in the cache."""
        found = self._source(stored.digest) if stored is not None and stored.digest else None
        return [found] if found else []

    def source_of(self, stored: Stored, data: bytes) -> Source:
        """The value that was stored last, to compare its successor with."""
        return self.deduplicated[-1][1] if stored.digest else stored.source(data)

    def siblings(self) -> list[Source]:
        """What was deduplicated before in this change, the last first."""
        return [source for _, source in reversed(self.deduplicated)]

    def written(self, ns: str, checkpoint_id: str | None, channel: str) -> list[Source]:
        """What the step after this checkpoint wrote to the channel, the last first."""
        return self._encoding_cache.written(self._thread_id, ns, checkpoint_id, channel, self._epoch)

    def segments(self) -> dict[bytes, bytes]:
        """The segments to add, in the form they are stored in."""
        return {key: shrink(data) for key, data in self._fresh.items()}

    @property
    def epoch(self) -> int | None:
        """The epoch that must be proven: None if no value needs segments that the thread holds already."""
        return None if self._used <= self._fresh.keys() else self._epoch

    def remember(self, epoch: int) -> None:
        """Once stored, what was deduplicated is a source for the next change."""
        for stored, source in self.deduplicated:
            self._encoding_cache.see_value(self._thread_id, epoch, stored, source)

    def _stored(self, encoded: Encoded, near: Sequence[Source], deduplicating: Callable[[], Deduplicated]) -> Stored:
        tag, data = encoded
        if len(data) <= LITERAL_LIMIT:
            return Stored(tag, data, b"")
        proven = proof(data, near[0].proof if near else None)
        digest = proven.digest
        same = self._source(digest)
        if same is not None:
            return self._keep(Stored(tag, same.packed, digest), same)
        manifest, fresh = deduplicating()
        packed = pack(manifest)
        if not keys_in(packed):
            return Stored(tag, data, b"")
        self._fresh |= fresh
        return self._keep(Stored(tag, packed, digest), Source(data, manifest, packed=packed, proof=proven))

    def _deduplicated(self, data: bytes, near: Sequence[Source], beside: Collection[bytes]) -> Deduplicated:
        deduplicated = deduplicate(data, near, self._segment_key, beside=beside)
        if sum(map(len, deduplicated.fresh.values())) >= _MUCH:
            far = self.siblings() + self._encoding_cache.recent(self._thread_id, self._epoch)
            if far:
                return deduplicate(data, [*near, *far][:_SOURCES], self._segment_key, beside=beside)
        return deduplicated

    def _source(self, digest: bytes) -> Source | None:
        return self._lent.get(digest) or self._encoding_cache.source(self._thread_id, digest, self._epoch)

    def _keep(self, stored: Stored, source: Source) -> Stored:
        self.deduplicated.append((stored, source))
        return self.inherit(stored)
