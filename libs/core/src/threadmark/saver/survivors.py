"""Checkpoints that a removal must spare: those that others are read from, and calls of subgraphs that go on.

Two things are read from other checkpoints. A delta channel lies in the pending writes of the ancestors, back to the
last one that holds its value. The packets that a step of LangGraph's formats before 4 sent lie in the parent's pending
writes.

LangGraph runs a subgraph for one task of one checkpoint, and the call's checkpoints are in a separate namespace,
`outer|node:task` (`outer|node:task|1` for a second call by the same task). Only a run that goes on from that one
checkpoint comes back to it. A subgraph with its own memory has a namespace without a task, which never ends.

An engine stores in the background, so a task's writes may arrive after the step is over and its checkpoint has been
removed. No reader needs such late writes, and they would pile up. Writes may also arrive before their checkpoint, which
must not be taken for late ones.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from threadmark.errors import located
from threadmark.format.header import Header, plain_fields
from threadmark.format.stored import Encoded, Stored
from threadmark.ids import time_of_id
from threadmark.names import MESSAGES_NS
from threadmark.program import Program
from threadmark.saver.batches import is_pack, members_or_itself
from threadmark.saver.caches import fill
from threadmark.saver.context import SaverContext
from threadmark.saver.decoding import decode_metadata
from threadmark.saver.loading import CheckpointLoader, missing_headers
from threadmark.saver.operations.delta import counted_channels, is_snapshot, may_be_delta
from threadmark.saver.proving import channel_location
from threadmark.store.contract import Key, Outline, WriteRow, now

_FIRST_REACH, _FURTHEST_REACH = 4, 256


class Held(NamedTuple):
    """The content of a checkpoint's row."""

    header: Header
    segments: frozenset[bytes]
    """Those of the header and of all values."""


def children_first(outlines: Sequence[Outline]) -> dict[Key, Key | None]:
    """Each checkpoint with its parent, None if that is not among them; every child stands before its parent.

    Ranks mostly say so, but not if a parent came after its child. One link of a circle is left out.
    """
    parents = {outline.key: (outline.ns, outline.parent or "") for outline in outlines}
    order: dict[Key, Key | None] = {}
    for key in parents:
        way: dict[Key, None] = {}
        ancestor = key
        while ancestor in parents and ancestor not in order and ancestor not in way:
            way[ancestor] = None
            ancestor = parents[ancestor]
        for each in reversed(way):
            order[each] = parents[each] if parents[each] in order else None
    return dict(reversed(order.items()))


class Headers:
    """The headers of one thread's checkpoints, each read once and given away."""

    def __init__(self, context: SaverContext, thread_id: str, parents: Mapping[Key, Key | None]) -> None:
        self._context = context
        self._thread_id = thread_id
        self._parents = parents
        self._read: dict[Key, Held] = {}
        self._reach: dict[Key, int] = {}

    def take(self, key: Key) -> Held | None:
        """The content that was read of a checkpoint."""
        return self._read.pop(key, None)

    def read(self, keys: Iterable[Key]) -> Program[None]:
        """Read these, as far as they are there."""
        lacking = [key for key in keys if key not in self._read]
        if not lacking:
            return
        rows = yield from self._context.store.rows(self._thread_id, lacking)
        loaders = [CheckpointLoader(row, (), self._context.encoding_cache) for row in rows]
        segment_cache = self._context.segment_cache()
        yield from fill(segment_cache, self._context.store, self._thread_id, missing_headers(loaders))
        for loader in loaders:
            loader.open_header(segment_cache)
            segments = {key for value in loader.header.values.values() for key in value.segment_keys()}
            self._read[loader.outline.key] = Held(loader.header, frozenset(segments.union(loader.header_keys())))

    def read_on(self, key: Key) -> Program[Held | None]:
        """Read a checkpoint and its next ancestors, more of them each time. Returns the checkpoint's content."""
        reach = self._reach.pop(key, _FIRST_REACH)
        way: list[Key] = []
        ancestor: Key | None = key
        while ancestor is not None and len(way) < reach:
            way.append(ancestor)
            ancestor = self._parents[ancestor]
        if ancestor is not None:
            self._reach[ancestor] = min(4 * reach, _FURTHEST_REACH)
        yield from self.read(way)
        return self.take(key)


_SETTLED = 3600 * 1_000_000
"""Microseconds after which a checkpoint is not to come any more: an engine stores it as soon as it has made its id."""


def late_writes(outlines: Sequence[Outline], writes: Iterable[WriteRow], now: int) -> set[Key]:
    """Return the missing checkpoints that such writes of a thread belong to. `outlines` are the newest first."""
    there = {outline.key for outline in outlines}
    newest: dict[str, str] = {}
    for outline in outlines:
        newest.setdefault(outline.ns, outline.id)
    missing = {(row.ns, row.checkpoint_id) for row in writes} - there
    return {(ns, missed) for ns, missed in missing if missed < _newest(newest, ns) and _is_settled(missed, now)}


def _newest(newest: dict[str, str], ns: str) -> str:
    """The newest checkpoint of a namespace, or if a call has none, of the nearest one around it that has."""
    return next((newest[each] for each in (ns, *enclosing_namespaces(ns)) if each in newest), "")


def _is_settled(checkpoint_id: str, now: int) -> bool:
    made = time_of_id(checkpoint_id)
    return made is not None and made < now - _SETTLED


_BATCH = 256
_SENDS = "__pregel_tasks"
_FIRST_FORMAT_WITH_SENDS = 4

_Channels = frozenset[str]
_NONE: _Channels = frozenset()


class Namespace(NamedTuple):
    """The candidates: checkpoints of one namespace, newest first."""

    outlines: Sequence[Outline]
    is_over: bool
    """Whether they are of a call that no run comes back to."""


Choice = Callable[[Namespace], set[Key]]
"""Which checkpoints of a namespace are to go."""


class Survival(NamedTuple):
    """The decision about a thread."""

    doomed: set[Key]
    needed: set[bytes]
    """The segments of the checkpoints that stay."""
    kept_for_deltas: int
    """How many were chosen to go, and stay because delta channels of others are read from them."""


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
    """Choose the checkpoints to remove, and spare those that the rest is read from.

    Enclosing namespaces come first, because their fate decides which calls are over.
    """
    survey = _Survey(context, thread_id, outlines, writes)
    calls = Calls(outlines, now())
    for group in by_depth(outlines):
        for outlines_of_one in group:
            survey.doomed |= choose(Namespace(outlines_of_one, calls.over(outlines_of_one, survey.doomed)))
        yield from survey.spare([outline for outlines_of_one in group for outline in outlines_of_one])
    return Survival(survey.doomed, survey.needed, survey.kept_for_deltas)


class _Survey:
    """The known facts about one thread."""

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
        self.kept_for_deltas = 0

    def spare(self, outlines: Sequence[Outline]) -> Program[None]:
        """Spare the doomed of these namespaces that the others are read from."""
        visited = yield from self._visit(children_first(outlines))
        snapshots = yield from self._snapshots(visited)
        open_channels = self._open_channels(visited, snapshots)
        demanded: dict[Key, _Channels] = {}
        for each in visited:
            if each.key in self.doomed:
                continue
            self.needed |= each.segments
            # A descendant's sources go back to the nearest value, whatever that is.
            on = (demanded.get(each.key, _NONE) & each.passed_on) | (open_channels[each.key] & each.lacking)
            if each.parent is not None and (on or each.reads_sends):
                demanded[each.parent] = demanded.get(each.parent, _NONE) | on
                self.kept_for_deltas += bool(on) and each.parent in self.doomed
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


_SEPARATOR, _TASK = "|", ":"

_SETTLED = 24 * 3600 * 1_000_000
"""Microseconds after which a checkpoint that a call was made from, and that is not there, will not come any more."""


def by_depth(outlines: Sequence[Outline]) -> list[list[list[Outline]]]:
    """The checkpoints by namespace, and the namespaces in groups: those that enclose others come in an earlier one."""
    namespaces: dict[str, list[Outline]] = {}
    for outline in outlines:
        namespaces.setdefault(outline.ns, []).append(outline)
    groups: dict[int, list[list[Outline]]] = {}
    for ns, namespace in namespaces.items():
        groups.setdefault(len(_parts(ns)), []).append(namespace)
    return [groups[depth] for depth in sorted(groups)]


class Calls:
    """The known facts about a thread while its namespaces are gone through, the enclosing ones first."""

    def __init__(self, outlines: Sequence[Outline], now: int) -> None:
        self._there = {outline.key for outline in outlines}
        self._newest: dict[str, str] = {}
        for outline in outlines:
            self._newest.setdefault(outline.ns, outline.rank)
        self._settled = now - _SETTLED

    def over(self, namespace: Sequence[Outline], doomed: Collection[Key]) -> bool:
        """Whether these checkpoints, newest first, are of a call that no run can come back to."""
        newest = namespace[0]
        metadata = decode_metadata(newest) if _TASK in newest.ns else {}
        parents, callers = metadata.get("parents"), metadata.get("callers")
        # Effects name all checkpoints that have called them. Each that stays may do so again.
        for caller in callers if isinstance(callers, list) else ():
            if ("", caller) in self._there and ("", caller) not in doomed:
                return False
        for ns in enclosing_namespaces(newest.ns):
            caller = parents.get(ns) if isinstance(parents, Mapping) else None
            if not isinstance(caller, str):
                return False
            if (ns, caller) in self._there:
                return (ns, caller) in doomed
            if ns in self._newest:
                # Engines store in the background, or when the run ends, so a call may come before its checkpoint.
                # It will not if the namespace has gone on since, and the call was long ago.
                return caller < self._newest[ns] and newest.created_at < self._settled
        return False


def enclosing_namespaces(ns: str) -> Iterator[str]:
    """The namespace that a call was made from, then the one that this was called from, and on to the thread's own."""
    parts = _parts(ns)
    for number in range(len(parts) - 1, -1, -1):
        if _TASK in parts[number]:
            yield _SEPARATOR.join(parts[:number])


def _parts(ns: str) -> list[str]:
    return ns.split(_SEPARATOR) if ns else []
