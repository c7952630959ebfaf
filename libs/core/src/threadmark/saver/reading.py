"""Reading one checkpoint."""

from functools import partial

from threadmark.config import Place, place
from threadmark.model import CheckpointTuple, Config
from threadmark.program import Operation, Program, Transaction
from threadmark.saver.decoding import decoded
from threadmark.saver.kit import Kit
from threadmark.saver.opening import Loaded, Opening, Wanted, remember
from threadmark.saver.shelf import fill


def get_tuple(kit: Kit, config: Config) -> Operation[CheckpointTuple | None]:
    """The checkpoint that `config` names, or the newest of its namespace."""
    where = place(config)
    loaded = yield Transaction(partial(load, kit, where), writes=False)
    return decoded(loaded, kit.serde) if loaded else None


def load(kit: Kit, where: Place, wanted: Wanted | None = None) -> Program[Loaded | None]:
    """One checkpoint with the bytes of its values, remembered for the put that may follow."""
    found = yield from kit.store.find(*where)
    if found is None:
        return None
    opening = Opening(found.row, found.writes, kit.recall)
    shelf = kit.shelf(found.segments)
    yield from fill(shelf, kit.store, where.thread_id, opening.missing_header_keys())
    opening.open_header(shelf)
    yield from fill(shelf, kit.store, where.thread_id, opening.value_keys(wanted))
    loaded = opening.loaded(found.epoch)
    if opening.is_news(found.epoch):
        remember(kit.recall, loaded)
    return loaded
