"""A new branch or a new thread from any checkpoint, and an old checkpoint made the newest again.

The pending writes of a checkpoint are not copied to a new one. They belong to tasks, whose ids an engine makes from the
checkpoint's id: it would find them for no task of the new one, and a delta channel would count them twice. So the next
nodes run again there. A new thread keeps the ids, and with them the writes.
"""

from typing import Any, NamedTuple

from threadmark.config import ParsedConfig, as_config, config_of, named_thread, parse_config
from threadmark.errors import CheckpointNotFoundError, ConfigError, ConflictError, TransientStoreError
from threadmark.ids import new_id
from threadmark.model import Config
from threadmark.names import THREAD_ID_BYTES, check_length
from threadmark.program import Operation, Program, read, write
from threadmark.saver.kit import (
    ANCESTORS_ASKED,
    Deduplicator,
    Known,
    LoadedCheckpoint,
    SaverContext,
    add_change,
    check_config,
    check_keyring,
    counted_channels,
    expect_plain_once,
    keep_last,
    load,
)
from threadmark.store.contract import Change, now
from threadmark.travel.fork_parts import Branch, ForkPlan, NewState, branch_of, expect_plain_channels, found_thread
from threadmark.travel.model import Values

_ATTEMPTS = 64


class _Origin(NamedTuple):
    """The checkpoint that a fork begins at."""

    loaded: LoadedCheckpoint
    newest: str
    """The greatest rank of the namespace."""
    channels: set[str]
    """Those that it has, or that the newest checkpoint has."""
    delta_channels: set[str]
    """Those that are known to be stored as changes."""

    @property
    def is_newest(self) -> bool:
        return self.loaded.outline.rank == self.newest


def fork(
    context: SaverContext, config: Config | str, values: Values | None, as_thread: str | None
) -> Operation[dict[str, Any]]:
    """Begin a branch at a checkpoint, or a new thread."""
    config = as_config(config)
    where = _place(config)
    target = None if as_thread is None else _new_thread(where, as_thread)
    state = NewState.from_values(context, values)
    yield from _check_keyring(context)
    if target is None:
        return (yield from _branch(context, config, where, state))
    new, tried = new_id(), list[int]()
    for _ in range(_ATTEMPTS):
        origin = yield from _origin(context, where, state)
        deduplicator = _deduplicator(context, origin)
        branch = branch_of(context, new, config, origin.loaded, state, deduplicator) if state.encoded else None
        plan = ForkPlan(where.thread_id, target, origin.loaded, branch, deduplicator.segments())
        if (yield from write(found_thread, context, plan, tried)):
            return config_of(target, where.ns, branch.id if branch else origin.loaded.outline.id)
    raise _kept_changing(where)


def restore(context: SaverContext, config: Config | str) -> Operation[dict[str, Any]]:
    """Make a checkpoint the newest again. One that is the newest is left as it is, with all that waits there."""
    config = as_config(config)
    where = _place(config)
    yield from _check_keyring(context)
    origin = yield from _origin(context, where, NewState({}))
    if origin.is_newest:
        return where._replace(checkpoint_id=origin.loaded.outline.id).config()
    return (yield from _branch(context, config, where, NewState({})))


def _branch(context: SaverContext, config: Config, where: ParsedConfig, state: NewState) -> Operation[dict[str, Any]]:
    """Store a new checkpoint with the state of another one, as the newest of the namespace. Returns its config.

    If another checkpoint is stored at the same time, this one is placed after it.
    """
    new = new_id()
    for attempt in range(_ATTEMPTS):
        if attempt and (yield from read(context.store.rows, where.thread_id, [(where.ns, new)])):
            # An attempt whose answer was lost has stored it. Placed once more, it would come after its own children.
            return where._replace(checkpoint_id=new).config()
        origin = yield from _origin(context, where, state)
        deduplicator = _deduplicator(context, origin)
        branch = branch_of(context, new, config, origin.loaded, state, deduplicator)
        change = _change(where, origin, branch, deduplicator)
        try:
            added = yield from add_change(context, deduplicator, change, context.store.add)
        except ConflictError:  # it is not the newest any more
            continue
        if added is not None:
            made = where._replace(checkpoint_id=branch.id)
            rank = change.checkpoints[0].outline.rank
            known = Known(added.epoch, rank, branch.header, branch.source, branch.stored.body)
            context.encoding_cache.see_checkpoint(where.thread_id, where.ns, branch.id, known)
            if context.threads.keep_last is not None:
                yield from keep_last(context, made, context.threads.keep_last)
            return made.config()
    raise _kept_changing(where)


def _change(where: ParsedConfig, origin: _Origin, branch: Branch, deduplicator: Deduplicator) -> Change:
    return Change(
        where.thread_id,
        origin.loaded.epoch,  # the checkpoint itself must still be there
        now(),
        deduplicator.segments(),
        (branch.row(where.thread_id, where.ns, origin.newest),),
        (),
        origin.loaded.outline.id,
        branch.needs,
        where.lease_token,
        sorts_last=True,
    )


def _origin(context: SaverContext, where: ParsedConfig, state: NewState) -> Operation[_Origin]:
    """Read the checkpoint that is named, whole and proven. Raises CheckpointNotFoundError if there is none."""
    origin = yield from read(_load, context, where, state)
    if origin is None:
        yield from expect_plain_once(context)
        named = str(where) if where.checkpoint_id else f"thread {where.thread_id!r}, namespace {where.ns!r}"
        raise CheckpointNotFoundError(f"{named}: there is no checkpoint; `history` lists those that are there")
    expect_plain_channels(context, origin.loaded, state, origin.channels, origin.delta_channels)
    return origin


def _load(context: SaverContext, where: ParsedConfig, state: NewState) -> Program[_Origin | None]:
    loaded = yield from load(context, where)
    if loaded is None:
        return None
    heads = yield from context.store.heads(where.thread_id, where.ns)
    newest = max([loaded.outline.rank, *(head.newest for head in heads)])
    channels, delta_channels = set(loaded.header.versions), set()
    if not state.encoded.keys() <= channels:
        latest = yield from load(context, where._replace(checkpoint_id=None), _no_values)
        channels |= set(latest.header.versions) if latest else set()
        delta_channels |= counted_channels([latest.outline]) if latest else set()
    if not state.encoded.keys() <= loaded.header.values.keys():
        # A state that was changed by hand counts nothing in some releases of LangGraph; its ancestors do.
        rows = yield from context.store.chain(where.thread_id, where.ns, loaded.outline.id, ANCESTORS_ASKED)
        delta_channels |= counted_channels(row.outline for row in rows)
    return _Origin(loaded, newest, channels, delta_channels)


def _no_values(_: str) -> bool:
    return False


def _deduplicator(context: SaverContext, origin: _Origin) -> Deduplicator:
    loaded = origin.loaded
    return Deduplicator(context, loaded.outline.thread_id, loaded.epoch, loaded.sources())


def _check_keyring(context: SaverContext) -> Operation[None]:
    if not context.keyring_check.done:
        yield from check_keyring(context)


def _place(config: Config) -> ParsedConfig:
    where = parse_config(config)
    check_config(where)
    return where


def _new_thread(where: ParsedConfig, as_thread: object) -> str:
    """Check the id of a new thread."""
    target = named_thread(as_thread)
    check_length(target, THREAD_ID_BYTES, "as_thread")
    if where.ns:
        raise ConfigError(
            f"a new thread begins at a checkpoint of the graph itself, not of the namespace {where.ns!r}: "
            "fork without as_thread, or the checkpoint that the subgraph was called from"
        )
    if target == where.thread_id:
        raise ConflictError(f"thread {target!r} exists already: choose another id for as_thread")
    return target


def _kept_changing(where: ParsedConfig) -> TransientStoreError:
    return TransientStoreError(f"{where}: its thread was changed {_ATTEMPTS} times while it was forked; try again")
