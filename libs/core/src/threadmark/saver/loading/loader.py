"""From rows to a checkpoint: which bytes are still missing, then the whole, proven.

Pure: a program asks a `CheckpointLoader` what it needs, fetches it, and hands it over.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.header import Header
from threadmark.rope import Source
from threadmark.saver.caches.encoding_cache import EncodingCache, Known
from threadmark.saver.caches.segment_cache import SegmentCache
from threadmark.saver.proving.checks import channel_location, header_location, prove_checkpoint, write_location
from threadmark.saver.proving.writes import Write, proven_writes
from threadmark.store import CheckpointRow, Outline, WriteRow
from threadmark.stored import Encoded, Stored

Wanted = Callable[[str], bool]
"""Whether the value of this channel is to be read."""

_DIGEST, _WRITE_DIGEST = attrgetter("digest"), attrgetter("value.digest")

NO_EPOCH = 0
"""A sentinel that is never a real epoch."""


class LoadedCheckpoint(NamedTuple):
    """A checkpoint with the verified bytes of its values, not decoded yet."""

    epoch: int
    outline: Outline
    header: Header
    body: bytes
    """The header's own stored form."""
    source: Source
    """The header's own encoding."""
    writes: list[Write]
    data: Mapping[bytes, bytes]
    """The bytes of the values, by digest."""

    def encoded(self, value: Stored) -> Encoded:
        """One of its values as the serializer returned it."""
        return Encoded(value.tag, self.data[value.digest] if value.digest else value.packed)

    def known(self, row: CheckpointRow | None = None) -> Known:
        """The checkpoint as a later put needs it, and with its proven row as a later get does."""
        has_manifests = any(map(_DIGEST, self.header.values.values()))
        return Known(self.epoch, self.outline.rank, self.header, self.source, self.body, has_manifests, row)

    def values(self) -> dict[bytes, Stored]:
        """The values whose bytes were read, by digest."""
        stored = [*self.header.values.values(), *(write.value for write in self.writes)]
        return {value.digest: value for value in stored if value.digest in self.data}

    def sources(self) -> dict[bytes, Source]:
        """The values that were read, to compare others with."""
        return {digest: value.source(self.data[digest]) for digest, value in self.values().items()}


class CheckpointLoader:
    """One checkpoint while it is being read.

    Call `missing_header_keys`, fetch, `open_header`, `value_keys`, fetch, `loaded`, with all that was fetched on one
    segment cache. Damage raises a CorruptDataError that names what is damaged.
    """

    __slots__ = (
        "_body", "_data", "_encoding_cache", "_known", "_missing", "_segment_cache", "_source", "_stored", "_writes",
        "header", "outline",
    )  # fmt: skip

    header: Header
    _segment_cache: SegmentCache
    _stored: Stored
    """The header's own stored form, where the header is to be read."""

    def __init__(self, row: CheckpointRow, writes: Sequence[WriteRow], encoding_cache: EncodingCache) -> None:
        prove_checkpoint(row)
        outline, body, _, _ = row
        thread_id, ns, checkpoint_id, _, _, _, _ = outline
        self._known = known = encoding_cache.header(thread_id, ns, checkpoint_id, body)
        self.outline, self._body, self._encoding_cache = outline, body, encoding_cache
        if known is None:
            self._source, self._stored = _NO_SOURCE, self.header_stored
        else:
            self._source, self.header = known.source, known.header
        self._writes = proven_writes(thread_id, writes) if writes else []
        self._data: dict[bytes, bytes] = {}
        self._missing: dict[Stored, str | WriteRow] = {}

    @property
    def header_stored(self) -> Stored:
        """The header's own stored form."""
        try:
            return Stored.from_bytes(self._body)
        except CorruptDataError as error:
            raise error.at(header_location(self.outline)) from error

    def header_keys(self) -> Sequence[bytes]:
        """The segments of the header."""
        return (self._stored if self._known is None else self.header_stored).segment_keys()

    def missing_header_keys(self) -> Sequence[bytes]:
        """The same, unless the header is remembered."""
        return self.header_keys() if self._known is None else ()

    def open_header(self, segment_cache: SegmentCache) -> None:
        """Read the header."""
        self._segment_cache = segment_cache
        segment_cache.allowance.renew()
        if self._known is not None:
            return
        try:
            data = segment_cache.data(self._stored)
            self.header = Header.from_bytes(data)
        except CorruptDataError as error:
            raise error.at(header_location(self.outline)) from error
        self._source = self._stored.source(data)

    def value_keys(self, wanted: Wanted | None = None) -> set[bytes]:
        """The segments of the values that are wanted and not remembered."""
        # Most values of a state of many channels are short, and those are there.
        has_manifests = self._known is None or self._known.has_manifests
        if has_manifests and any(map(_DIGEST, self.header.values.values())):
            for channel, value in [item for item in self.header.values.items() if item[1].digest]:
                if (wanted is None or wanted(channel)) and self._lacks(value.digest):
                    self._missing[value] = channel
        for row, value in self._writes:
            if value.digest and (wanted is None or wanted(row.channel)) and self._lacks(value.digest):
                self._missing[value] = row
        return {key for value in self._missing for key in value.segment_keys()} if self._missing else set()

    def loaded(self, epoch: int = NO_EPOCH) -> LoadedCheckpoint:
        """Return the loaded checkpoint. `epoch` is needed only if it is to be remembered."""
        data = self._with_missing() if self._missing else self._data
        return LoadedCheckpoint(epoch, self.outline, self.header, self._body, self._source, self._writes, data)

    def _with_missing(self) -> dict[bytes, bytes]:
        """The bytes of all values by digest, with those that are made of what was fetched."""
        data = self._data.copy()
        self._segment_cache.allowance.renew()
        for value, owner in self._missing.items():
            try:
                data[value.digest] = self._segment_cache.data(value, owner if isinstance(owner, str) else None)
            except CorruptDataError as error:
                raise error.at(self._location(owner)) from error
        return data

    def _lacks(self, digest: bytes) -> bool:
        """Whether the segments of the value with this digest are needed."""
        if digest in self._data:
            return False
        data = self._encoding_cache.data(self.outline.thread_id, digest)
        if data is None:
            return True
        self._data[digest] = data
        return False

    def _location(self, owner: str | WriteRow) -> str:
        """How an error names the value of a channel, or of a pending write."""
        if isinstance(owner, str):
            return channel_location(self.outline, owner)
        return write_location(self.outline.thread_id, owner)


_NO_SOURCE = Source(b"")


def remembered(
    row: CheckpointRow, writes: Sequence[WriteRow], encoding_cache: EncodingCache, epoch: int | None = None
) -> LoadedCheckpoint | None:
    """Return a checkpoint all of which is remembered (from this epoch, if one is given): its row and its values.

    None for any other one, which takes a loader. Raises CorruptDataError where its writes are damaged.
    """
    outline, body, _, _ = row
    thread_id, ns, checkpoint_id, _, _, created_at, _ = outline
    known = encoding_cache.header(thread_id, ns, checkpoint_id, body)
    if known is None or (epoch is not None and known.epoch != epoch):
        return None
    # The row that is remembered was proven. Only of a number, another one that is equal may be of another type.
    if known.row is None or known.row[:3] != row[:3] or type(created_at) is not int:
        return None
    written = proven_writes(thread_id, writes) if writes else []
    digests = {*map(_DIGEST, known.header.values.values())} if known.has_manifests else set()
    if written:
        digests.update(map(_WRITE_DIGEST, written))
    digests.discard(b"")
    data = encoding_cache.all_data(thread_id, digests) if digests else {}
    if data is None:
        return None
    fields = NO_EPOCH if epoch is None else epoch, outline, known.header, body, known.source, written, data
    return tuple.__new__(LoadedCheckpoint, fields)  # the class calls a function in Python


def missing_headers(loaders: Iterable[CheckpointLoader]) -> set[bytes]:
    """The segments of those headers that are not remembered."""
    return {key for loader in loaders for key in loader.missing_header_keys()}


def remember(encoding_cache: EncodingCache, loaded: LoadedCheckpoint, row: CheckpointRow) -> None:
    """Keep what was read for the put that may follow. `row` is the one that was proven."""
    thread_id, ns, checkpoint_id = loaded.outline[:3]
    encoding_cache.see_checkpoint(thread_id, ns, checkpoint_id, loaded.known(row))
    values = [(value, value.source(loaded.data[digest])) for digest, value in loaded.values().items()]
    encoding_cache.see_values(thread_id, loaded.epoch, values)
    written = [(row.channel, value.digest) for row, value in loaded.writes]
    encoding_cache.see_writes(thread_id, ns, checkpoint_id, written)
