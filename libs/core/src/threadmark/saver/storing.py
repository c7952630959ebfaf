"""Storing: what a checkpoint or a write adds to what its thread holds, and the stored form of it.

A `Draft` encodes a checkpoint's values. A `Deduplicator` gives each its stored form, compared with what it most likely
repeats.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from threadmark.digests import proof
from threadmark.errors import LocatedError, SerializationError, ThreadmarkError
from threadmark.header import HEADER_TAG, Header, split_fields
from threadmark.rope import Deduplicated, Source, deduplicate, keys_in, pack, patch
from threadmark.saver.arguments import GivenCheckpoint
from threadmark.saver.caches.encoding_cache import Known
from threadmark.saver.context import SaverContext
from threadmark.serde import Serializer
from threadmark.stored import LITERAL_LIMIT, LONGEST_TAG, Encoded, Stored, shrink

_SOURCES = 24

_WHOLE_HEADER = 512
"""Up to this many bytes a header stands in its row as it is: to store it costs less than to find what is new in it."""

_DIGEST = attrgetter("digest")

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
        self._inherits = False
        self.deduplicated: list[tuple[Stored, Source]] = []
        """What was deduplicated, for the encoding cache."""

    def store(self, encoded: Encoded, near: Sequence[Source], beside: Collection[bytes] = ()) -> Stored:
        """The stored form of a value: compared with sources near it, and if much of it is new, with all others."""
        stored, source = self._stored(encoded, near, partial(self._deduplicated, encoded.data, near, beside))
        if source is not None:
            self.deduplicated.append((stored, source))
        return stored

    def store_header(self, data: bytes, parent: Source | None) -> tuple[Stored, Source]:
        """The stored form of a header, and the header as a source for its successor's.

        It resembles its parent's, and nothing else resembles a header.
        """
        if len(data) <= _WHOLE_HEADER:
            return Stored(HEADER_TAG, data, b""), Source(data, (data,))
        near = [parent] if parent else []
        stored, source = self._stored(Encoded(HEADER_TAG, data), near, partial(patch, data, parent, self._segment_key))
        return stored, source or stored.source(data)

    def inherit(self, values: Iterable[Stored]) -> None:
        """Count on values that the thread already holds."""
        self._inherits = any(map(_DIGEST, values))

    def sources(self, stored: Stored | None) -> list[Source]:
        """Return the bytes of a stored value, to compare with. Empty for literals and values not in the cache."""
        found = self._source(stored.digest) if stored is not None and stored.digest else None
        return [found] if found else []

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
        return self._epoch if self._inherits or not self._used <= self._fresh.keys() else None

    def remember(self, epoch: int) -> None:
        """Once stored, what was deduplicated is a source for the next change."""
        self._encoding_cache.see_values(self._thread_id, epoch, self.deduplicated)

    def _stored(
        self, encoded: Encoded, near: Sequence[Source], deduplicating: Callable[[], Deduplicated]
    ) -> tuple[Stored, Source | None]:
        """The stored form of a value, and the value as a source for others, unless it is a literal."""
        tag, data = encoded
        if len(data) <= LITERAL_LIMIT:
            return Stored(tag, data, b""), None
        proven = proof(data, near[0].proof if near else None)
        digest = proven.digest
        same = self._source(digest)
        if same is not None:
            return self._keep(Stored(tag, same.packed, digest), same)
        manifest, fresh = deduplicating()
        packed = pack(manifest)
        if not keys_in(packed):
            return Stored(tag, data, b""), None
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

    def _keep(self, stored: Stored, source: Source) -> tuple[Stored, Source]:
        self._used.update(stored.segment_keys())
        return stored, source


class Draft:
    """A checkpoint to store: its values are encoded when first needed, and once."""

    def __init__(self, serde: Serializer, given: GivenCheckpoint) -> None:
        self.id = given.id
        self._serde = serde
        self._values = given.values
        self._versions = dict(given.versions)
        self._new = given.new
        self._plain, self._rest = split_fields(given.fields, partial(encode, serde, "the checkpoint"))
        self._encoded: dict[str, Encoded] = {}

    @property
    def reads(self) -> set[str]:
        """The channels whose value in the parent is worth having, to store only what changed."""
        return {channel for channel in self._values if channel in self._new}

    def header(
        self, deduplicator: Deduplicator, parent: Known | None, written: Callable[[str], Sequence[Source]]
    ) -> Header:
        """Return the header with every value in its stored form. `written` gives what tasks wrote to a channel."""
        known, held = (parent.header.values, parent.header.versions) if parent else ({}, {})
        # Where the version has moved on, nothing is inherited: LangGraph puts a copy of a checkpoint as its
        # sibling, with no new versions, and a channel that was emptied on the way stays empty.
        inherited = {
            channel: known[channel]
            for channel, version in self._versions.items()
            if channel in known and channel not in self._new and held.get(channel) == version
        }
        deduplicator.inherit(inherited.values())
        values: dict[str, Stored] = {}
        for channel, value in self._values.items():
            if channel in inherited:
                values[channel] = inherited[channel]
            else:
                encoded = self._encode(channel, value)
                is_short = len(encoded.data) <= LITERAL_LIMIT
                near = [] if is_short else [*deduplicator.sources(known.get(channel)), *written(channel)]
                values[channel] = deduplicator.store(encoded, near)
        return Header(self._versions, {**values, **inherited}, self._plain, self._rest)

    def _encode(self, channel: str, value: Any) -> Encoded:
        if channel not in self._encoded:
            self._encoded[channel] = encode(self._serde, f'channel "{channel}"', value)
        return self._encoded[channel]


def needed_segments(header: Header, stored: Stored) -> tuple[bytes, ...]:
    """The segments that reading a checkpoint takes, those of its header first."""
    keys = [*stored.segment_keys(), *(key for value in header.values.values() for key in value.segment_keys())]
    return tuple(dict.fromkeys(keys))


def encode(serde: Serializer, what: str, value: Any) -> Encoded:
    """Encode a value. Errors say what it is, such as a channel, and where inside it they occurred.

    What the user's own serializer raises is the cause of a SerializationError.
    """
    try:
        encoded = Encoded.of(serde.dumps_typed(value))
        length = len(encoded.tag.encode("utf-8", "surrogatepass"))
    except LocatedError as error:
        raise error.at(what) from error.origin
    except ThreadmarkError:
        raise
    except Exception as error:
        raise SerializationError(f"the serializer cannot store a {type(value).__name__}: {error}", what) from error
    if length > LONGEST_TAG:
        raise SerializationError(f"the serializer's tag is longer than {LONGEST_TAG} bytes", what)
    return encoded
