"""Copying a thread: every checkpoint, every pending write, and the bytes once."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from threadmark.config import named_thread
from threadmark.errors import ConflictError
from threadmark.metadata import run_id_in
from threadmark.names import THREAD_ID_BYTES, check_length
from threadmark.program import Operation, Program, read, write, write_and_reclaim
from threadmark.saver.batches import proven_batches, separate_rows
from threadmark.saver.completeness import prove_complete
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.removing import sweep
from threadmark.saver.operations.writing import busy_error, refusal_error
from threadmark.saver.paging import Pages
from threadmark.saver.proving import prove_checkpoint, rebound_write, sound_row, with_check
from threadmark.store.contract import Change, CheckpointRow, Scope, WriteRow, now
from threadmark.store.threads import thread_row

_PAGE = 256


def copy_thread(context: SaverContext, source: object, target: object) -> Operation[bool]:
    """Copy everything in `source` to `target`. If both have a checkpoint, that of `source` is taken.

    If both have a task's ordinary write, the target's stays, as the first write always does. Returns whether there is a
    source.
    """
    source, target = named_thread(source), named_thread(target)
    check_length(target, THREAD_ID_BYTES, "target_thread_id")
    if source == target:
        return (yield from read(context.store.epoch, source)) is not None
    replaced: list[bool] = []
    copied = yield from write(_copy, context, source, target, replaced)
    if any(replaced):  # a message's bytes go with it, and those of writes that were left out
        yield from sweep(context, target)
    return copied


def rename_thread(context: SaverContext, thread_id: object, new_thread_id: object) -> Operation[bool]:
    """Move everything of a thread to another id. Returns whether there is a thread."""
    source, target = named_thread(thread_id), named_thread(new_thread_id)
    check_length(target, THREAD_ID_BYTES, "new_thread_id")
    if source == target:
        return (yield from read(context.store.epoch, source)) is not None
    return (yield from write_and_reclaim(_rename, context, source, target, []))


def _rename(context: SaverContext, source: str, target: str, tried: list[int | None]) -> Program[bool]:
    """Move a thread in one transaction. `tried` has the target's epochs after earlier attempts.

    A driver tries again if a connection was lost, even after the commit. If the two threads are
    not in one place, an earlier attempt may have stored the target, and met a source that had changed.
    """
    epochs = yield from _locked(context, source, target)
    if epochs[source] is None:
        return epochs[target] is not None and epochs[target] in tried
    if epochs[target] is not None and epochs[target] not in tried:
        raise ConflictError(f"thread {target!r} exists already: choose another id, or delete it first")
    lease = yield from context.store.lease(source)
    if lease is not None and lease.left:
        raise busy_error(source, lease)
    yield from _copy(context, source, target, [])
    yield from context.store.drop(source, now())
    tried.append((yield from context.store.epoch(target)))
    return True


def _locked(context: SaverContext, source: str, target: str) -> Program[dict[str, int | None]]:
    """Lock two threads, and return their epochs."""
    epochs = {}
    for thread_id in sorted((source, target)):
        epochs[thread_id] = yield from context.store.lock(thread_id)
    return epochs


def _copy(context: SaverContext, source: str, target: str, replaced: list[bool]) -> Program[bool]:
    """Copy in one transaction: a copy is there whole or not at all.

    `replaced` gets whether bytes were left without use. A row's check binds it to its thread, so each row is proven
    under the old key and bound to the new one: damage is never copied into a row that looks good.
    """
    epochs = yield from _locked(context, source, target)
    if epochs[source] is None:
        return False
    yield from prove_complete(context, source, None)
    moment = now()
    change = Change(target, None, moment, {}, (), (), None)
    added = yield from context.store.add(change)
    if added.refused is not None:
        raise refusal_error(context, change, added.refused, (yield from context.store.lease(target)))
    if epochs[target] is None:
        yield from _describe(context, source, target)
    yield from context.store.copy_segments(source, target)
    pages = Pages(Scope(source), _PAGE)
    while pages.more:
        page = pages.read((yield from context.store.page(*pages.request)))
        rows = yield from context.store.rows(source, [outline.key for outline in page])
        bound = [_rebound(row, target) for row in rows]
        added = yield from context.store.replace(Change(target, None, moment, {}, bound, (), None))
        replaced.append(added.replaced)
    writes = yield from context.store.writes(source, None)
    proven = proven_batches(source, writes)
    bound_writes = [rebound_write(source, target, write) for write in writes]
    # Messages are no checkpoints that listings go by, and were not stored just now.
    outline = yield from context.store.thread(source)
    updated = outline.updated_at if outline else 0
    change = Change(target, None, updated, {}, (), bound_writes, None, touches=True)
    added = yield from context.store.add(change)
    if added.pack_left_out:
        yield from _add_left_out(context, change, proven)
        replaced.append(True)
    return True


def _add_left_out(context: SaverContext, change: Change, writes: Sequence[WriteRow]) -> Program[None]:
    """Add those writes that a pack of the target has kept out, because their tasks had written to the target before."""
    target = change.thread_id
    there = {row[:4] for row in proven_batches(target, (yield from context.store.writes(target, None)))}
    missing = sorted((row for row in writes if row[:4] not in there), key=itemgetter(0, 1, 2, 3))
    for (ns, checkpoint_id, task_id), of_task in groupby(missing, itemgetter(0, 1, 2)):
        rows = list(of_task)
        written = [(row.idx, row.channel, row.value) for row in rows]
        separate = separate_rows(target, ns, checkpoint_id, task_id, rows[0].task_path, written)
        yield from context.store.add(change._replace(writes=separate))


def _describe(context: SaverContext, source: str, target: str) -> Program[None]:
    """Let a new copy have the owner, title, metadata and expiry of its source."""
    outline = yield from context.store.thread(source)
    if outline is not None:
        yield from context.store.set_thread(thread_row(sound_row(outline)._replace(thread_id=target)))


def _rebound(row: CheckpointRow, target: str) -> CheckpointRow:
    """Verify a checkpoint's row and return it for another thread."""
    prove_checkpoint(row)
    outline = row.outline._replace(thread_id=target)
    return with_check(row._replace(outline=outline, run_id=run_id_in(outline.metadata)))
