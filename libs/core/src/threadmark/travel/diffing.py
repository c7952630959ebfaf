"""The differences between two checkpoints, and between two values, place by place.

Values that are the same by the headers of the checkpoints are not read. Dictionaries are compared by key, objects by
field, and lists by matching items. The work is little more than linear in the size of the values, see `aligning`. Types
count: True is not 1.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from threadmark.config import ParsedConfig, parse_config
from threadmark.errors import CheckpointNotFoundError, ConfigError
from threadmark.model import Config
from threadmark.program import Operation, Program, read
from threadmark.saver.kit import (
    ANCESTORS_ASKED,
    NO_EPOCH,
    CheckpointLoader,
    LoadedCheckpoint,
    Path,
    SaverContext,
    SegmentCache,
    Stored,
    counted_channels,
    decode_part,
    expect_plain_once,
    fill,
    key_text,
    may_be_delta,
    name_text,
    parse_path,
    prove_absent,
    proven_row,
)
from threadmark.serde.exact import exactly_equal, fingerprint
from threadmark.serde.object_view import CONTENT, ObjectView
from threadmark.serde.steps import NOTHING
from threadmark.store.contract import Found
from threadmark.travel.aligning import aligned, text_edits
from threadmark.travel.model import ChangeKind, Diff, ValueChange

_COMPARED_BY_VALUE = frozenset({str, int, bool, bytes, type(None)})
"""The types of keys that are the same if they are equal. In a tuple True equals 1, and NaN equals nothing."""

_DEEPEST = 100
"""Deeper levels are compared as a whole."""


class Place(NamedTuple):
    """A place in both states: by its path in the old one, and in the new one."""

    old: str
    new: str

    def at(self, step: str, new: str | None = None) -> "Place":
        """The place that a step leads to, which may be another one in the new state."""
        return Place(self.old + step, self.new + (step if new is None else new))


class Changes:
    """The changes that were found, up to a limit, and how many there are beyond it."""

    def __init__(self, limit: int, *, with_edits: bool = True) -> None:
        self.found: list[ValueChange] = []
        self.left_out = 0
        self._limit = limit
        self._with_edits = with_edits

    def __len__(self) -> int:
        return len(self.found) + self.left_out

    def compare(self, place: Place, before: Any, after: Any, depth: int = 0) -> None:
        """Find the changes of a value; `NOTHING` stands for one that is not there."""
        if after is NOTHING:
            if before is not NOTHING:
                self._add(place.old, "removed", before, None)
        elif before is NOTHING:
            self._add(place.new, "added", None, after)
        elif type(before) is not type(after) or depth > _DEEPEST:
            self._compare_whole(place, before, after)
        elif type(before) is ObjectView:
            self._compare_objects(place, before, after, depth + 1)
        elif isinstance(before, dict):
            self._compare_dictionaries(place, before, after, depth + 1)
        elif isinstance(before, (list, tuple, deque)) and _maxlen(before) == _maxlen(after):
            self._compare_items(place, list(before), list(after), depth + 1)
        else:
            self._compare_whole(place, before, after)

    def _compare_whole(self, place: Place, before: Any, after: Any) -> None:
        if not exactly_equal(before, after):
            self._add(place.new, "changed", before, after)

    def _add(self, path: str, kind: ChangeKind, before: Any, after: Any) -> None:
        if len(self.found) >= self._limit:
            self.left_out += 1
            return
        are_texts = self._with_edits and type(before) is str and type(after) is str
        edits = text_edits(before, after) if are_texts else ()
        self.found.append(ValueChange(path, kind, before, after, edits))

    def _compare_objects(self, place: Place, before: ObjectView, after: ObjectView, depth: int) -> None:
        if before.name != after.name or not self._are_reached(before.fields, after.fields):
            self._compare_whole(place, before, after)
            return
        for name in _joined(before.fields, after.fields):
            step = "" if name == CONTENT else name_text(name) or ""
            pair = before.fields.get(name, NOTHING), after.fields.get(name, NOTHING)
            self.compare(place.at(step), *pair, depth)

    def _are_reached(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Whether a path leads to all differences: it does to named fields, and into an object's content."""
        for name in _joined(before, after):
            pair = before.get(name, NOTHING), after.get(name, NOTHING)
            if name == CONTENT and type(pair[0]) is type(pair[1]) and isinstance(pair[0], (dict, list, tuple)):
                continue
            if name_text(name) is None and (NOTHING in pair or not exactly_equal(*pair)):
                return False
        return True

    def _compare_dictionaries(self, place: Place, before: dict[Any, Any], after: dict[Any, Any], depth: int) -> None:
        if getattr(before, "default_factory", None) is not getattr(after, "default_factory", None):
            self._compare_whole(place, before, after)
            return
        ours, theirs = ({_key_of(key): (key, value) for key, value in each.items()} for each in (before, after))
        unreached: tuple[dict[Any, Any], dict[Any, Any]] = {}, {}
        for kind, name in _joined(ours, theirs):
            old, new = ours.get((kind, name)), theirs.get((kind, name))
            old_value, new_value = (entry[1] if entry else NOTHING for entry in (old, new))
            if kind is str:
                self.compare(place.at(key_text(name)), old_value, new_value, depth)
            elif old is None or new is None or _differ(old_value, new_value, depth):
                for found, entry in zip(unreached, (old, new), strict=True):
                    found.update([entry] if entry else [])
        if any(unreached):  # no path leads to a value with such a key
            self._add(place.new, "changed", *unreached)

    def _compare_items(self, place: Place, before: list[Any], after: list[Any], depth: int) -> None:
        if len(before) == len(after) == 1:
            self.compare(place.at("[0]"), before[0], after[0], depth)
            return
        for here, there in _pairs(before, after):
            # A part that only one of them has gets the steps of that one.
            old, new = (f"[{there if index is None else index}]" for index, there in ((here, there), (there, here)))
            pair = NOTHING if here is None else before[here], NOTHING if there is None else after[there]
            self.compare(place.at(old, new), *pair, depth)


def _differ(before: Any, after: Any, depth: int) -> bool:
    """Whether there is any change to tell: the order of keys is none."""
    changes = Changes(0, with_edits=False)
    changes.compare(Place("", ""), before, after, depth)
    return len(changes) > 0


def _key_of(key: Any) -> tuple[type, Hashable]:
    """The identity of a key in two dictionaries: types count at every depth."""
    kind = type(key)
    return kind, key if kind in _COMPARED_BY_VALUE else _fingerprint(key)


def _maxlen(items: Any) -> int | None:
    return items.maxlen if isinstance(items, deque) else None


def _joined(ours: Mapping[Any, Any], theirs: Mapping[Any, Any]) -> list[Any]:
    """The keys of both, in the order of the new one; those that are gone come first."""
    return [*(key for key in ours if key not in theirs), *theirs]


def _pairs(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the places of items that belong together and are not the same; None stands for no place."""
    ours, theirs = [*map(_fingerprint, before)], [*map(_fingerprint, after)]
    if ours == theirs:
        return
    keys = [
        [_key(item, print_) for item, print_ in zip(*each, strict=True)] for each in ((before, ours), (after, theirs))
    ]
    for start, stop, other_start, other_stop, same in aligned(*keys):
        positions, others = range(start, stop), range(other_start, other_stop)
        if same:
            yield from ((at, there) for at, there in zip(positions, others, strict=True) if ours[at] != theirs[there])
        else:
            yield from _unequal(before, after, positions, others)


def _unequal(
    before: Sequence[Any], after: Sequence[Any], positions: range, others: range
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the changes of items in whose place stand others: one by one, unless their ids say that they are others."""
    for here, there in zip_longest(positions, others):
        if here is None or there is None or (_id(before[here]) is None and _id(after[there]) is None):
            yield here, there
        else:
            yield here, None
            yield None, there


def _fingerprint(item: Any) -> Hashable:
    found = fingerprint(item)
    return ("object", id(item)) if found is None else found


def _key(item: Any, print_: Hashable) -> Hashable:
    """The identity by which an item of the other list is found: its id, or else all of it."""
    found = _id(item)
    return print_ if found is None else ("id", found)


def _id(item: Any) -> str | None:
    fields = item.fields if type(item) is ObjectView else item
    found = fields.get("id") if isinstance(fields, dict) else None
    return found if type(found) is str and found else None


class Pair(NamedTuple):
    """Two checkpoints with the bytes of the values in which they differ."""

    a: LoadedCheckpoint
    b: LoadedCheckpoint
    equal: list[str]
    different: list[str]
    bytes_read: int
    deltas: tuple[str, ...]


def diff(context: SaverContext, a: Config | str, b: Config | str, path: str | None, limit: int) -> Operation[Diff]:
    """Return the differences between two checkpoints of a thread."""
    ours, theirs = parse_config(a), parse_config(b)
    if ours.thread_id != theirs.thread_id:
        raise ConfigError(
            f"checkpoints of one thread can be compared, and these are of {ours.thread_id!r} and {theirs.thread_id!r}"
        )
    parsed = None if path is None else parse_path(path)
    pair = yield from read(_load, context, ours, theirs, parsed)
    if isinstance(pair, ParsedConfig):
        yield from expect_plain_once(context)
        raise CheckpointNotFoundError(f"{pair}: there is no checkpoint; it was never stored, or it was removed")
    shows = context.without_classes()
    changes, equal = Changes(limit), pair.equal
    for channel in pair.different:
        count = len(changes)
        steps = parsed or Path(channel, ())
        text = str(steps)
        changes.compare(Place(text, text), _part(shows, pair.a, steps), _part(shows, pair.b, steps))
        if len(changes) == count:  # its bytes differ in the order of keys, or in parts that are left out
            equal.append(channel)
    return Diff(changes.found, sorted(equal), changes.left_out, pair.bytes_read, pair.deltas)


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
    deltas = yield from _deltas(context, a, b, ours, theirs)
    different = [channel for channel in channels if channel not in equal and channel not in deltas]
    keys = ours.value_keys(different.__contains__) | theirs.value_keys(different.__contains__)
    fetched = (yield from context.store.segments(a.thread_id, lacking)) if (lacking := cache.lacking(keys)) else {}
    cache.add(fetched)
    versions, other_versions = ours.header.versions, theirs.header.versions
    written = tuple(
        channel
        for channel in sorted(deltas)
        if versions.get(channel) != other_versions.get(channel) and (path is None or path.channel == channel)
    )
    return Pair(ours.loaded(), theirs.loaded(), equal, different, sum(map(len, fetched.values())), written)


def _deltas(
    context: SaverContext, a: ParsedConfig, b: ParsedConfig, ours: CheckpointLoader, theirs: CheckpointLoader
) -> Program[set[str]]:
    """Return the delta channels that have no value in one of two checkpoints."""
    lacking = {
        channel
        for header in (ours.header, theirs.header)
        for channel in header.versions.keys() - header.values.keys()
        if may_be_delta(channel)
    }
    counted = counted_channels([ours.outline, theirs.outline])
    if lacking - counted:  # a state that was changed by hand counts nothing in some releases of LangGraph
        for where, loader in ((a, ours), (b, theirs)):
            rows = yield from context.store.chain(where.thread_id, where.ns, loader.outline.id, ANCESTORS_ASKED)
            counted |= counted_channels(row.outline for row in rows)
    return lacking & counted


def load_header(context: SaverContext, cache: SegmentCache, where: ParsedConfig) -> Program[CheckpointLoader | None]:
    """Return a checkpoint, or the newest, with its header and no value. None if there is none."""
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
    """Return whether two stored values are the same, even if their manifests differ."""
    return content_name(one) == content_name(other)


def content_name(value: Stored) -> tuple[str, bytes]:
    """Return the common name of all stored forms of a value: its tag, and its digest or all of it."""
    return value.tag, value.digest or value.packed
