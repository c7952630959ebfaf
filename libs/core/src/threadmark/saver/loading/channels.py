"""Reading some channels of checkpoints: their rows, and the segments of those channels' values, but nothing else."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from threadmark.config import ParsedConfig
from threadmark.errors import LocatedError
from threadmark.program import Program
from threadmark.saver.caches.segment_cache import SegmentCache, fill
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.loader import NO_EPOCH, CheckpointLoader, LoadedCheckpoint
from threadmark.saver.proving.completeness import prove_absent, proven_row
from threadmark.store import Found

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
    context: SaverContext, thread_ids: Sequence[str], channels: Collection[str]
) -> Program[dict[str, LoadedCheckpoint | LocatedError | None]]:
    """Return the newest checkpoints of some threads with these channels' values, in a fixed number of questions.

    Where the values are large, they are those of the first threads only, one at least. None stands for a thread
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

    def open_headers(self, thread_ids: Sequence[str], channels: Collection[str]) -> Sequence[str]:
        """Read the headers. Returns the first threads, for whose values there is room."""
        room = _ROOM
        for number, thread_id in enumerate(thread_ids):
            room -= self._unless_damaged(thread_id, lambda each: self._size(each, channels), 0)
            if room < 0 and number:
                return thread_ids[:number]
        return thread_ids

    def missing_values(self, thread_ids: Iterable[str], channels: Collection[str]) -> dict[str, Collection[bytes]]:
        """The segments of the channels' values that are to be fetched, by thread."""
        none: Collection[bytes] = ()
        return {
            thread_id: self._unless_damaged(
                thread_id, lambda each: self._loaders[each].value_keys(channels.__contains__), none
            )
            for thread_id in thread_ids
        }

    def fill(self, wanted: Mapping[str, Collection[bytes]]) -> Program[None]:
        """Fetch those segments that are not there yet."""
        lacking = {thread_id: self._caches[thread_id].lacking(keys) for thread_id, keys in wanted.items() if keys}
        lacking = {thread_id: keys for thread_id, keys in lacking.items() if keys}
        segments = (yield from self._context.store.segments_of(lacking)) if lacking else {}
        for thread_id, some in segments.items():
            self._caches[thread_id].add(some)

    def loaded(self, thread_id: str) -> LoadedCheckpoint | LocatedError | None:
        """Return what has become of a thread."""
        loaded = self._unless_damaged(thread_id, lambda each: self._loaders[each].loaded(), None)
        return self._errors.get(thread_id, loaded)

    def _loader(self, thread_id: str) -> CheckpointLoader:
        row = proven_row(ParsedConfig(thread_id, "", None), self._found[thread_id])
        return CheckpointLoader(row, (), self._context.encoding_cache)

    def _size(self, thread_id: str, channels: Collection[str]) -> int:
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
    # Where a clock was set back, one checkpoint may be there under two ranks (`saver.find` takes the greatest, too).
    row = max(rows, key=lambda each: each.outline.rank, default=None)
    return None if row is None else Found(NO_EPOCH, row, (), {})
