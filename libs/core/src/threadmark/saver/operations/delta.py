"""Delta channels: the writes of a checkpoint's ancestors to a channel that is stored as its changes."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from threadmark.config import ParsedConfig, parse_config
from threadmark.errors import CheckpointNotFoundError, located
from threadmark.format.stored import Encoded, Stored
from threadmark.model import Config, DeltaChannelHistory
from threadmark.program import Operation, Program, read
from threadmark.saver.arguments import checked_channels
from threadmark.saver.batches import Write, proven_writes
from threadmark.saver.caches import Known, SegmentCache, fill
from threadmark.saver.completeness import prove_absent
from threadmark.saver.context import SaverContext
from threadmark.saver.decoding import decode_channel, decode_metadata, decode_write
from threadmark.saver.loading import CheckpointLoader, missing_headers
from threadmark.saver.proving import channel_location, write_location
from threadmark.saver.storing import Draft
from threadmark.serde import Serde, Serializer
from threadmark.serde.serializer import NONE, PLAIN, TYPED
from threadmark.store.contract import Key, Outline, WriteRow

_FIRST_REACH = 64

ANCESTORS_ASKED = 64
"""How many of them are asked whether a channel without a value is a delta channel."""

COUNTERS = "counters_since_delta_snapshot"
"""The key of the metadata in which LangGraph counts, for each delta channel, the steps since its last snapshot."""

_SNAPSHOT = "_DeltaSnapshot"
_MARK_LENGTHS = {b"\xc7": 1, b"\xc8": 2}
"""The beginning of a mark that names a class, after the first byte of a value, and the size of the length behind it."""

_TRIGGERS = "branch:to:"
_EMPTIED = frozenset({"__start__", "__pregel_tasks"})


class _Walk:
    """The way from a checkpoint to the root: for each channel, the visited ancestors and the seed at its end."""

    def __init__(self, channels: Sequence[str]) -> None:
        self.remaining = set(channels)
        self.visited: dict[str, list[Key]] = {channel: [] for channel in channels}
        self.seeds: dict[str, tuple[Stored, Outline]] = {}
        self._seen: set[Key] = set()

    def visit(self, loader: CheckpointLoader) -> bool:
        """Add one ancestor. Returns False if the walk is over: all seeds are found, or this one was seen before."""
        outline = loader.outline
        key = outline.key
        if key in self._seen:
            return False
        self._seen.add(key)
        for channel in tuple(self.remaining):
            # A value stands before the writes of its own checkpoint, so those count even at the end of the walk.
            self.visited[channel].append(key)
            if channel in loader.header.values:
                self.seeds[channel] = (loader.header.values[channel], outline)
                self.remaining.discard(channel)
        return bool(self.remaining)


def get_delta_channel_history(
    context: SaverContext, config: Config, channels: Sequence[str]
) -> Operation[dict[str, DeltaChannelHistory]]:
    """For each channel the writes of the ancestors since its last stored value, oldest first, and that value."""
    where = parse_config(config)
    channels = checked_channels(channels)
    if not channels:
        return {}
    walk, writes, data = yield from read(_history, context, where, channels)
    result: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        visited = reversed(walk.visited[channel])
        entry = DeltaChannelHistory(
            writes=[
                decode_write(context, where.thread_id, write, data)
                for key in visited
                for write in writes.get(key, ())
                if write.row.channel == channel
            ]
        )
        if channel in walk.seeds:
            stored, outline = walk.seeds[channel]
            entry["seed"] = decode_channel(context, outline, channel, stored, data)
        result[channel] = entry
    return result


def _history(
    context: SaverContext, where: ParsedConfig, channels: Sequence[str]
) -> Program[tuple[_Walk, dict[Key, list[Write]], dict[bytes, bytes]]]:
    """One transaction: the chain in growing reaches, then the writes it passed and every value needed."""
    thread_id, ns, start, _ = where
    walk = _Walk(channels)
    reach, skip, going = _FIRST_REACH, 1, True
    while going:
        rows = yield from context.store.chain(thread_id, ns, start, reach)
        loaders = [CheckpointLoader(row, (), context.encoding_cache) for row in rows[skip:]]
        segment_cache = context.segment_cache()
        yield from fill(segment_cache, context.store, thread_id, missing_headers(loaders))
        for loader in loaders:
            loader.open_header(segment_cache)
            if not (going := walk.visit(loader)):
                break
        start = rows[-1].outline.parent if rows else start
        if going and start is not None and len(rows) < reach:  # the way ends at a checkpoint that is not there
            yield from prove_absent(context, ParsedConfig(thread_id, ns, start))
        going = going and start is not None and len(rows) == reach
        reach, skip = reach * 8, 0
    keys = sorted({key for visited in walk.visited.values() for key in visited})
    rows_of_writes = (yield from context.store.writes(thread_id, keys)) if keys else []
    writes = _by_checkpoint(thread_id, rows_of_writes, walk.visited.keys())
    values = [stored for stored, _ in walk.seeds.values()]
    values += [write.value for group in writes.values() for write in group]
    segment_cache = context.segment_cache()
    yield from fill(segment_cache, context.store, thread_id, (key for value in values for key in value.segment_keys()))
    return walk, writes, _data(thread_id, walk, writes, segment_cache)


def _data(
    thread_id: str, walk: _Walk, writes: Mapping[Key, Sequence[Write]], segment_cache: SegmentCache
) -> dict[bytes, bytes]:
    """Return the bytes of the seeds and of the writes, by digest. Errors name the channel."""
    owned = [(stored, channel_location(outline, channel)) for channel, (stored, outline) in walk.seeds.items()]
    owned += [(write.value, write_location(thread_id, write.row)) for group in writes.values() for write in group]
    data: dict[bytes, bytes] = {}
    for value, location_of_value in owned:
        with located(location_of_value):
            data[value.digest] = segment_cache.data(value)
    return data


def _by_checkpoint(thread_id: str, rows: Sequence[WriteRow], channels: Container[str]) -> dict[Key, list[Write]]:
    groups: dict[Key, list[Write]] = {}
    for write in proven_writes(thread_id, rows):
        if write.row.channel in channels:
            groups.setdefault((write.row.ns, write.row.checkpoint_id), []).append(write)
    return groups


def counted_channels(outlines: Iterable[Outline]) -> set[str]:
    """The delta channels for which LangGraph counted, in some checkpoint's metadata, the steps since the last snapshot.

    A step counts all delta channels of its graph, but its releases before 1.2.13 counted nothing when a state was
    changed by hand.
    """
    counted: set[str] = set()
    for outline in outlines:
        if COUNTERS in outline.metadata:
            counters = decode_metadata(outline).get(COUNTERS)
            counted.update(counters if isinstance(counters, Mapping) else ())
    return counted


def check_parent(
    where: ParsedConfig, parent_id: str, parent: Known | None, draft: Draft, metadata: Mapping[str, Any]
) -> bool:
    """Return whether a delta channel of a checkpoint is stored as changes, so that it is read from its ancestors.

    Raises CheckpointNotFoundError if it is, and the parent is not there.
    """
    counters = metadata.get(COUNTERS)
    counted = counters if isinstance(counters, Mapping) else ()
    changed = [channel for channel in counted if channel in draft.versions and channel not in draft.values]
    if changed and parent is None:
        raise CheckpointNotFoundError(
            f"{where}: checkpoint {parent_id!r}, which it continues, is not there: perhaps it was pruned after your "
            f'run had read it. Delta channel "{changed[0]}" is read from the changes up to there, so nothing was '
            "stored: read the newest checkpoint, and go on from it"
        )
    return bool(changed)


def may_be_delta(channel: str) -> bool:
    """Whether a channel can be one: LangGraph's own are not, which are emptied by every step and so rarely hold any."""
    return channel not in _EMPTIED and not channel.startswith(_TRIGGERS)


def is_snapshot(serde: Serializer, value: Encoded) -> bool:
    """Whether a value is a snapshot: LangGraph stores one of a delta channel now and then, to keep its history short.

    A value that cannot be read here may be one.
    """
    if isinstance(serde, Serde) and value.tag in (NONE, PLAIN, TYPED):
        return value.tag == TYPED and _SNAPSHOT.encode() in _mark_of_whole(value.data)
    try:
        return type(serde.loads_typed(value)).__name__ == _SNAPSHOT
    except Exception:  # noqa: BLE001 - a serializer of the user's may raise anything
        return True


def _mark_of_whole(data: bytes) -> bytes:
    """Return the mark that names the class of a whole value, b"" if none does. Text in the value is no mark."""
    width = _MARK_LENGTHS.get(data[1:2])
    if width is None:
        return b""
    start = 2 + width + 1  # the code of the extension comes last
    return data[start : start + int.from_bytes(data[2 : 2 + width], "big")]
