"""Programs that add and replace the rows of one thread, or refuse to."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from threadmark.backends import (
    FIRST_RECORD,
    PACK,
    Added,
    Change,
    CheckpointRow,
    Facts,
    Key,
    Program,
    WriteRow,
    is_outdated,
    judged,
    may_be_gone,
    renewal,
    to_column,
)
from threadmark_sqlite.columns import (
    as_number,
    as_number_or_null,
    checkpoint_columns,
    from_blob_column,
    from_text_column,
    from_text_or_null,
    id_column,
    text_or_null,
    write_columns,
)
from threadmark_sqlite.placeholders import with_rows
from threadmark_sqlite.replica_store import last_term, progress
from threadmark_sqlite.sql import adding, expressions, removing
from threadmark_sqlite.steps import execute, executemany

_ROWS = 32
"""The most rows of one statement. It takes two thirds of the time of single ones; sqlite3 caches 128 statements."""


class Thread(NamedTuple):
    """The state of the thread that a change goes to: the columns of `sql.adding.THREAD`."""

    number: int
    epoch: int
    live: int
    deleted_up_to: str | None
    owner: str | None
    expires_at: int | None
    token: int
    ttl: int | None
    left: int | None
    """Microseconds until the thread's lease ends; negative if it has ended, None if there is none."""
    minute: int | None
    """The minute of the last update, as listings have it."""


def _thread(columns: Sequence[Any]) -> Thread:
    """Return a thread from its columns. A thread whose numbers are damaged counts too, so that it can be deleted."""
    thread = Thread(*columns)
    return thread._replace(
        epoch=as_number(thread.epoch),
        expires_at=as_number_or_null(thread.expires_at),
        token=as_number(thread.token),
        ttl=as_number_or_null(thread.ttl),
    )


_NONE = Thread(0, 0, 0, None, None, None, 0, None, None, None)


def thread_of(thread_id: str) -> Program[Thread | None]:
    """Return a thread's row, live or not."""
    rows = yield from execute(adding.THREAD, (to_column(thread_id),))
    return _thread(rows[0]) if rows else None


class Admission(NamedTuple):
    """The thread of a change that is not refused. It was created if it was not live."""

    thread: Thread
    facts: Facts


def admitted(change: Change, *, replaces: bool) -> Program[Admission | Added]:
    """Return the thread of a change, or the outcome if the change is refused."""
    if change.term is not None and is_outdated(change, (yield from last_term())):
        return Added(0, "term")
    copied, has_entries = (None, False) if change.copied is None else (yield from progress(change.thread_id))
    row, exists = yield from _asked(change, replaces=replaces)
    thread = row or _NONE
    facts = Facts(
        epoch=None if row is None else row.epoch,
        live=bool(thread.live),
        owner=from_text_or_null(thread.owner),
        token=thread.token,
        left=thread.left,
        ttl=thread.ttl or 0,
        lacks_continued=(yield from _lacks_continued(thread, change)),
        exists=exists,
        newest=(yield from _newest(change)) if change.has_place else "",
        copied=copied,
        has_entries=has_entries,
    )
    refused = judged(change, facts, replaces=replaces)
    if refused is not None:
        return refused
    return Admission(thread if thread.live else (yield from _begun(change)), facts)


def _asked(change: Change, *, replaces: bool) -> Program[tuple[Thread | None, bool]]:
    """Return the row of a change's thread, and whether one of the change's checkpoints exists, if it matters."""
    thread_id = to_column(change.thread_id)
    if len(change.checkpoints) == 1:
        _, ns, checkpoint_id, *_ = change.checkpoints[0].outline
        rows = yield from execute(adding.THREAD_AND_CHECKPOINT, (to_column(ns), *twice(checkpoint_id), thread_id))
        *columns, exists = rows[0] if rows else (None,)
        return (_thread(columns) if rows else None), bool(exists)
    thread = yield from thread_of(change.thread_id)
    if thread is None or (replaces and not change.has_place):
        return thread, False
    return thread, bool((yield from old_headers(thread.number, change.checkpoints)))


class Inserted(NamedTuple):
    """The outcome of the writes of a change."""

    replaced: Sequence[WriteRow]
    """The writes that replaced others, each with the value of the other one."""
    pack_left_out: bool = False


def added(admission: Admission, change: Change, writes: Inserted, *, replaced: bool = False) -> Added:
    """Return the outcome of a change that was made."""
    thread = admission.thread
    return Added(
        thread.epoch + replaced,
        replaced=replaced,
        replaced_writes=writes.replaced,
        renewal=renewal(change, admission.facts),
        expires_at=thread.expires_at,
        pack_left_out=writes.pack_left_out,
    )


def insert(thread: Thread, change: Change) -> Program[Inserted]:
    """Insert the rows of a change. Returns the outcome of its writes."""
    for statement, columns in segment_inserts(thread.number, change.segments):
        yield from execute(statement, columns)
    for row in change.checkpoints:
        yield from execute(adding.ADD_CHECKPOINT, checkpoint_columns(thread.number, row))
        _, ns, checkpoint_id, rank, _, created_at, _ = row.outline
        head = (to_column(change.thread_id), to_column(ns), to_column(rank), created_at, id_column(checkpoint_id))
        yield from execute(adding.ADD_TO_HEAD, head)
    if change.touches:
        yield from execute(adding.TOUCH, (change.now, to_column(change.thread_id)))
    if any(moment // expressions.MINUTE != thread.minute for moment in _updates(change)):
        yield from execute(adding.FOLLOW_HEAD, (thread.number,))
    return (yield from _insert_writes(thread.number, change.writes)) if change.writes else Inserted([])


def remove_checkpoints(thread_id: str, keys: Sequence[tuple[Any, ...]]) -> Program[None]:
    """Remove checkpoints, as parameters of `sql.removing.REMOVE_CHECKPOINT`, and update the counts of their heads."""
    for (number, ns), some in groupby(sorted(keys), key=itemgetter(0, 1)):
        ((before,),) = yield from execute(removing.CHANGED_ROWS)
        yield from executemany(removing.REMOVE_CHECKPOINT, list(some))
        ((after,),) = yield from execute(removing.CHANGED_ROWS)
        yield from execute(removing.COUNT_OFF, (after - before, number, ns, thread_id, ns))
    if keys:
        yield from execute(removing.EMPTY_ROOT_HEAD, (thread_id,))
        yield from execute(removing.REMOVE_EMPTY_HEADS, (thread_id,))


def old_headers(thread: int, rows: Sequence[CheckpointRow]) -> Program[dict[Key, bytes]]:
    """Return the headers of those checkpoints that exist already."""
    found: dict[Key, bytes] = {}
    for row in rows:
        _, ns, checkpoint_id, *_ = row.outline
        stored = yield from execute(adding.STORED_CHECKPOINT, (thread, to_column(ns), *twice(checkpoint_id)))
        found.update(((ns, checkpoint_id), from_blob_column(header)) for (header,) in stored)
    return found


def _lacks_continued(thread: Thread, change: Change) -> Program[bool]:
    """Return whether the change continues a checkpoint that was deleted with its thread."""
    if thread.deleted_up_to is None or not may_be_gone(change, from_text_column(thread.deleted_up_to)):
        return False
    return not (yield from execute(adding.HAS_CHECKPOINT, (thread.number, *twice(change.continues or ""))))


def _newest(change: Change) -> Program[str]:
    """Return the greatest rank of the namespace that a checkpoint is added to, "" if there is none."""
    rows = yield from execute(adding.HEAD, (to_column(change.thread_id), to_column(change.checkpoints[0].outline.ns)))
    return from_text_column(rows[0][0]) if rows else ""


def _updates(change: Change) -> Iterator[int]:
    """Yield the times that may be the last update of a thread."""
    for row in change.checkpoints:
        if not row.outline.ns:
            yield row.outline.created_at
    if change.touches:
        yield change.now


def _begun(change: Change) -> Program[Thread]:
    """Create the thread of a change, and put it in listings. Returns its row."""
    thread_id = to_column(change.thread_id)
    owner, expires_at, check = change.beginning
    about = (text_or_null(owner), expires_at, check or None)
    yield from execute(adding.ADD_ROOT_HEAD, (thread_id, change.now))
    yield from execute(adding.BEGIN_THREAD, (thread_id, change.now, change.now, *about, thread_id))
    (row,) = yield from execute(adding.THREAD, (thread_id,))
    return _thread(row)


def segment_inserts(thread: int, segments: Mapping[bytes, bytes]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the statements that add segments, with their parameters."""
    every = list(segments.items())
    for start in range(0, len(every), _ROWS):
        some = every[start : start + _ROWS]
        columns: list[Any] = []
        for key, data in some:
            columns += (thread, bytearray(key), bytearray(data))
        yield with_rows(adding.ADD_SEGMENTS, adding.ROW_OF_SEGMENT, len(some)), columns


def write_inserts(thread: int, statement: str, rows: Sequence[WriteRow]) -> Iterator[tuple[str, list[Any], int]]:
    """Yield the statements that add writes, with their parameters and numbers of rows."""
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        yield with_rows(statement, adding.ROW_OF_WRITE, len(some)), write_columns(thread, some), len(some)


def _insert_writes(thread: int, rows: Sequence[WriteRow]) -> Program[Inserted]:
    kinds: dict[tuple[str, bool], list[WriteRow]] = {}
    for row in rows:
        index = row.idx
        kind = adding.REPLACE_WRITES if index < 0 else adding.ADD_WRITES if index < FIRST_RECORD else adding.ADD_RECORDS
        kinds.setdefault((kind, index == PACK), []).append(row)
    replaced: list[WriteRow] = []
    for row in kinds.get((adding.REPLACE_WRITES, False), ()):
        *key, _, index, _, _, _ = write_columns(thread, [row])
        stored = yield from execute(adding.STORED_WRITE, (*key, index))
        replaced += [row._replace(value=from_blob_column(value)) for (value,) in stored]
    pack_left_out = False
    for (statement, are_packs), every in kinds.items():
        for insert_some, columns, rows_of_it in write_inserts(thread, statement, every):
            yield from execute(insert_some, columns)
            if are_packs:
                ((count,),) = yield from execute(adding.ADDED_ROWS)
                pack_left_out = pack_left_out or count < rows_of_it
    return Inserted(replaced, pack_left_out)


def twice(checkpoint_id: str) -> tuple[str, str]:
    """Return an id as the two parameters of a condition that looks for it in two columns."""
    column = to_column(checkpoint_id)
    return column, column
