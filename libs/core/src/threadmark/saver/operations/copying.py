"""Copying a thread: every checkpoint, every pending write, and the bytes once."""

from threadmark.config import as_thread_id
from threadmark.metadata import run_id_in
from threadmark.names import THREAD_ID_BYTES, check_length
from threadmark.program import Operation, Program, read, write
from threadmark.saver.context import SaverContext
from threadmark.saver.paging import Pages
from threadmark.saver.proving.batches import proven_batches
from threadmark.saver.proving.checks import checkpoint_row, prove_checkpoint, rebound_write
from threadmark.saver.proving.completeness import prove_complete
from threadmark.store import Change, CheckpointRow, Scope, now

_PAGE = 256


def copy_thread(context: SaverContext, source: str, target: str) -> Operation[bool]:
    """Copy everything in `source` to `target`. What exists in both under one key is taken from `source`.

    Returns whether there is a source.
    """
    source, target = as_thread_id(source), as_thread_id(target)
    check_length(target, THREAD_ID_BYTES, "target_thread_id")
    if source == target:
        return (yield from read(context.store.epoch, source)) is not None
    return (yield from write(_copy, context, source, target))


def _copy(context: SaverContext, source: str, target: str) -> Program[bool]:
    """One transaction: a copy is there whole or not at all.

    A row's check binds it to its thread, so each row is proven under the old key and bound to the new one: damage
    is never copied into a row that looks good.
    """
    epochs = {}
    for thread_id in sorted((source, target)):
        epochs[thread_id] = yield from context.store.lock(thread_id)
    if epochs[source] is None:
        return False
    yield from prove_complete(context, source, None)
    moment = now()
    yield from context.store.add(Change(target, None, moment, {}, (), (), None))
    yield from context.store.copy_segments(source, target)
    pages = Pages(Scope(source), _PAGE)
    while pages.more:
        page = pages.read((yield from context.store.page(*pages.request)))
        rows = yield from context.store.rows(source, [outline.key for outline in page])
        bound = [_rebound(row, target) for row in rows]
        yield from context.store.replace(Change(target, None, moment, {}, bound, (), None))
    writes = yield from context.store.writes(source, None)
    proven_batches(source, writes)
    bound_writes = [rebound_write(source, target, write) for write in writes]
    yield from context.store.add(Change(target, None, moment, {}, (), bound_writes, None))
    return True


def _rebound(row: CheckpointRow, target: str) -> CheckpointRow:
    """Verify a checkpoint's row and return it for another thread."""
    prove_checkpoint(row)
    outline = row.outline._replace(thread_id=target)
    return checkpoint_row(outline, row.header, run_id_in(outline.metadata))
