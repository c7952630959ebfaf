"""Surveying: what there is, without its states, for tools that go through everything. Asking makes nothing."""

from functools import partial

from threadmark.model import CheckpointPlace
from threadmark.program import Operation, Transaction
from threadmark.saver.kit import Kit
from threadmark.saver.listing import thread_ids
from threadmark.store import Outline, Scope

_PAGE = 4096


def exists(kit: Kit) -> Operation[bool]:
    """Whether the database is there: any answer but None comes from its tables."""
    answer = yield Transaction(partial(kit.store.threads, "", 1), writes=False, makes=False)
    return answer is not None


def places(kit: Kit) -> Operation[list[CheckpointPlace]]:
    """The places of all checkpoints."""
    found: list[CheckpointPlace] = []
    last: Outline | None = None
    more = True
    while more:
        page = yield Transaction(partial(kit.store.page, Scope(), last, _PAGE), writes=False, makes=False)
        found += [CheckpointPlace(each.thread_id, each.ns, each.id, each.parent) for each in page or ()]
        more, last = bool(page) and len(page) == _PAGE, page[-1] if page else None
    return found


def strays(kit: Kit) -> Operation[list[CheckpointPlace]]:
    """The places of pending writes at which there is no checkpoint."""
    written: set[tuple[str, str, str]] = set()
    after = ""
    more = True
    while more:
        threads = yield Transaction(partial(thread_ids, kit, after, _PAGE), writes=False, makes=False)
        more, after = bool(threads) and len(threads) == _PAGE, threads[-1] if threads else ""
        for thread_id in threads or ():
            rows = yield Transaction(partial(kit.store.writes, thread_id, None), writes=False)
            written.update((thread_id, row.ns, row.checkpoint_id) for row in rows)
    # Looked for last, so that a checkpoint that has just come is none.
    there = {place[:3] for place in (yield from places(kit))}
    return [CheckpointPlace(*place, None) for place in sorted(written - there)]
