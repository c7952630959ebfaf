"""Reading one checkpoint."""

from threadmark.config import ParsedConfig, parse_config
from threadmark.model import CheckpointTuple, Config
from threadmark.program import Operation, Program, read
from threadmark.saver.caches.segment_cache import fill
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decoded
from threadmark.saver.loading.loader import CheckpointLoader, LoadedCheckpoint, Wanted, remember
from threadmark.saver.operations.beginning import expect_plain
from threadmark.saver.proving.completeness import prove_absent, proven_row


def get_tuple(context: SaverContext, config: Config) -> Operation[CheckpointTuple | None]:
    """The checkpoint that `config` names, or the newest of its namespace."""
    where = parse_config(config)
    loaded = yield from read(load, context, where)
    if loaded is None and not context.first_look.done:
        yield from expect_plain(context)
    return decoded(context, loaded) if loaded else None


def load(
    context: SaverContext, where: ParsedConfig, wanted: Wanted | None = None, *, early: bool = False
) -> Program[LoadedCheckpoint | None]:
    """One checkpoint with the bytes of its values, remembered for the put that may follow.

    One that is asked for `early` may still be on its way; any other one that is not found must not be damaged.
    """
    found = yield from context.store.find(*where)
    if found is None:
        if where.checkpoint_id is not None and not early:
            yield from prove_absent(context, where)
        return None
    loader = CheckpointLoader(proven_row(where, found), found.writes, context.encoding_cache)
    segment_cache = context.segment_cache(found.segments)
    yield from fill(segment_cache, context.store, where.thread_id, loader.missing_header_keys())
    loader.open_header(segment_cache)
    yield from fill(segment_cache, context.store, where.thread_id, loader.value_keys(wanted))
    loaded = loader.loaded(found.epoch)
    if loader.is_news(found.epoch):
        remember(context.encoding_cache, loaded)
    return loaded
