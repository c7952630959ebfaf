"""Delta channels: what the ancestors of a checkpoint contributed to a channel that is stored as its changes."""

from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any

from threadmark.config import Place, place
from threadmark.errors import located
from threadmark.model import Config, DeltaChannelHistory
from threadmark.program import Operation, Program, Transaction
from threadmark.saver.arguments import given_channels
from threadmark.saver.checks import channel_place, write_place
from threadmark.saver.completeness import prove_absent
from threadmark.saver.decoding import decode_channel, decode_write
from threadmark.saver.kit import Kit
from threadmark.saver.opening import Opening, Write, missing_headers, proven_writes
from threadmark.saver.shelf import Shelf, fill
from threadmark.store import Key, Outline, WriteRow
from threadmark.stored import Stored

_FIRST_REACH = 64


class _Walk:
    """The way from a checkpoint to the root: for each channel, the visited ancestors and the seed where it ends."""

    def __init__(self, channels: Sequence[str]) -> None:
        self.remaining = set(channels)
        self.visited: dict[str, list[Key]] = {channel: [] for channel in channels}
        self.seeds: dict[str, tuple[Stored, Outline]] = {}
        self._seen: set[Key] = set()

    def visit(self, opening: Opening) -> bool:
        """Take one ancestor in; False where the walk is over (everything found, or a checkpoint seen before)."""
        outline = opening.outline
        key = (outline.ns, outline.id)
        if key in self._seen:
            return False
        self._seen.add(key)
        for channel in tuple(self.remaining):
            # A value stands before the writes of its own checkpoint, so those count even where the walk ends.
            self.visited[channel].append(key)
            if channel in opening.header.values:
                self.seeds[channel] = (opening.header.values[channel], outline)
                self.remaining.discard(channel)
        return bool(self.remaining)


def get_delta_channel_history(
    kit: Kit, config: Config, channels: Sequence[str]
) -> Operation[dict[str, DeltaChannelHistory]]:
    """For each channel the writes of the ancestors since its last stored value, oldest first, and that value."""
    where = place(config)
    channels = given_channels(channels)
    if not channels:
        return {}
    walk, writes, data = yield Transaction(partial(_history, kit, where, channels), writes=False)
    result: dict[str, DeltaChannelHistory] = {}
    for channel in channels:
        visited = reversed(walk.visited[channel])
        entry = DeltaChannelHistory(
            writes=[
                decode_write(where.thread_id, write, data, kit.serde)
                for key in visited
                for write in writes.get(key, ())
                if write.row.channel == channel
            ]
        )
        if channel in walk.seeds:
            stored, outline = walk.seeds[channel]
            entry["seed"] = decode_channel(outline, channel, stored, data, kit.serde)
        result[channel] = entry
    return result


def _history(
    kit: Kit, where: Place, channels: Sequence[str]
) -> Program[tuple[_Walk, dict[Key, list[Write]], dict[bytes, bytes]]]:
    """One transaction: the chain in growing reaches, then the writes it passed and every value needed."""
    thread_id, ns, start = where
    walk = _Walk(channels)
    reach, skip, going = _FIRST_REACH, 1, True
    while going:
        rows = yield from kit.store.chain(thread_id, ns, start, reach)
        openings = [Opening(row, (), kit.recall) for row in rows[skip:]]
        shelf = kit.shelf()
        yield from fill(shelf, kit.store, thread_id, missing_headers(openings))
        for opening in openings:
            opening.open_header(shelf)
            if not (going := walk.visit(opening)):
                break
        start = rows[-1].outline.parent if rows else start
        if going and start is not None and len(rows) < reach:  # the way ends at a checkpoint that is not there
            yield from prove_absent(kit, Place(thread_id, ns, start))
        going = going and start is not None and len(rows) == reach
        reach, skip = reach * 8, 0
    keys = sorted({key for visited in walk.visited.values() for key in visited})
    rows_of_writes = (yield from kit.store.writes(thread_id, keys)) if keys else []
    writes = _by_checkpoint(thread_id, rows_of_writes, walk.visited.keys())
    values = [stored for stored, _ in walk.seeds.values()]
    values += [write.value for group in writes.values() for write in group]
    shelf = kit.shelf()
    yield from fill(shelf, kit.store, thread_id, (key for value in values for key in value.segment_keys()))
    return walk, writes, _data(thread_id, walk, writes, shelf)


def _data(thread_id: str, walk: _Walk, writes: Mapping[Key, Sequence[Write]], shelf: Shelf) -> dict[bytes, bytes]:
    """The bytes of the seeds and of the writes, by digest; errors name the place."""
    owned = [(stored, channel_place(outline, channel)) for channel, (stored, outline) in walk.seeds.items()]
    owned += [(write.value, write_place(thread_id, write.row)) for group in writes.values() for write in group]
    data: dict[bytes, bytes] = {}
    for value, place_of_value in owned:
        with located(place_of_value):
            data[value.digest] = shelf.data(value)
    return data


def _by_checkpoint(thread_id: str, rows: Sequence[WriteRow], channels: Container[str]) -> dict[Key, list[Write]]:
    groups: dict[Key, list[Write]] = {}
    for write in proven_writes(thread_id, rows):
        if write.row.channel in channels:
            groups.setdefault((write.row.ns, write.row.checkpoint_id), []).append(write)
    return groups


def open_deltas(metadata: Mapping[str, Any], header_versions: Mapping[str, Any], values: Mapping[str, Any]) -> set[str]:
    """The delta channels of a checkpoint whose value lies in its ancestors' writes.

    LangGraph counts, in metadata, the steps since each delta channel was last stored whole.
    """
    counters = metadata.get("counters_since_delta_snapshot")
    if not isinstance(counters, Mapping):
        return set()
    return {channel for channel in counters if channel in header_versions and channel not in values}
