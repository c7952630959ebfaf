"""The operations of `States`, and those that all interfaces share: saving, listing and removing states of threads.

A plain dictionary whose keys are plain text has a channel for each key, so that a part of it can be read, and only
changes are stored. Any other state is the value of one channel. So a state comes back exactly. It becomes the newest
checkpoint of its thread, or replaces the one with the same id.

An entry in the metadata of a thread names the interface that began it. Methods that go over many threads look at those
only, so they never touch a graph's thread in the same database.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple

from threadmark.config import ParsedConfig, as_thread_id, parse_config
from threadmark.errors import (
    ConfigError,
    ConflictError,
    StoreError,
    ThreadDeletedError,
    TransientStoreError,
    short_repr,
)
from threadmark.ids import Version, new_id, next_version
from threadmark.interfaces.shapes import StateInfo, StatePage
from threadmark.metadata import matches
from threadmark.model import Duration, RetentionReport, ThreadSort
from threadmark.names import ID_BYTES, check_length
from threadmark.program import Operation, Program, read, read_existing, write_and_reclaim
from threadmark.saver.kit import (
    Deduplicator,
    Draft,
    Header,
    Known,
    Pages,
    SaverContext,
    Source,
    Stored,
    ThreadQuery,
    add_first,
    apply_retention,
    check_config,
    checked_count,
    checked_duration,
    count_threads,
    cursor_of,
    decode_metadata,
    delete_checkpoint,
    delete_thread,
    encode,
    filtered,
    get_tuple,
    keep_at_most,
    metadata_of,
    new_cursor,
    parts_of_cursor,
    place_of,
    prove_absent,
    prove_checkpoint,
    prove_complete,
    proven_row,
    retention_rule,
    sound_row,
    store,
    thread_query,
    time_of,
)
from threadmark.serde import Serializer
from threadmark.store.contract import Added, Change, CheckpointRow, Outline, Scope, Store, now
from threadmark.store.threads import ThreadCounts, ThreadOutline, ThreadPlace


def newest_rows(context: SaverContext, thread_ids: Sequence[str]) -> Program[dict[str, CheckpointRow]]:
    """Return the newest checkpoint of each of these threads that has one, in one question.

    Raises CorruptDataError if a newer one was recorded than is found.
    """
    found = yield from context.store.newest(thread_ids, "")
    return {thread_id: proven_row(ParsedConfig(thread_id, "", None), each) for thread_id, each in found.items()}


Mark = Mapping[str, Any]

SESSION: Final[Mark] = {"kind": "session"}
STATE: Final[Mark] = {"kind": "state"}


def marked(mark: Mark, sort: ThreadSort = "id") -> ThreadQuery:
    """The threads with this mark."""
    return thread_query({"metadata": mark}, sort)


def is_marked(context: SaverContext, thread_id: str, mark: Mark) -> Program[bool]:
    """Whether a thread is there and has this mark."""
    outline = yield from context.store.thread(thread_id)
    return outline is not None and matches(metadata_of(sound_row(outline)), mark)


_WHOLE = "__root__"
"""LangGraph's name for the channel of a state that is no dictionary."""

_OURS = "__"
"""Keys that begin so could be taken for a channel of the engine's."""

_FORMAT = 4
"""The format of a checkpoint's fields: that of LangGraph's."""


def channels_of(state: Any) -> dict[str, Any]:
    """Return the channel values that a state is stored as."""
    if type(state) is dict and all(type(key) is str and not key.startswith(_OURS) for key in state):
        return dict(state)  # its owner may change it while it is saved
    return {_WHOLE: state}


def state_of(values: Mapping[str, Any]) -> Any:
    """Return the state that is stored as these channel values. Those of a graph are its state."""
    return values[_WHOLE] if _WHOLE in values else dict(values)


def encoded(serde: Serializer, values: Mapping[str, Any]) -> dict[str, tuple[str, bytes]]:
    """Encode channel values. Returns each one's tag and bytes. Errors name the place in the state."""
    locations = {channel: "state" if channel == _WHOLE else f"state[{channel!r}]" for channel in values}
    return {channel: encode(serde, locations[channel], value) for channel, value in values.items()}


class StateDraft(Draft):
    """A state to store. It is encoded at once, so that an unsuitable value is refused before anything is read."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """How long the state is as it was encoded, in bytes."""
        return sum(len(data) for _, data in self.encoded.values())

    def header(
        self,
        serde: Serializer,
        deduplicator: Deduplicator,
        parent: Known | None,
        sources_of: Callable[[str, Stored | None], Sequence[Source]],
    ) -> tuple[Header, bytes]:
        """Return the header and its encoding. A channel has a new version if its value is not the parent's."""
        header, _ = super().header(serde, deduplicator, parent, sources_of)
        held = parent.header if parent else None
        new = _next_version(list(held.versions.values())) if held else 1
        versions = {
            channel: held.versions[channel] if held and _same(value, held.values.get(channel)) else new
            for channel, value in header.values.items()
        }
        header = header._replace(versions=versions)
        return header, header.to_bytes()


def state_draft(serde: Serializer, checkpoint_id: str, state: Any) -> StateDraft:
    """Return a state as a checkpoint to store."""
    values = channels_of(state)
    return StateDraft(
        id=checkpoint_id,
        fields={"v": _FORMAT, "ts": datetime.now(UTC).isoformat(), "versions_seen": {}, "updated_channels": None},
        values=values,
        versions={},
        new=values.keys(),
        reads=[*values],
        plain=None,
        encoded=encoded(serde, values),
    )


def _same(value: Stored, other: Stored | None) -> bool:
    """Whether both are one value. A short one has no digest."""
    if other is None or value.tag != other.tag or value.digest != other.digest:
        return False
    return bool(value.digest) or value.packed == other.packed


def _next_version(held: Sequence[Version]) -> Version:
    """A version after all of a checkpoint's. If they are of several kinds, which no engine makes, of the first's."""
    alike = [version for version in held if isinstance(version, str) == isinstance(held[0], str)]
    return next_version(max(alike, default=None))


_SIZE = "__size__"
"""The key of a checkpoint's metadata that holds the size of its state."""


def with_size(metadata: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return a checkpoint's metadata, from the metadata of a state."""
    if not isinstance(metadata, Mapping):
        raise ConfigError(f"metadata must be a dictionary, not {type(metadata).__name__}")
    if _SIZE in metadata:
        raise ConfigError(f"the key {_SIZE!r} of metadata holds the size of the state: choose another one")
    return {**metadata, _SIZE: size}


def list_states(context: SaverContext, limit: int, cursor: str | None, sort: ThreadSort) -> Operation[StatePage]:
    """Return a page of the newest states of threads."""
    query, count = marked(STATE, sort), checked_count(limit, "limit")
    found = yield from filtered(context, query, place_of(query, cursor), count + 1)
    infos = yield from read(_newest, context, found[:count])
    return StatePage(infos, cursor_of(query, found[count - 1]) if len(found) > count > 0 else None)


def history(context: SaverContext, thread_id: str, limit: int, cursor: str | None) -> Operation[StatePage]:
    """Return a page of the states of one thread, newest first."""
    name, count = as_thread_id(thread_id), checked_count(limit, "limit")
    thread, outlines = yield from read(_page, context, name, count + 1, _rank_of(name, cursor))
    infos = [_info(thread, outline) for outline in outlines[:count]] if thread else []
    return StatePage(infos, new_cursor(name, outlines[count - 1].rank) if len(outlines) > count > 0 else None)


def _newest(context: SaverContext, threads: Sequence[ThreadOutline]) -> Program[list[StateInfo]]:
    """The newest state of each thread, in one query. A thread that was deleted since then is left out."""
    rows = yield from newest_rows(context, [thread.row.thread_id for thread in threads])
    for row in rows.values():
        prove_checkpoint(row)
    names = ((thread, thread.row.thread_id) for thread in threads)
    return [_info(thread, rows[name].outline) for thread, name in names if name in rows]


def _page(
    context: SaverContext, thread_id: str, limit: int, before: str | None
) -> Program[tuple[ThreadOutline | None, Sequence[Outline]]]:
    thread = yield from context.store.thread(thread_id)
    if before is None:
        yield from newest_rows(context, [thread_id])  # so that none of the newest is missed
    pages = Pages(Scope(thread_id, "", before=before), limit)
    page = pages.read((yield from context.store.page(*pages.request)))
    if not pages.more:
        yield from prove_complete(context, thread_id, "")  # nor one of the others
    return thread, page


def _info(thread: ThreadOutline, outline: Outline) -> StateInfo:
    metadata = decode_metadata(outline)
    size = metadata.pop(_SIZE, None)
    return StateInfo(
        outline.id,
        outline.thread_id,
        time_of(thread.row.created_at),
        time_of(outline.created_at),
        metadata,
        size if type(size) is int else None,
    )


def _rank_of(thread_id: str, cursor: str | None) -> str | None:
    """The rank that a cursor of this thread names."""
    if cursor is None:
        return None
    name, rank = parts_of_cursor(cursor, (str, str))
    if name != thread_id:
        raise ConfigError(f"{short_repr(cursor)} is no cursor of thread {thread_id!r}: give the one of the page before")
    return str(rank)


_ATTEMPTS = 64
"""How often to look for a place. After each failure another save was faster."""

_SOURCES = ("input", "loop", "update", "fork")
"""The source of a checkpoint of LangGraph, as its metadata says."""


class _Place(NamedTuple):
    """The place of a state."""

    parent: str | None
    rank: str | None
    """That of the checkpoint that it replaces."""
    in_graph: Mapping[str, Any]
    """The metadata that a graph needs to go on from it. Empty if no graph stored the parent."""


_FIRST = _Place(None, None, {})


def config_of(thread_id: str, checkpoint_id: str | None = None, lease_token: int | None = None) -> dict[str, Any]:
    """Return the configuration of a thread, or of one of its checkpoints."""
    if thread_id is None:
        raise ConfigError("the id of a thread, or session, must be a string, an int or a UUID, not None")
    if checkpoint_id == "":
        raise ConfigError("an id must not be empty: None stands for the newest, or for all")
    configurable = {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
    return {"configurable": configurable if lease_token is None else {**configurable, "lease_token": lease_token}}


def save_draft(
    context: SaverContext,
    config: Mapping[str, Any],
    draft: StateDraft,
    metadata: Mapping[str, Any],
    mark: Mark | None,
    *,
    replaces: bool = False,
) -> Operation[dict[str, Any]]:
    """Store a draft as the newest of its thread, or with `replaces` in the place of one of its id. Returns its config.

    If several save at once, each has the one before as its parent; if others are always faster, the last attempt
    is stored next to theirs.
    """
    where = parse_config(config)
    check_config(where)
    check_length(draft.id, ID_BYTES, "checkpoint_id")
    for attempt in range(1, _ATTEMPTS + 1):
        add: Callable[[Store, Change], Program[Added]] | None = None
        place = yield from read(_place, context, where.thread_id, draft.id if replaces else None, attempt)
        if place.rank is not None:
            add = _replace
        elif place == _FIRST and mark is not None:
            add = partial(add_first, about_thread=mark)
        try:
            return (
                yield from store(
                    context,
                    config,
                    where._replace(checkpoint_id=place.parent),
                    draft,
                    {**place.in_graph, **metadata},
                    expect_newest=place.rank is None and attempt < _ATTEMPTS,
                    replaced_rank=place.rank,
                    add=add,
                )
            )
        except (ConflictError, ThreadDeletedError):  # a thread deleted just now begins again, as if it had gone before
            continue
    raise TransientStoreError(f"{where} is deleted and created again all the time, so nothing was stored: try again")


def _place(context: SaverContext, thread_id: str, own_id: str | None, attempt: int) -> Program[_Place]:
    if own_id is not None:
        same = yield from context.store.page(Scope(thread_id, "", own_id), None, 1)
        if same:
            return _Place(same[0].parent, same[0].rank, _in_graph(decode_metadata(same[0]), steps=0))
    if attempt > 1:  # another one was the newest: it was faster, or its row is damaged and was not found
        yield from newest_rows(context, [thread_id])
    newest = yield from context.store.page(Scope(thread_id, ""), None, 1)
    return _Place(newest[0].id, None, _in_graph(decode_metadata(newest[0]), steps=1)) if newest else _FIRST


def _replace(store: Store, change: Change) -> Program[Added]:
    """Put a checkpoint in the place of the one that was found, if that is still there."""
    epoch = yield from store.lock(change.thread_id)
    (outline,) = (row.outline for row in change.checkpoints)
    same = yield from store.page(Scope(outline.thread_id, outline.ns, outline.id), None, 1)
    if [each.rank for each in same] != [outline.rank]:
        return Added(epoch or 0, "conflict")
    return (yield from store.replace(change))


def _in_graph(metadata: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """The metadata of LangGraph for an update by hand, so many steps after a checkpoint of a graph."""
    source, step, parents = (metadata.get(key) for key in ("source", "step", "parents"))
    if source in _SOURCES and type(step) is int and isinstance(parents, dict):
        return {"source": "update", "step": step + steps, "parents": {}}
    return {}


_PAGE = 256
_BATCH = 16


def delete(context: SaverContext, thread_id: str, checkpoint_id: str | None) -> Operation[bool]:
    """Remove one checkpoint of a thread, or all for None. Returns whether there was anything."""
    if checkpoint_id is None:
        return (yield from delete_thread(context, as_thread_id(thread_id)))
    return (yield from delete_checkpoint(context, config_of(thread_id, checkpoint_id)))


def clear(context: SaverContext, mark: Mark) -> Operation[int]:
    """Remove every thread with this mark, a few in a transaction. Returns how many there were."""
    count = 0
    pages = _Pages(context, mark)
    while pages.more:
        names = yield from pages.read()
        for start in range(0, len(names), _BATCH):
            seen: set[str] = set()
            count += yield from write_and_reclaim(_drop, context, names[start : start + _BATCH], mark, seen)
    return count


def counts(context: SaverContext, mark: Mark) -> Operation[list[ThreadCounts]]:
    """Return the contents of every thread with this mark."""
    found: list[ThreadCounts] = []
    pages = _Pages(context, mark)
    while pages.more:
        names = yield from pages.read()
        found += yield from read(context.store.thread_counts, names)
    return found


class _Pages:
    """The ids of the threads with a mark, a page at a time."""

    def __init__(self, context: SaverContext, mark: Mark) -> None:
        self.more = True
        self._context = context
        self._query = marked(mark)
        self._after: ThreadPlace | None = None

    def read(self) -> Operation[list[str]]:
        """The next ones."""
        found = (yield from filtered(self._context, self._query, self._after, _PAGE))[:_PAGE]
        self.more = len(found) == _PAGE
        self._after = self._query.place(found[-1]) if found else None
        return [outline.row.thread_id for outline in found]


def _drop(context: SaverContext, names: Sequence[str], mark: Mark, seen: set[str]) -> Program[int]:
    """Remove those that have the mark still. `seen` are those that an earlier attempt, maybe committed, found."""
    for name in sorted(names):
        is_gone = (yield from context.store.lock(name)) is None
        # In a pair, this database may lack threads that the other one refused to remove, and still has.
        if (is_gone and name in seen) or (yield from is_marked(context, name, mark)):
            seen.add(name)
            yield from context.store.drop(name, now())
    return len(seen)


def save(
    context: SaverContext,
    thread_id: str,
    state: Any,
    metadata: Mapping[str, Any] | None,
    lease_token: int | None,
    max_history: int | None = None,
) -> Operation[str]:
    """Store a state as the newest of its thread. Returns its id."""
    config = config_of(thread_id, lease_token=lease_token)
    draft = state_draft(context.serde, new_id(), state)
    about = with_size({} if metadata is None else metadata, draft.size)
    where = parse_config((yield from save_draft(context, config, draft, about, STATE)))
    if max_history is not None and (yield from read(is_marked, context, where.thread_id, STATE)):
        yield from keep_at_most(context, where, max_history)
    return draft.id


def load(context: SaverContext, thread_id: str, state_id: str | None, default: Any) -> Operation[Any]:
    """Return a state of a thread, the newest for None. Returns the default if there is none."""
    found = yield from get_tuple(context, config_of(thread_id, state_id))
    return state_of(found.checkpoint["channel_values"]) if found else default


def exists(context: SaverContext, thread_id: str, state_id: str | None) -> Operation[bool]:
    """Whether a thread has a state, or the one with this id."""
    return (yield from read(_exists, context, parse_config(config_of(thread_id, state_id))))


def size(context: SaverContext) -> Operation[int]:
    """Return how many threads have a state."""
    return (yield from count_threads(context, marked(STATE)))


def cleanup_old(context: SaverContext, max_age: Duration) -> Operation[RetentionReport]:
    """Remove the threads whose newest state is older than that."""
    age = checked_duration(max_age, "max_age")
    rule = retention_rule(keep_last=None, older_than=None, idle_for=age, max_bytes=None, owner=None, metadata=STATE)
    return (yield from apply_retention(context, rule, dry_run=False, progress=None))


def ping(context: SaverContext) -> Operation[bool]:
    """Whether the store answers. Creates no tables."""
    try:
        yield from read_existing(context.store.epoch, "")
    except StoreError:
        return False
    return True


def _exists(context: SaverContext, where: ParsedConfig) -> Program[bool]:
    if where.checkpoint_id is None:
        return bool((yield from newest_rows(context, [where.thread_id])))
    found = yield from context.store.page(Scope(where.thread_id, "", where.checkpoint_id), None, 1)
    if not found:
        yield from prove_absent(context, where)
    return bool(found)
