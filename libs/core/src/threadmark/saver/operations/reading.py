"""Reading one checkpoint, or only its ids."""

from functools import partial

from threadmark.config import ParsedConfig, parse_config
from threadmark.errors import ConfigError
from threadmark.format.digests import HOW_TO_OPEN
from threadmark.model import CheckpointRef, CheckpointTuple, Config
from threadmark.program import Operation, Program, read, read_existing
from threadmark.saver.caches import fill
from threadmark.saver.completeness import prove_absent, prove_complete, proven_row
from threadmark.saver.context import SaverContext, refresh_expiry
from threadmark.saver.decoding import decoded
from threadmark.saver.loading import ChannelFilter, CheckpointLoader, LoadedCheckpoint, remember, remembered
from threadmark.sealing import looks_sealed
from threadmark.store.contract import Outline, Scope


def get_tuple(context: SaverContext, config: Config | str) -> Operation[CheckpointTuple | None]:
    """The checkpoint that `config` names, or the newest of its namespace."""
    where = parse_config(config)
    loaded = yield from read(load, context, where)
    if loaded is None:
        yield from expect_plain_once(context)
        return None
    if context.threads.refresh_on_read:
        yield from refresh_expiry(context, where.thread_id)
    return decoded(context, loaded)


def get_checkpoint_ref(context: SaverContext, config: Config | str) -> Operation[CheckpointRef | None]:
    """The ids of the checkpoint that `config` names, or of the newest of its namespace."""
    outline = yield from read(_outline, context, parse_config(config))
    if outline is None:
        yield from expect_plain_once(context)
        return None
    return CheckpointRef(outline.thread_id, outline.ns, outline.id, outline.parent)


def _outline(context: SaverContext, where: ParsedConfig) -> Program[Outline | None]:
    """A checkpoint without its state. The newest is the one that the head names, as in `load`."""
    found = yield from context.store.page(Scope(where.thread_id, where.ns, where.checkpoint_id), None, 1)
    if where.checkpoint_id is None:
        heads = yield from context.store.heads(where.thread_id, where.ns)
        if [head.newest for head in heads] != [outline.rank for outline in found]:
            yield from prove_complete(context, where.thread_id, where.ns)  # if it is, another put came between
    elif not found:
        yield from prove_absent(context, where)
    return found[0] if found else None


def load(
    context: SaverContext, where: ParsedConfig, chosen: ChannelFilter | None = None, *, may_be_missing: bool = False
) -> Program[LoadedCheckpoint | None]:
    """One checkpoint with the bytes of its values, remembered for the put that may follow.

    One that is not found must not be damaged, unless it `may_be_missing`, because it is still on its way.
    """
    held = partial(context.encoding_cache.newest_held, where.thread_id, where.ns)
    found = yield from context.store.find(where.thread_id, where.ns, where.checkpoint_id, held)
    if found is None:
        if where.checkpoint_id is not None and not may_be_missing:
            yield from prove_absent(context, where)
        return None
    row = proven_row(where, found)
    loaded = remembered(row, found.writes, context.encoding_cache, found.epoch)
    if loaded is not None:
        return loaded
    loader = CheckpointLoader(row, found.writes, context.encoding_cache)
    segment_cache = context.segment_cache(found.segments)
    yield from fill(segment_cache, context.store, where.thread_id, loader.missing_header_keys())
    loader.open_header(segment_cache)
    yield from fill(segment_cache, context.store, where.thread_id, loader.value_keys(chosen))
    loaded = loader.loaded(found.epoch)
    remember(context.encoding_cache, loaded, row)
    if context.segment_names is None:
        context.keyring_check.done = True  # this checkpoint is not sealed, so no other one needs to be looked at
    return loaded


def expect_plain_once(context: SaverContext) -> Operation[None]:
    """If nothing was found without a keyring, check once that the database needs none."""
    if context.segment_names is None and not context.keyring_check.done:
        yield from expect_plain(context)
        context.keyring_check.done = True


def expect_plain(context: SaverContext, *, creates_tables: bool = True) -> Operation[None]:
    """For a saver without a keyring, look at one checkpoint. Raises ConfigError if it is sealed."""
    found = yield from (read if creates_tables else read_existing)(context.store.sample)
    # A sealed row has its check inside the body.
    if found is not None and not found[0] and looks_sealed(found[1]):
        raise ConfigError(
            f"the database is sealed: {HOW_TO_OPEN}, with the keys that its rows were stored with; without it new rows "
            "would be stored in clear"
        )
