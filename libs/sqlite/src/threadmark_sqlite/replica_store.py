"""The store operations for replication, in SQL.

SQLite runs in this process, so the marks of a summary's rows are added up here: the statement lists them in one text
for each table.
"""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import (
    Added,
    Change,
    Copied,
    Entry,
    Program,
    Replica,
    RowMarks,
    Summary,
    Waiting,
    now,
    sum_of_marks,
    to_column,
)
from threadmark_sqlite.columns import from_blob_column, from_id_column, from_text_column, name
from threadmark_sqlite.placeholders import chunks, with_placeholders
from threadmark_sqlite.sql import replication
from threadmark_sqlite.steps import execute


class SqliteReplicaStore:
    """The operations for replication on one database."""

    def replica(self) -> Program[Replica]:
        ((term, body),) = yield from execute(replication.REPLICA)
        return Replica(term, from_text_column(body))

    def set_replica(self, replica: Replica) -> Program[Replica]:
        yield from execute(replication.SET_REPLICA, (replica.term, to_column(replica.body), replica.term))
        return (yield from self.replica())

    def record(self, thread_id: str, body: bytes, term: int) -> Program[int | None]:
        if (yield from last_term()) > term:
            return None
        _, position = yield from _recorded(thread_id, body)
        return position

    def outbox(self, thread_id: str | None, limit: int) -> Program[list[Entry]]:
        if thread_id is None:
            rows = yield from execute(replication.OUTBOX, (limit,))
        else:
            rows = yield from execute(replication.OUTBOX_OF_THREAD, (to_column(thread_id), limit))
        return [
            Entry(from_text_column(thread_id), position, from_blob_column(body)) for thread_id, position, body in rows
        ]

    def waiting(self) -> Program[Waiting]:
        (row,) = yield from execute(replication.WAITING)
        return Waiting(*row)

    def settle(self, thread_id: str, position: int) -> Program[None]:
        yield from execute(replication.SETTLE, (to_column(thread_id), position))

    def positions(self, thread_ids: Sequence[str]) -> Program[dict[str, int]]:
        rows = yield from _of_ids(replication.POSITIONS, thread_ids)
        return {from_text_column(thread_id): position for thread_id, position in rows}

    def copied(self, thread_ids: Sequence[str]) -> Program[dict[str, Copied]]:
        rows = yield from _of_ids(replication.COPIED, thread_ids)
        return {from_text_column(thread_id): Copied(*known) for thread_id, *known in rows}

    def set_copied(self, thread_id: str, copied: Copied) -> Program[None]:
        return _set_copied(thread_id, copied)

    def marks(self, thread_id: str) -> Program[RowMarks]:
        asked = to_column(thread_id)
        checkpoints = yield from execute(replication.MARKED_CHECKPOINTS, (asked,))
        writes = yield from execute(replication.MARKED_WRITES, (asked, asked))
        segments = yield from execute(replication.MARKED_SEGMENTS, (asked,))
        return RowMarks(
            {
                (name(ns), from_text_column(key)): (from_text_column(rank), from_blob_column(mark))
                for ns, key, rank, mark in checkpoints
            },
            {
                (name(ns), from_id_column(key), from_id_column(task), index): from_blob_column(mark)
                for ns, key, task, index, mark in writes
            },
            {key: (size, from_blob_column(mark)) for key, size, mark in segments},
        )

    def summaries(self, after: str, limit: int) -> Program[list[Summary]]:
        rows = yield from execute(replication.SUMMARIES, (to_column(after), limit))
        return [_summary(*row) for row in rows]


def progress(thread_id: str) -> Program[tuple[Copied | None, bool]]:
    """Return how far a thread has been copied from the other database, and whether it has changes for that one."""
    asked = to_column(thread_id)
    ((*copied, has_entries),) = yield from execute(replication.PROGRESS, (asked, asked))
    return (None if copied[0] is None else Copied(*copied)), bool(has_entries)


def last_term() -> Program[int]:
    """Return the database's term."""
    ((term, _),) = yield from execute(replication.REPLICA)
    return int(term)


def noted(change: Change, added: Added) -> Program[Added]:
    """Record the entry of a change that was made, if it has one, or how far the thread was copied with it.

    Returns the outcome of the change, with the entry's position.
    """
    if change.copied is not None:
        yield from _set_copied(change.thread_id, Copied(change.copied.position, change.copied.epoch))
    if change.entry is None:
        return added
    previous, position = yield from _recorded(change.thread_id, change.entry)
    return added._replace(position=position, previous=previous)


def _set_copied(thread_id: str, copied: Copied) -> Program[None]:
    begun = now()
    yield from execute(replication.SET_COPIED, (to_column(thread_id), begun, begun, *copied))


def _recorded(thread_id: str, body: bytes) -> Program[tuple[int, int]]:
    """Add an entry to the outbox. Returns the thread's last position before it, and its own position."""
    thread, moment = to_column(thread_id), now()
    rows = yield from execute(replication.POSITION, (thread,))
    previous = rows[0][0] if rows else 0
    position = max(previous + 1, moment)
    yield from execute(replication.SET_POSITION, (thread, moment, moment, position))
    yield from execute(replication.ADD_ENTRY, (thread, position, bytearray(body)))
    return previous, position


def _of_ids(statement: str, thread_ids: Sequence[str]) -> Program[list[tuple[Any, ...]]]:
    """Return the rows of a statement with a list of threads."""
    found: list[tuple[Any, ...]] = []
    for some in chunks([to_column(thread_id) for thread_id in thread_ids]):
        found += yield from execute(with_placeholders(statement, some), some)
    return found


def _summary(
    thread_id: str,
    epoch: int,
    position: int,
    newest: str | None,
    of_thread: str,
    *of_rows: str | None,
) -> Summary:
    checkpoints, writes, records = ([] if listed is None else listed.split(",") for listed in of_rows)
    marks = [of_thread or "", *checkpoints, *writes, *records]
    return Summary(
        from_text_column(thread_id),
        epoch,
        position,
        "" if newest is None else from_text_column(newest),
        len(checkpoints),
        len(writes) + len(records),
        sum_of_marks(map(bytes.fromhex, marks)),
    )
