"""Reading one checkpoint."""

from functools import partial

from threadmark.config import Place, place
from threadmark.model import CheckpointTuple, Config
from threadmark.program import Operation, Program, Transaction
from threadmark.saver.completeness import prove_absent, proven_row
from threadmark.saver.decoding import decoded
from threadmark.saver.kit import Kit
from threadmark.saver.opening import Loaded, Opening, Wanted, remember
from threadmark.saver.shelf import fill


def get_tuple(kit: Kit, config: Config) -> Operation[CheckpointTuple | None]:
    """The checkpoint that `config` names, or the newest of its namespace."""
    where = place(config)
    loaded = yield Transaction(partial(load, kit, where), writes=False)
    return decoded(loaded, kit.serde) if loaded else None


def load(kit: Kit, where: Place, wanted: Wanted | None = None, *, early: bool = False) -> Program[Loaded | None]:
    """One checkpoint with the bytes of its values, remembered for the put that may follow.

    One that is asked for `early` may still be on its way; any other one that is not found must not be damaged.
    """
    found = yield from kit.store.find(*where)
    if found is None:
        if where.checkpoint_id is not None and not early:
            yield from prove_absent(kit, where)
        return None
    opening = Opening(proven_row(where, found), found.writes, kit.recall)
    shelf = kit.shelf(found.segments)
    yield from fill(shelf, kit.store, where.thread_id, opening.missing_header_keys())
    opening.open_header(shelf)
    yield from fill(shelf, kit.store, where.thread_id, opening.value_keys(wanted))
    loaded = opening.loaded(found.epoch)
    if opening.is_news(found.epoch):
        remember(kit.recall, loaded)
    return loaded
