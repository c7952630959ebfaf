"""Surveying: what there is, without its states, for tools that go through everything. Asking makes nothing."""

from functools import partial

from threadmark.model import CheckpointRef
from threadmark.program import Operation, Transaction
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.listing import thread_ids
from threadmark.saver.paging import Pages
from threadmark.store import Scope

_PAGE = 4096


def setup(context: SaverContext) -> Operation[None]:
    """Create the tables where they are missing, as any transaction does that may: this one asks for next to nothing."""
    yield Transaction(partial(context.store.epoch, ""), writes=False)


def has_tables(context: SaverContext) -> Operation[bool]:
    """Whether the database is there: any answer but None comes from its tables."""
    answer = yield Transaction(partial(context.store.threads, "", 1), writes=False, creates_tables=False)
    return answer is not None


def list_checkpoint_refs(context: SaverContext) -> Operation[list[CheckpointRef]]:
    """The places of all checkpoints."""
    found: list[CheckpointRef] = []
    pages = Pages(Scope(), _PAGE)
    while pages.more:
        program = partial(context.store.page, *pages.request)
        page = pages.read((yield Transaction(program, writes=False, creates_tables=False)))
        found += [CheckpointRef(each.thread_id, each.ns, each.id, each.parent) for each in page]
    return found


def orphan_writes(context: SaverContext) -> Operation[list[CheckpointRef]]:
    """The places of pending writes at which there is no checkpoint."""
    written: set[tuple[str, str, str]] = set()
    after = ""
    more = True
    while more:
        threads = yield Transaction(partial(thread_ids, context, after, _PAGE), writes=False, creates_tables=False)
        more, after = bool(threads) and len(threads) == _PAGE, threads[-1] if threads else ""
        for thread_id in threads or ():
            rows = yield Transaction(partial(context.store.writes, thread_id, None), writes=False)
            written.update((thread_id, row.ns, row.checkpoint_id) for row in rows)
    # Looked for last, so that a checkpoint that has just come is none.
    there = {ref[:3] for ref in (yield from list_checkpoint_refs(context))}
    return [CheckpointRef(*ref, None) for ref in sorted(written - there)]
