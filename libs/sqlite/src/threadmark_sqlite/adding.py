"""Adding and replacing rows of one thread, as programs: what a change is refused for, and what it inserts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from threadmark.program import Program
from threadmark.store import FIRST_RECORD, Added, Change, CheckpointRow, Key, WriteRow
from threadmark.text import to_column
from threadmark_sqlite import sql
from threadmark_sqlite.columns import checkpoint_columns, from_blob_column, from_text_column, write_columns
from threadmark_sqlite.steps import execute, executemany


class Thread(NamedTuple):
    """What a change has to know of the thread that it goes to."""

    number: int
    epoch: int
    live: bool


def admitted(change: Change) -> Program[Thread | Added]:
    """Return the thread of a change, created if it is new, or the outcome if the change is refused."""
    thread_id = to_column(change.thread_id)
    rows = yield from execute(sql.THREAD, (thread_id,))
    if change.epoch is not None and (not rows or rows[0][1] != change.epoch):
        return Added(rows[0][1] if rows else 0)
    if not rows:
        yield from execute(sql.ADD_THREAD, (thread_id, change.now, change.now))
        rows = yield from execute(sql.THREAD, (thread_id,))
    number, epoch, live, deleted_up_to = rows[0]
    if deleted_up_to is not None and change.continues and change.continues <= from_text_column(deleted_up_to):
        known = yield from execute(sql.HAS_CHECKPOINT, (number, *twice(change.continues)))
        if not known:
            return Added(epoch, too_late=True)
    return Thread(number, epoch, bool(live))


def insert(thread: Thread, change: Change) -> Program[list[WriteRow]]:
    """Insert the rows of a change. Returns the writes that replaced others, each with the value of the other one."""
    if not thread.live:
        yield from execute(sql.REVIVE_THREAD, (thread.number,))
    if change.segments:
        yield from executemany(sql.ADD_SEGMENT, [(thread.number, key, data) for key, data in change.segments.items()])
    for row in change.checkpoints:
        yield from execute(sql.ADD_CHECKPOINT, checkpoint_columns(thread.number, row))
        head = (change.thread_id, row.outline.ns, row.outline.rank)
        yield from execute(sql.ADD_TO_HEAD, tuple(map(to_column, head)))
    return (yield from _insert_writes(thread.number, change.writes)) if change.writes else []


def remove_checkpoints(thread_id: str, keys: Sequence[tuple[Any, ...]]) -> Program[None]:
    """Remove checkpoints, each given by the parameters of `sql.REMOVE_CHECKPOINT`, and count them off their heads."""
    if keys:
        yield from execute(sql.BEFORE_REMOVAL, (thread_id,))
        yield from executemany(sql.REMOVE_CHECKPOINT, keys)
        yield from execute(sql.AFTER_REMOVAL, (thread_id,))
        yield from execute(sql.REMOVE_EMPTY_HEADS, (thread_id,))


def old_headers(thread: int, rows: Sequence[CheckpointRow]) -> Program[dict[Key, bytes]]:
    """The headers of those checkpoints that are there already."""
    found: dict[Key, bytes] = {}
    for row in rows:
        _, ns, checkpoint_id, *_ = row.outline
        stored = yield from execute(sql.STORED_CHECKPOINT, (thread, to_column(ns), *twice(checkpoint_id)))
        found.update(((ns, checkpoint_id), from_blob_column(header)) for (header,) in stored)
    return found


def _insert_writes(thread: int, rows: Sequence[WriteRow]) -> Program[list[WriteRow]]:
    kept = [write_columns(thread, row) for row in rows if 0 <= row.idx < FIRST_RECORD]
    records = [write_columns(thread, row) for row in rows if row.idx >= FIRST_RECORD]
    replacing = [(row, write_columns(thread, row)) for row in rows if row.idx < 0]
    if kept:
        yield from executemany(sql.ADD_WRITE, kept)
    if records:
        yield from executemany(sql.ADD_RECORD, records)
    replaced: list[WriteRow] = []
    for row, columns in replacing:
        stored = yield from execute(sql.STORED_WRITE, columns[:5])
        replaced += [row._replace(value=from_blob_column(value)) for (value,) in stored]
    if replacing:
        yield from executemany(sql.REPLACE_WRITE, [columns for _, columns in replacing])
    return replaced


def twice(checkpoint_id: str) -> tuple[str, str]:
    """An id as the two parameters of a condition that looks for it in two columns."""
    column = to_column(checkpoint_id)
    return column, column
