"""The origin of the present value of a part. Ancestors with the same stored value are skipped."""

from collections.abc import Sequence
from typing import NamedTuple

from threadmark.config import ParsedConfig
from threadmark.errors import TransientStoreError
from threadmark.model import Config
from threadmark.program import Operation, Program, read
from threadmark.saver.kit import (
    CheckpointLoader,
    LoadedCheckpoint,
    Path,
    SaverContext,
    decode_part,
    expect_plain_once,
    fill,
    load_value,
    missing_headers,
    parse_path,
    parse_place,
    prove_absent,
)
from threadmark.serde.exact import exactly_equal
from threadmark.serde.steps import NOTHING, Index, Slice, Step, items_of
from threadmark.store.contract import Outline
from threadmark.travel.diffing import content_name
from threadmark.travel.history import entries_of
from threadmark.travel.model import Blame

_FIRST_REACH, _LONGEST_REACH = 8, 512
"""How many ancestors are read at once: first few, because the wanted checkpoint is mostly new."""

_ROOM = 32 * 1024 * 1024
"""How many bytes of values are read at once, unless one alone has more."""

_ATTEMPTS = 64


class _First(NamedTuple):
    """The present value of a part, and the checkpoint that first held it."""

    path: Path
    value: object
    first: Outline


class _Ancestors(NamedTuple):
    """Some checkpoints, newest first, and the one with which the next begin. None if these are the last."""

    loaded: Sequence[LoadedCheckpoint]
    next: str | None


def blame(context: SaverContext, thread: Config | str, path: str) -> Operation[Blame | None]:
    """Return which checkpoint first held the present value at a path."""
    context, where, parsed = context.without_classes(), parse_place(thread), parse_path(path)
    for _ in range(_ATTEMPTS):
        found = yield from _first(context, where, parsed)
        if found is None:
            return None
        entries = yield from read(entries_of, context, where.thread_id, [found.first])
        if entries:  # else it was removed since
            return Blame(str(found.path), found.value, *entries)
    raise TransientStoreError(f"{where}: checkpoints were removed {_ATTEMPTS} times while they were read; try again")


def _first(context: SaverContext, where: ParsedConfig, parsed: Path) -> Operation[_First | None]:
    """Return the first checkpoint that held the present value, of those that are there now."""
    loaded = yield from read(load_value, context, where, parsed.channel)
    if loaded is None:
        yield from expect_plain_once(context)
        return None
    target = _without_negative(context, loaded, parsed)
    present = _part(context, loaded, target)
    if present is NOTHING:
        return None
    known = {content_name(loaded.header.values[target.channel])}
    found, passed = _First(target, present, loaded.outline), {loaded.outline.id}
    start, reach = loaded.outline.parent, _FIRST_REACH
    while start is not None:
        there = where._replace(checkpoint_id=start)
        ancestors = yield from read(_ancestors, context, there, target.channel, frozenset(known), reach)
        for ancestor in ancestors.loaded:
            if ancestor.outline.id in passed:  # it was put again, and its parent follows it
                return found
            passed.add(ancestor.outline.id)
            value = ancestor.header.values.get(target.channel)
            if value is None or not (
                content_name(value) in known or exactly_equal(_part(context, ancestor, target), present)
            ):
                return found
            known.add(content_name(value))
            found = found._replace(first=ancestor.outline)
        start, reach = ancestors.next, min(reach * 8, _LONGEST_REACH)
    return found


def _ancestors(
    context: SaverContext, start: ParsedConfig, channel: str, known: frozenset[tuple[str, bytes]], reach: int
) -> Program[_Ancestors]:
    """Read a checkpoint and its ancestors, and those of the channel's values that are not known, as there is room."""
    rows = yield from context.store.chain(*start[:3], reach)
    end = rows[-1].outline.parent if rows else start.checkpoint_id
    if end is not None and len(rows) < reach:  # it was pruned, unless it is lost
        yield from prove_absent(context, start._replace(checkpoint_id=end))
        end = None
    loaders = [CheckpointLoader(row, (), context.encoding_cache) for row in rows]
    cache = context.segment_cache()
    yield from fill(cache, context.store, start.thread_id, missing_headers(loaders))
    for loader in loaders:
        loader.open_header(cache)
    taken = _as_there_is_room(loaders, channel, known)
    unknown = [loader for loader in taken if not _is_known(loader, channel, known)]
    keys = {key for loader in unknown for key in loader.value_keys(channel.__eq__)}
    yield from fill(cache, context.store, start.thread_id, keys)
    end = end if len(taken) == len(loaders) else loaders[len(taken)].outline.id
    return _Ancestors([loader.loaded() for loader in taken], end)


def _as_there_is_room(
    loaders: Sequence[CheckpointLoader], channel: str, known: frozenset[tuple[str, bytes]]
) -> Sequence[CheckpointLoader]:
    room = _ROOM
    for number, loader in enumerate(loaders):
        if not _is_known(loader, channel, known):
            room -= loader.header.values[channel].size()
            if room < 0 and number:
                return loaders[:number]
    return loaders


def _is_known(loader: CheckpointLoader, channel: str, known: frozenset[tuple[str, bytes]]) -> bool:
    value = loader.header.values.get(channel)
    return value is None or content_name(value) in known


def _part(context: SaverContext, loaded: LoadedCheckpoint, path: Path) -> object:
    value = loaded.header.values.get(path.channel)
    return NOTHING if value is None else decode_part(context, loaded.outline, path, value, loaded.data)


def _without_negative(context: SaverContext, loaded: LoadedCheckpoint, path: Path) -> Path:
    """Return the path with places that count from the front: the last item of today is another one than yesterday's."""
    steps: list[Step] = []
    for step in path.steps:
        counts = isinstance(step, Index) and step.number < 0
        if counts or isinstance(step, Slice):
            part = _part(context, loaded, Path(path.channel, tuple(steps)))
            items = part if isinstance(part, (str, bytes, bytearray)) else items_of(part)
            length = 0 if items is None else len(items)
            steps.append(_counted(step, length))
        else:
            steps.append(step)
    return Path(path.channel, tuple(steps))


def _counted(step: Step, length: int) -> Step:
    if isinstance(step, Index):
        return Index(step.number + length) if step.number + length >= 0 else step
    if isinstance(step, Slice):
        return Slice(*slice(step.start, step.stop).indices(length)[:2])
    return step
