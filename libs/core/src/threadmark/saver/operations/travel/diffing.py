"""What differs between two checkpoints. Of what their headers say to be the same nothing is read."""

from typing import Any, NamedTuple

from threadmark.config import ParsedConfig, parse_config
from threadmark.errors import CheckpointNotFoundError, ConfigError
from threadmark.model import Config
from threadmark.program import Operation, Program, read
from threadmark.saver.caches.segment_cache import SegmentCache, fill
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_part
from threadmark.saver.loading.loader import NO_EPOCH, CheckpointLoader, LoadedCheckpoint
from threadmark.saver.operations.reading import expect_plain_once
from threadmark.saver.operations.travel.comparing import Changes, Place
from threadmark.saver.paths import Path, parse_path
from threadmark.saver.proving.completeness import prove_absent, proven_row
from threadmark.serde.steps import NOTHING
from threadmark.store import Found
from threadmark.stored import Stored
from threadmark.travel import Diff


class Pair(NamedTuple):
    """Two checkpoints with the bytes of the values in which they differ."""

    a: LoadedCheckpoint
    b: LoadedCheckpoint
    equal: list[str]
    different: list[str]
    bytes_read: int


def diff(context: SaverContext, a: Config, b: Config, path: str | None, limit: int) -> Operation[Diff]:
    """Return what differs between two checkpoints of a thread."""
    ours, theirs = parse_config(a), parse_config(b)
    if ours.thread_id != theirs.thread_id:
        raise ConfigError(
            f"checkpoints of one thread can be compared, and these are of {ours.thread_id!r} and {theirs.thread_id!r}"
        )
    wanted = None if path is None else parse_path(path)
    pair = yield from read(_load, context, ours, theirs, wanted)
    if isinstance(pair, ParsedConfig):
        yield from expect_plain_once(context)
        raise CheckpointNotFoundError(f"there is no checkpoint {pair}: it was never stored, or it was removed")
    shows = context.without_classes()
    changes, equal = Changes(limit), pair.equal
    for channel in pair.different:
        count = len(changes)
        steps = wanted or Path(channel, ())
        text = str(steps)
        changes.compare(Place(text, text), _part(shows, pair.a, steps), _part(shows, pair.b, steps))
        if len(changes) == count:  # its bytes differ in the order of keys, or in what is not shown
            equal.append(channel)
    return Diff(changes.found, sorted(equal), changes.left_out, pair.bytes_read)


def _part(context: SaverContext, loaded: LoadedCheckpoint, path: Path) -> Any:
    value = loaded.header.values.get(path.channel)
    return NOTHING if value is None else decode_part(context, loaded.outline, path, value, loaded.data)


def _load(context: SaverContext, a: ParsedConfig, b: ParsedConfig, path: Path | None) -> Program[Pair | ParsedConfig]:
    """Load both checkpoints, with the values of those channels in which they differ. Returns one that is missing."""
    cache = context.segment_cache()
    ours = yield from load_header(context, cache, a)
    theirs = yield from load_header(context, cache, b)
    if ours is None or theirs is None:
        return b if theirs is None else a
    values, others = ours.header.values, theirs.header.values
    channels = sorted(values.keys() | others.keys()) if path is None else [path.channel]
    both = [channel for channel in channels if channel in values and channel in others]
    equal = [channel for channel in both if same_value(values[channel], others[channel])]
    different = [channel for channel in channels if channel not in equal]
    keys = ours.value_keys(different.__contains__) | theirs.value_keys(different.__contains__)
    fetched = (yield from context.store.segments(a.thread_id, lacking)) if (lacking := cache.lacking(keys)) else {}
    cache.add(fetched)
    return Pair(ours.loaded(), theirs.loaded(), equal, different, sum(map(len, fetched.values())))


def load_header(context: SaverContext, cache: SegmentCache, where: ParsedConfig) -> Program[CheckpointLoader | None]:
    """Return a checkpoint, or the newest, of which the header was read and no value. None where there is none."""
    rows = yield from context.store.chain(where.thread_id, where.ns, where.checkpoint_id, 1)
    if not rows:
        if where.checkpoint_id is not None:
            yield from prove_absent(context, where)
        return None
    row = proven_row(where, Found(NO_EPOCH, rows[0], (), {}, rows[0].outline.rank))
    loader = CheckpointLoader(row, (), context.encoding_cache)
    yield from fill(cache, context.store, where.thread_id, loader.missing_header_keys())
    loader.open_header(cache)
    return loader


def same_value(one: Stored, other: Stored) -> bool:
    """Whether two stored values are the same, whatever their manifests."""
    return content_name(one) == content_name(other)


def content_name(value: Stored) -> tuple[str, bytes]:
    """Return what all stored forms of one value have in common: its tag, and its digest or all of it."""
    return value.tag, value.digest or value.packed
