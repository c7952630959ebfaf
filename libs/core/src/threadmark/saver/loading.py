"""From rows to a checkpoint: which bytes are still missing, then the whole, proven.

A program asks a `CheckpointLoader` for its needs, fetches them, and hands them over. To read some channels,
the checkpoints' rows and the segments of those channels' values are read, and nothing else.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

from threadmark.config import ParsedConfig
from threadmark.errors import CorruptDataError, LocatedError
from threadmark.format.header import Header
from threadmark.format.rope import Source
from threadmark.format.stored import Encoded, Stored
from threadmark.program import Program
from threadmark.saver.batches import Write, proven_writes
from threadmark.saver.caches import EncodingCache, Known, SegmentCache, fill
from threadmark.saver.completeness import prove_absent, proven_row
from threadmark.saver.context import SaverContext
from threadmark.saver.proving import channel_location, header_location, prove_checkpoint, write_location
from threadmark.store.contract import CheckpointRow, Found, Outline, WriteRow

ChannelFilter = Callable[[str], bool]
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

    Call `missing_header_keys`, fetch, `open_header`, `value_keys`, fetch, `loaded`, with all fetched bytes in one
    segment cache. Damage raises a CorruptDataError that names the damaged part.
    """

    __slots__ = (
        "_body", "_data", "_encoding_cache", "_known", "_missing", "_segment_cache", "_source", "_stored", "_writes",
        "header", "outline",
    )  # fmt: skip

    header: Header
    _segment_cache: SegmentCache
    _stored: Stored
    """The header's own stored form, if the header is to be read."""

    def __init__(self, row: CheckpointRow, writes: Sequence[WriteRow], encoding_cache: EncodingCache) -> None:
        prove_checkpoint(row)
        outline, body = row.outline, row.header
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

    def value_keys(self, chosen: ChannelFilter | None = None) -> set[bytes]:
        """The segments of the values that are wanted and not remembered."""
        # Most values of a state of many channels are short, and those are there.
        has_manifests = self._known is None or self._known.has_manifests
        if has_manifests and any(map(_DIGEST, self.header.values.values())):
            for channel, value in [item for item in self.header.values.items() if item[1].digest]:
                if (chosen is None or chosen(channel)) and self._lacks(value.digest):
                    self._missing[value] = channel
        for row, value in self._writes:
            if value.digest and (chosen is None or chosen(row.channel)) and self._lacks(value.digest):
                self._missing[value] = row
        return {key for value in self._missing for key in value.segment_keys()} if self._missing else set()

    def loaded(self, epoch: int = NO_EPOCH) -> LoadedCheckpoint:
        """Return the loaded checkpoint. `epoch` is needed only if it is to be remembered."""
        data = self._with_missing() if self._missing else self._data
        return LoadedCheckpoint(epoch, self.outline, self.header, self._body, self._source, self._writes, data)

    def _with_missing(self) -> dict[bytes, bytes]:
        """The bytes of all values by digest, with those made of fetched bytes."""
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
    """Return a checkpoint all of which is remembered (from this epoch, if you pass one): its row and its values.

    None for any other one, which takes a loader. Raises CorruptDataError if its writes are damaged.
    """
    outline, body = row.outline, row.header
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
    found_epoch = NO_EPOCH if epoch is None else epoch
    return LoadedCheckpoint(found_epoch, outline, known.header, body, known.source, written, data)


def missing_headers(loaders: Iterable[CheckpointLoader]) -> set[bytes]:
    """The segments of those headers that are not remembered."""
    return {key for loader in loaders for key in loader.missing_header_keys()}


def remember(encoding_cache: EncodingCache, loaded: LoadedCheckpoint, row: CheckpointRow) -> None:
    """Keep the loaded values for the put that may follow. `row` is the proven one."""
    thread_id, ns, checkpoint_id = loaded.outline[:3]
    encoding_cache.see_checkpoint(thread_id, ns, checkpoint_id, loaded.known(row))
    values = [(value, value.source(loaded.data[digest])) for digest, value in loaded.values().items()]
    encoding_cache.see_values(thread_id, loaded.epoch, values)
    written = [(row.channel, value.digest) for row, value in loaded.writes]
    encoding_cache.see_writes(thread_id, ns, checkpoint_id, written)


T = TypeVar("T")

_ROOM = 16 * 1024 * 1024
"""How many bytes of values are read at once for several threads, unless one value alone has more."""


def load_channel(context: SaverContext, where: ParsedConfig, channel: str) -> Program[LoadedCheckpoint | None]:
    """Return one checkpoint with the bytes of one channel's value. The next call for the same value finds it here."""
    found = yield from _find(context, where)
    if found is None:
        if where.checkpoint_id is not None:
            yield from prove_absent(context, where)
        return None
    loader = CheckpointLoader(proven_row(where, found), (), context.encoding_cache)
    segment_cache = context.segment_cache(found.segments)
    yield from fill(segment_cache, context.store, where.thread_id, loader.missing_header_keys())
    loader.open_header(segment_cache)
    yield from fill(segment_cache, context.store, where.thread_id, loader.value_keys(channel.__eq__))
    loaded = loader.loaded(found.epoch)
    if found.epoch != NO_EPOCH:
        # The checkpoint itself is not remembered: a put would miss its other values then, and store them again.
        values = [(value, value.source(loaded.data[digest])) for digest, value in loaded.values().items()]
        context.encoding_cache.see_values(where.thread_id, found.epoch, values)
    return loaded


def load_channels(
    context: SaverContext, thread_ids: Sequence[str], channels: Container[str]
) -> Program[dict[str, LoadedCheckpoint | LocatedError | None]]:
    """Return the newest checkpoints of some threads with these channels' values, in a fixed number of questions.

    If the values are large, it returns those of the first threads only, one at least. None stands for a thread
    without checkpoints, and an error for one that cannot be read.
    """
    found = yield from context.store.newest(thread_ids, "")
    reading = _Reading(context, found)
    reading.begin(thread_ids)
    yield from reading.fill(reading.missing_headers())
    taken = reading.open_headers(thread_ids, channels)
    yield from reading.fill(reading.missing_values(taken, channels))
    return {thread_id: reading.loaded(thread_id) for thread_id in taken}


class _Reading:
    """The newest checkpoints of several threads while they are being read. Damage to one leaves the others alone."""

    def __init__(self, context: SaverContext, found: Mapping[str, Found]) -> None:
        self._context = context
        self._found = found
        self._loaders: dict[str, CheckpointLoader] = {}
        self._caches: dict[str, SegmentCache] = {}
        self._errors: dict[str, LocatedError] = {}

    def begin(self, thread_ids: Iterable[str]) -> None:
        """Prove the rows."""
        for thread_id in thread_ids:
            if thread_id in self._found:
                self._caches[thread_id] = self._context.segment_cache(self._found[thread_id].segments)
                loader = self._unless_damaged(thread_id, self._loader, None)
                if loader is not None:
                    self._loaders[thread_id] = loader

    def missing_headers(self) -> dict[str, Collection[bytes]]:
        """The segments of headers that are still to be fetched, by thread."""
        return {thread_id: loader.missing_header_keys() for thread_id, loader in self._loaders.items()}

    def open_headers(self, thread_ids: Sequence[str], channels: Container[str]) -> Sequence[str]:
        """Read the headers. Returns the first threads, for whose values there is room."""
        room = _ROOM
        for number, thread_id in enumerate(thread_ids):
            room -= self._unless_damaged(thread_id, lambda each: self._size(each, channels), 0)
            if room < 0 and number:
                return thread_ids[:number]
        return thread_ids

    def missing_values(self, thread_ids: Iterable[str], channels: Container[str]) -> dict[str, Collection[bytes]]:
        """The segments of the channels' values that are to be fetched, by thread."""
        none: Collection[bytes] = ()
        return {
            thread_id: self._unless_damaged(
                thread_id, lambda each: self._loaders[each].value_keys(channels.__contains__), none
            )
            for thread_id in thread_ids
        }

    def fill(self, needed: Mapping[str, Collection[bytes]]) -> Program[None]:
        """Fetch those segments that are not there yet."""
        lacking = {thread_id: self._caches[thread_id].lacking(keys) for thread_id, keys in needed.items() if keys}
        lacking = {thread_id: keys for thread_id, keys in lacking.items() if keys}
        segments = (yield from self._context.store.segments_of(lacking)) if lacking else {}
        for thread_id, some in segments.items():
            self._caches[thread_id].add(some)

    def loaded(self, thread_id: str) -> LoadedCheckpoint | LocatedError | None:
        """Return the outcome for a thread."""
        loaded = self._unless_damaged(thread_id, lambda each: self._loaders[each].loaded(), None)
        return self._errors.get(thread_id, loaded)

    def _loader(self, thread_id: str) -> CheckpointLoader:
        row = proven_row(ParsedConfig(thread_id, "", None), self._found[thread_id])
        return CheckpointLoader(row, (), self._context.encoding_cache)

    def _size(self, thread_id: str, channels: Container[str]) -> int:
        loader = self._loaders[thread_id]
        loader.open_header(self._caches[thread_id])
        return sum(value.size() for channel, value in loader.header.values.items() if channel in channels)

    def _unless_damaged(self, thread_id: str, read: Callable[[str], T], otherwise: T) -> T:
        """Read something of a thread that is there and not damaged so far."""
        if thread_id not in self._caches or thread_id in self._errors:
            return otherwise
        try:
            return read(thread_id)
        except LocatedError as error:
            self._errors[thread_id] = error
            return otherwise


def _find(context: SaverContext, where: ParsedConfig) -> Program[Found | None]:
    """Find a checkpoint, without its writes and the segments of its values."""
    if where.checkpoint_id is None:
        found = yield from context.store.newest([where.thread_id], where.ns)
        return found.get(where.thread_id)
    rows = yield from context.store.rows(where.thread_id, [(where.ns, where.checkpoint_id)])
    # If a clock was set back, one checkpoint may be there under two ranks (`saver.find` takes the greatest, too).
    row = max(rows, key=lambda each: each.outline.rank, default=None)
    return None if row is None else Found(NO_EPOCH, row, (), {})
