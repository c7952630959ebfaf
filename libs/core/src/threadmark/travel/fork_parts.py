"""A new thread that begins with a checkpoint of another one: the rows that it gets, and how they are copied.

The checkpoint is copied with its ancestors, all under their ids. While only forks follow it, a run may be waiting
there. Then its pending writes are copied, too, with the calls of subgraphs that were made from it: the run goes on in
the new thread as it would in the old one. Otherwise they are left behind, so that the next step runs again.

A subgraph with its own memory has a namespace without a task. It is copied as it was when the checkpoint was made:
LangGraph looks no further either, when it goes back to a checkpoint.

Also here: the new checkpoint that a fork begins with. Its header shares the bytes of the old one, and only new values
are encoded.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from threadmark.errors import CheckpointNotFoundError, ConfigError, ConflictError, CorruptDataError, located
from threadmark.ids import Version, next_version
from threadmark.metadata import merged, run_id_in, run_id_of, to_json
from threadmark.model import MAPPING, Config
from threadmark.names import MESSAGES_NS, as_text
from threadmark.program import Program
from threadmark.saver.kit import (
    TRIGGERS,
    CheckpointLoader,
    Deduplicator,
    Draft,
    Header,
    LoadedCheckpoint,
    SaverContext,
    Source,
    Stored,
    all_outlines,
    checkpoint_location,
    checkpoint_row,
    decode_channel,
    decode_items,
    decode_metadata,
    encode,
    fill,
    first_expiry,
    header_location,
    header_tag,
    is_snapshot,
    may_be_delta,
    missing_headers,
    needed_segments,
    plain_fields,
    prove_complete,
    proven_writes,
    rebound_write,
    refusal_error,
    sends_lie_with_parent,
    sound_row,
    with_check,
    with_fields,
)
from threadmark.store.contract import Change, CheckpointRow, Key, Outline, WriteRow, now, rank_after
from threadmark.store.threads import thread_row
from threadmark.travel.history import steps_of
from threadmark.travel.model import Values

_OF_ANOTHER_STEP = {"run_id", "writes"}
"""Keys of metadata that name the run that made a checkpoint. No run made its fork."""


_SENDS = "__pregel_tasks"


class NewState(NamedTuple):
    """New values of channels, encoded."""

    encoded: Mapping[str, tuple[str, bytes]]

    @classmethod
    def from_values(cls, context: SaverContext, values: object) -> "NewState":
        """Check the values given to `fork`, and encode them."""
        if values is None:
            return cls({})
        if not isinstance(values, MAPPING):
            raise ConfigError(f"values must be a dictionary of channels, not {type(values).__name__}")
        plain: Values = {as_text(channel, "a channel's name"): value for channel, value in values.items()}
        if len(plain) != len(values):
            raise ConfigError("values has two channels of one name")
        return cls({channel: encode(context.serde, f'channel "{channel}"', value) for channel, value in plain.items()})


class Branch(NamedTuple):
    """A checkpoint that is not stored yet."""

    id: str
    parent: str | None
    header: Header
    stored: Stored
    """The header's stored form."""
    source: Source
    metadata: dict[str, Any]

    def row(self, thread_id: str, ns: str, newest: str) -> CheckpointRow:
        """Return its row, which comes after the newest rank."""
        outline = Outline(
            thread_id, ns, self.id, rank_after(newest, self.id), self.parent, now(), to_json(self.metadata)
        )
        return checkpoint_row(outline, self.stored.body, run_id_of(self.metadata))

    def needs(self) -> tuple[bytes, ...]:
        """The segments that reading it takes."""
        return needed_segments(self.header, self.stored)


def branch_of(
    context: SaverContext,
    new: str,
    config: Config,
    loaded: LoadedCheckpoint,
    state: NewState,
    deduplicator: Deduplicator,
) -> Branch:
    """Return a new checkpoint, of a new id, with the state of another one, and new values of some channels."""
    outline, header = loaded.outline, loaded.header
    if any(value.digest for value in header.values.values()):
        deduplicator.inherit()
    values = dict(header.values)
    versions = dict(header.versions)
    changes: dict[str, Any] = {"ts": datetime.now(UTC).isoformat()}
    if state.encoded:
        changes["updated_channels"] = None  # LangGraph would look at no other channels for the next tasks
        following: dict[type, Version] = {}  # one version for all that change, as a step of LangGraph gives
        for channel, encoded in state.encoded.items():
            values[channel] = deduplicator.store(encoded, deduplicator.sources(header.values.get(channel)))
            version = _next(header.versions, channel)
            versions[channel] = following.setdefault(type(version), version)
    with located(header_location(outline)):
        header = with_fields(Header(versions, values, header.plain, header.rest), changes)
    tag = _tag(context, loaded, header, state)
    stored, source = deduplicator.store_header(header.to_bytes(), loaded.source, tag)
    parent = outline.parent if _is_read_from_ancestors(loaded) else outline.id
    return Branch(new, parent, header, stored, source, _metadata(config, outline))


def _tag(context: SaverContext, loaded: LoadedCheckpoint, header: Header, state: NewState) -> str:
    """Return the tag of a header with new values, as a put chooses it: they may have other nodes run."""
    fields = plain_fields(header)
    if not state.encoded or not fields.get("versions_seen"):
        return Stored.from_bytes(loaded.body).tag
    changed = {header.values[channel].digest: data for channel, (_, data) in state.encoded.items()}
    data: Mapping[bytes, bytes] = {**loaded.data, **changed}
    values: dict[str, Any] = dict.fromkeys(header.values)
    for channel, value in header.values.items():
        if channel == _SENDS:  # it matters only whether there are packets
            items = decode_items(context, loaded.outline, channel, value, data)
            values[channel] = range(0 if items is None else len(items))
        elif channel in TRIGGERS:
            values[channel] = decode_channel(context, loaded.outline, channel, value, data)
    return header_tag(Draft("", fields, values, dict(header.versions), (), [], None, {}))


def expect_plain_channels(
    context: SaverContext, loaded: LoadedCheckpoint, state: NewState, known: Iterable[str], counted: Iterable[str]
) -> None:
    """Raise ConfigError for unknown channels, and for delta channels, whose values only the graph can make.

    `known` are the channels of the thread, `counted` those that are known to be delta channels.
    """
    known, counted = set(known), set(counted)
    where = checkpoint_location(loaded.outline)
    for channel in state.encoded:
        if channel not in known:
            raise ConfigError(
                f"{where} has no channel {channel!r}, and neither has the newest: its channels are "
                f"{', '.join(map(repr, sorted(known)))}. `graph.update_state` sets one that nothing was written to yet"
            )
        value = loaded.header.values.get(channel)
        is_delta = channel in counted if value is None else is_snapshot(context.serde, loaded.encoded(value))
        if is_delta:
            raise ConfigError(
                f"channel {channel!r} of {where} is a delta channel, which is stored as changes: "
                "fork without it, and set it with `graph.update_state`"
            )


def _is_read_from_ancestors(loaded: LoadedCheckpoint) -> bool:
    """Whether a part of the state may lie in the pending writes of ancestors: a delta channel, or packets.

    A child would read the writes of this checkpoint as well. Its sibling reads the same writes as it.
    """
    header = loaded.header
    lacking = header.versions.keys() - header.values.keys()
    return any(map(may_be_delta, lacking)) or sends_lie_with_parent(header)


def _next(versions: Mapping[str, Version], channel: str) -> Version:
    """A version greater than all of its kind, as LangGraph gives to a channel that changes."""
    example = versions.get(channel, next(iter(versions.values()), None))
    return next_version(max((each for each in versions.values() if type(each) is type(example)), default=None))


def _metadata(config: Config, outline: Outline) -> dict[str, Any]:
    metadata = {key: value for key, value in decode_metadata(outline).items() if key not in _OF_ANOTHER_STEP}
    step = steps_of(metadata).step
    made = {"source": "fork"} if step is None else {"source": "fork", "step": step + 1}
    return merged(config, {**metadata, **made})


_BATCH = 256
"""How many checkpoints are copied at once."""

_SEGMENTS = 64
"""How many segments are held at once. One may have megabytes."""

_TASK = ":"
"""Is in the namespace of a call by a task: `outer|node:task`."""


class ForkPlan(NamedTuple):
    """A thread to begin."""

    source: str
    target: str
    origin: LoadedCheckpoint
    """The checkpoint of the source that it begins with."""
    branch: Branch | None
    """A checkpoint that follows, if values are changed."""
    segments: Mapping[bytes, bytes]
    """Those that the branch adds."""


def found_thread(context: SaverContext, plan: ForkPlan, tried: list[int]) -> Program[bool]:
    """Begin a thread in one transaction. Returns False if the source has changed, so that it is to be read again.

    `tried` has the target's epochs after earlier attempts: a driver tries again if a connection was lost, even after
    the commit, and if the two threads are not in one place, the target may have been stored before
    the source was found to have changed.
    """
    source, target, origin, _, _ = plan
    epochs = {}
    for thread_id in sorted((source, target)):
        epochs[thread_id] = yield from context.store.lock(thread_id)
    if epochs[target] is not None and epochs[target] not in tried:
        raise ConflictError(f"thread {target!r} exists already: choose another id for as_thread")
    if epochs[source] is None:
        raise CheckpointNotFoundError(f"{checkpoint_location(origin.outline)}: its thread was deleted")
    if epochs[source] != origin.epoch:
        return False
    yield from prove_complete(context, source, None)
    outlines = yield from all_outlines(context, source)
    following = _Following(outlines, origin.outline)
    change = Change(target, None, now(), plan.segments, (), (), None)
    added = yield from context.store.add(change)
    if added.refused == "owner":
        raise ConflictError(f"the thread_id {target!r} is taken: choose another one for as_thread")
    if added.refused is not None:
        raise refusal_error(context, change, added.refused, (yield from context.store.lease(target)))
    yield from _describe(context, source, target)
    mover = _Mover(context, plan, following)
    chosen = following.chosen()
    for start in range(0, len(chosen), _BATCH):
        yield from mover.move(chosen[start : start + _BATCH])
    yield from mover.move_branch()
    epoch = yield from context.store.epoch(target)
    tried += [] if epoch is None else [epoch]
    return True


class _Following:
    """Which checkpoints go along, by their outlines alone."""

    def __init__(self, outlines: Sequence[Outline], origin: Outline) -> None:
        self._outlines = {outline.key: outline for outline in outlines if outline.ns != MESSAGES_NS}
        self._origin = origin
        self.is_waiting = not any(map(self._follows, outlines))
        """Whether nothing follows it, so that its run may go on."""
        called = [key for key, outline in self._outlines.items() if key[0] and self._was_called(outline)]
        self._keys = self._ancestry([origin.key, *called])

    def chosen(self) -> list[Outline]:
        """Those that go along, oldest first."""
        return [outline for key, outline in reversed(self._outlines.items()) if key in self._keys]

    def goes_along(self, key: Key) -> bool:
        """Whether a checkpoint is among them."""
        return key in self._keys

    def writes_go_along(self, row: WriteRow) -> bool:
        """Whether a pending write goes with its checkpoint."""
        return self.is_waiting or row[:2] != self._origin.key

    def _follows(self, outline: Outline) -> bool:
        """Whether a checkpoint came of the writes of the origin's tasks. A fork did not."""
        if outline.parent_key != self._origin.key:
            return False
        return steps_of(decode_metadata(outline)).source != "fork"

    def _was_called(self, outline: Outline) -> bool:
        """Whether a subgraph stored it before, or in a step that may go on."""
        if _TASK not in outline.ns and outline.rank < self._origin.rank:
            return True
        parents = decode_metadata(outline).get("parents") if self.is_waiting else None
        return isinstance(parents, Mapping) and parents.get("") == self._origin.id

    def _ancestry(self, keys: Iterable[Key]) -> set[Key]:
        """These and their ancestors, as far as they are there."""
        found: set[Key] = set()
        for start in keys:
            key: Key | None = start
            while key is not None and key in self._outlines and key not in found:
                found.add(key)
                key = self._outlines[key].parent_key
        return found


class _Mover:
    """Copies checkpoints with their writes and segments. Each row is proven under its old key, then bound to the new.

    So damage is never copied into a row that looks good.
    """

    def __init__(self, context: SaverContext, plan: ForkPlan, following: _Following) -> None:
        self._context = context
        self._plan = plan
        self._following = following
        self._moved: set[bytes] = set(plan.segments)

    def move(self, outlines: Sequence[Outline]) -> Program[None]:
        """Copy some checkpoints with their pending writes."""
        context, source = self._context, self._plan.source
        keys = [outline.key for outline in outlines]
        rows = yield from context.store.rows(source, keys)
        if {row.outline.key for row in rows} != set(keys):
            raise CorruptDataError("a checkpoint is missing: `verify` names the damaged rows", f"thread {source!r}")
        loaders = [CheckpointLoader(row, (), context.encoding_cache) for row in rows]
        segment_cache = context.segment_cache()
        yield from fill(segment_cache, context.store, source, missing_headers(loaders))
        needed: set[bytes] = set()
        for loader in loaders:
            loader.open_header(segment_cache)
            needed.update(loader.header_keys())
            needed.update(key for value in loader.header.values.values() for key in value.segment_keys())
        found = yield from context.store.writes(source, keys)
        writes = [row for row in found if self._following.writes_go_along(row)]
        needed.update(key for each in proven_writes(source, writes) for key in each.value.segment_keys())
        bound = [rebound_write(source, self._plan.target, row) for row in writes]
        yield from self._add(needed, [self._rebound(row) for row in rows], bound)

    def move_branch(self) -> Program[None]:
        """Add the checkpoint that follows."""
        branch, origin = self._plan.branch, self._plan.origin
        if branch is not None:
            row = branch.row(self._plan.target, origin.outline.ns, origin.outline.rank)
            yield from self._add(branch.needs(), [self._rebound(row)], [])

    def _add(self, needed: Iterable[bytes], rows: Sequence[CheckpointRow], writes: Sequence[WriteRow]) -> Program[None]:
        source, target = self._plan.source, self._plan.target
        store, keys = self._context.store, sorted(set(needed) - self._moved)
        for start in range(0, len(keys), _SEGMENTS):
            some = keys[start : start + _SEGMENTS]
            segments = yield from store.segments(source, some)
            if len(segments) < len(some):
                raise CorruptDataError("a segment is missing: `verify` names the damaged rows", f"thread {source!r}")
            yield from store.replace(Change(target, None, now(), segments, (), (), None))
        self._moved.update(keys)
        yield from store.replace(Change(target, None, now(), {}, rows, writes, None))

    def _rebound(self, row: CheckpointRow) -> CheckpointRow:
        """The row for the new thread. It names no parent that stays behind."""
        ns, parent = row.outline.ns, row.outline.parent
        kept = parent if parent is not None and self._following.goes_along((ns, parent)) else None
        outline = row.outline._replace(thread_id=self._plan.target, parent=kept)
        return with_check(row._replace(outline=outline, run_id=run_id_in(outline.metadata)))


def _describe(context: SaverContext, source: str, target: str) -> Program[None]:
    """Let a new thread have the owner, title and metadata of its source, and live as long as any new one."""
    outline = yield from context.store.thread(source)
    if outline is not None:
        row = sound_row(outline)
        expires_at = first_expiry(context) or row.expires_at
        yield from context.store.set_thread(thread_row(row._replace(thread_id=target, expires_at=expires_at)))
