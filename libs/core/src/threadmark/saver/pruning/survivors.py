"""What survives a removal: whatever the survivors are read from is spared, too.

Two things are read from elsewhere. A delta channel lies in the pending writes of the ancestors, back to the last one
that holds its value. The packets that a step of LangGraph's formats before 4 sent lie in the parent's pending writes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from threadmark.errors import located
from threadmark.header import Header, plain_fields
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.caches.segment_cache import fill
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.delta import counted_channels, is_snapshot, may_be_delta
from threadmark.saver.proving.batches import is_pack, members_or_itself
from threadmark.saver.proving.checks import channel_location
from threadmark.saver.pruning.ancestry import Headers, Held, children_first
from threadmark.saver.pruning.calls import Calls, by_depth
from threadmark.store import Key, Outline, WriteRow, now
from threadmark.stored import Encoded, Stored

_BATCH = 256
_SENDS = "__pregel_tasks"
_FIRST_FORMAT_WITH_SENDS = 4

_Channels = frozenset[str]
_NONE: _Channels = frozenset()


class Namespace(NamedTuple):
    """What is chosen from: checkpoints of one namespace, newest first."""

    outlines: Sequence[Outline]
    is_over: bool
    """Whether they are of a call that no run comes back to."""


Choice = Callable[[Namespace], set[Key]]
"""Which checkpoints of a namespace are to go."""


class Survival(NamedTuple):
    """What is to become of a thread."""

    doomed: set[Key]
    needed: set[bytes]
    """The segments of the checkpoints that stay."""


class _Visited(NamedTuple):
    """A checkpoint that may be read from its ancestors, or that a descendant may be read from."""

    key: Key
    parent: Key | None
    lacking: _Channels
    """Its own channels that have no value and may be delta channels."""
    passed_on: _Channels
    """The channels that its descendants look for and that have no value here."""
    found: Mapping[str, Stored]
    """The values of channels that its descendants look for."""
    reads_sends: bool
    segments: frozenset[bytes]


def sparing_messages(choose: Choice) -> Choice:
    """Return the choice that never takes messages for old checkpoints: each is as new as it was."""
    return lambda namespace: set() if namespace.outlines[0].ns == MESSAGES_NS else choose(namespace)


def survival(
    context: SaverContext, thread_id: str, outlines: Sequence[Outline], writes: Iterable[WriteRow], choose: Choice
) -> Program[Survival]:
    """Choose what goes, and spare what the rest is read from.

    Enclosing namespaces come first, because what becomes of them decides which calls are over.
    """
    survey = _Survey(context, thread_id, outlines, writes)
    calls = Calls(outlines, now())
    for group in by_depth(outlines):
        for outlines_of_one in group:
            survey.doomed |= choose(Namespace(outlines_of_one, calls.over(outlines_of_one, survey.doomed)))
        yield from survey.spare([outline for outlines_of_one in group for outline in outlines_of_one])
    return Survival(survey.doomed, survey.needed)


class _Survey:
    """What is known of one thread."""

    def __init__(
        self, context: SaverContext, thread_id: str, outlines: Sequence[Outline], writes: Iterable[WriteRow]
    ) -> None:
        self._context = context
        self._thread_id = thread_id
        self._outlines = {outline.key: outline for outline in outlines}
        self._counted = counted_channels(outlines)
        self._written: dict[Key, set[str]] = {}
        self._unreadable: set[Key] = set()
        """The checkpoints for which anything may have been written."""
        for row in writes:
            rows = members_or_itself(thread_id, row)
            self._written.setdefault(row[:2], set()).update(each.channel for each in rows)
            if is_pack(rows[0]):
                self._unreadable.add(row[:2])
        self.doomed: set[Key] = set()
        self.needed: set[bytes] = set()

    def spare(self, outlines: Sequence[Outline]) -> Program[None]:
        """Take from the doomed of these namespaces what the others are read from."""
        visited = yield from self._visit(children_first(outlines))
        snapshots = yield from self._snapshots(visited)
        open_channels = self._open_channels(visited, snapshots)
        wanted: dict[Key, _Channels] = {}
        for each in visited:
            if each.key in self.doomed:
                continue
            self.needed |= each.segments
            # What a descendant is read from goes back to the nearest value, whatever that is.
            on = (wanted.get(each.key, _NONE) & each.passed_on) | (open_channels[each.key] & each.lacking)
            if each.parent is not None and (on or each.reads_sends):
                wanted[each.parent] = wanted.get(each.parent, _NONE) | on
                self.doomed.discard(each.parent)

    def _visit(self, parents: Mapping[Key, Key | None]) -> Program[list[_Visited]]:
        """Look at those that stay and at the ancestors that they may be read from, children before their parents."""
        headers = Headers(self._context, self._thread_id, parents)
        asked: dict[Key, _Channels] = {}
        visited: list[_Visited] = []
        for start, key in enumerate(order := list(parents)):
            if start % _BATCH == 0:
                batch = order[start : start + _BATCH]
                yield from headers.read([each for each in batch if each not in self.doomed or each in asked])
            if key in self.doomed and key not in asked:
                continue
            held = headers.take(key) or (yield from headers.read_on(key))
            if held is None:
                continue  # a dry run locks nothing, so a row may have gone since it was listed
            sought = asked.pop(key, None)
            looked_at = self._look_at(key, parents[key], held, sought or _NONE)
            on = looked_at.lacking | looked_at.passed_on
            if looked_at.parent is not None and (on or looked_at.reads_sends):
                asked[looked_at.parent] = asked.get(looked_at.parent, _NONE) | on
            if sought is not None or on or looked_at.reads_sends:
                visited.append(looked_at)
            else:
                self.needed |= looked_at.segments
        return visited

    def _look_at(self, key: Key, parent: Key | None, held: Held, sought: _Channels) -> _Visited:
        header, segments = held
        found = {channel: header.values[channel] for channel in sought if channel in header.values}
        if parent is None:
            return _Visited(key, None, _NONE, _NONE, found, reads_sends=False, segments=segments)
        lacking = frozenset(filter(may_be_delta, header.versions.keys() - header.values.keys()))
        sent = bool(self._written_among(frozenset({_SENDS}), parent)) and sends_lie_with_parent(header)
        return _Visited(key, parent, lacking, sought - found.keys(), found, reads_sends=sent, segments=segments)

    def _snapshots(self, visited: Iterable[_Visited]) -> Program[dict[Key, set[str]]]:
        """Which of the values that were found are snapshots of delta channels."""
        undecided = [
            (each.key, channel, value)
            for each in visited
            for channel, value in each.found.items()
            if channel not in self._counted
        ]
        snapshots: dict[Key, set[str]] = {}
        for start in range(0, len(undecided), _BATCH):
            batch = undecided[start : start + _BATCH]
            segment_cache = self._context.segment_cache()
            keys = {segment for *_, value in batch for segment in value.segment_keys()}
            yield from fill(segment_cache, self._context.store, self._thread_id, keys)
            for key, channel, value in batch:
                with located(channel_location(self._outlines[key], channel)):
                    data = segment_cache.data(value, channel)
                if is_snapshot(self._context.serde, Encoded(value.tag, data)):
                    snapshots.setdefault(key, set()).add(channel)
        return snapshots

    def _open_channels(self, visited: Sequence[_Visited], snapshots: Mapping[Key, set[str]]) -> dict[Key, _Channels]:
        """The channels of each checkpoint whose value lies in its ancestors. Another channel without a value is empty.

        The one was written since its last value, or that is a snapshot, or some step of the thread counted it.
        """
        found: dict[Key, _Channels] = {}
        for each in reversed(visited):
            above: set[str] = set(self._counted)
            sought = each.lacking | each.passed_on
            if each.parent is not None:
                above |= self._written_among(sought, each.parent) | snapshots.get(each.parent, set())
                above |= found.get(each.parent, _NONE)
            found[each.key] = sought & above
        return found

    def _written_among(self, channels: _Channels, key: Key) -> _Channels:
        """Which of these channels the tasks of a checkpoint wrote, or may have written, to."""
        return channels if key in self._unreadable else channels & self._written.get(key, set())


def sends_lie_with_parent(header: Header) -> bool:
    """Whether the packets that lead to the next step, if there are any, are among the parent's pending writes."""
    form = plain_fields(header).get("v")
    return isinstance(form, int) and form < _FIRST_FORMAT_WITH_SENDS and _SENDS not in header.values
