"""What a database holds, without the states, for tools that go through everything. Only `setup` creates tables."""

from threadmark.model import CheckpointRef
from threadmark.program import Operation, read, read_existing
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.listing import thread_ids
from threadmark.saver.paging import Pages
from threadmark.store import Scope

_PAGE = 4096


def setup(context: SaverContext) -> Operation[None]:
    """Create the tables where they are missing, as any transaction does that may: this one asks for next to nothing."""
    yield from read(context.store.epoch, "")


def has_tables(context: SaverContext) -> Operation[bool]:
    """Whether the database is there: any answer but None comes from its tables."""
    answer = yield from read_existing(context.store.threads, "", 1)
    return answer is not None


def has_only_langgraph_data(context: SaverContext) -> Operation[bool]:
    """Whether LangGraph's own saver keeps checkpoints in this database, and this one keeps none."""
    return (yield from read(context.store.has_only_langgraph_data))


def list_checkpoint_refs(context: SaverContext) -> Operation[list[CheckpointRef]]:
    """List all checkpoints, without their state."""
    found: list[CheckpointRef] = []
    pages = Pages(Scope(), _PAGE)
    while pages.more:
        page = pages.read((yield from read_existing(context.store.page, *pages.request)))
        found += [CheckpointRef(each.thread_id, each.ns, each.id, each.parent) for each in page]
    return found


def orphan_writes(context: SaverContext) -> Operation[list[CheckpointRef]]:
    """List the checkpoints that are missing although pending writes belong to them."""
    written: set[tuple[str, str, str]] = set()
    after = ""
    more = True
    while more:
        threads = (yield from read_existing(thread_ids, context, after, _PAGE)) or []
        more, after = len(threads) == _PAGE, threads[-1] if threads else ""
        for thread_id in threads:
            rows = yield from read(context.store.writes, thread_id, None)
            written.update((thread_id, row.ns, row.checkpoint_id) for row in rows)
    # Looked for last, so that a checkpoint that has just come is none.
    there = {ref[:3] for ref in (yield from list_checkpoint_refs(context))}
    return [CheckpointRef(*ref, None) for ref in sorted(written - there)]
