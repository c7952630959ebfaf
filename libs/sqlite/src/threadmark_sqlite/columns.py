"""Conversion of Python values to columns and back.

Reading never raises: a damaged column gives some value, and the row's check then reports that it is wrong, with its
place.

Values that every step writes are bytearrays: for bytes, sqlite3 looks for an adapter each time, which takes ten times
as long as the copy.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from threadmark.backends import (
    ESCAPES,
    NO_NUMBER,
    UUID_BYTES,
    CheckpointRow,
    Found,
    LeaseRow,
    Outline,
    ThreadCounts,
    ThreadOutline,
    ThreadRow,
    WriteRow,
    counterpart,
    from_column,
    packed_uuid,
    to_column,
    uuid_text,
)
from threadmark_sqlite.sql.expressions import PENDING

_LOW, _HIGH = ESCAPES
"""A text with neither is its own column; asked here, since to call a function takes longer than to look."""

NO_SEGMENTS: Mapping[bytes, bytes] = {}
"""The segments that a found checkpoint brings along: none on this backend."""


@counterpart("columns.id_column", is_whole=True)
@lru_cache(256)  # all writes of a task share two ids, and all tasks of a step one
def id_column(text: str) -> str | bytearray:
    """Return the column of an id that is only compared for equality: 16 bytes for a UUID in its usual form."""
    packed = packed_uuid(text)
    return to_column(text) if packed is None else bytearray(packed)


@lru_cache(256)
def from_id_column(column: Any) -> str:
    """Return the id that `id_column` took."""
    if isinstance(column, bytes) and len(column) == UUID_BYTES:
        return uuid_text(column)
    return from_text_column(column)


def from_text_column(column: Any) -> str:
    """Return the string that `to_column` took."""
    if type(column) is str:
        return column if _LOW not in column and _HIGH not in column else from_column(column)
    return f"\ufffd{type(column).__name__}"


name = lru_cache(1024)(from_text_column)
"""Like `to_column`, for values that many rows share: namespaces, channels, paths of tasks."""


def text_or_null(text: str | None) -> str | None:
    """Return the column of a text that may be missing."""
    return None if text is None else to_column(text)


def from_text_or_null(column: Any) -> str | None:
    """Return the text that `text_or_null` took."""
    return None if column is None else from_text_column(column)


def from_blob_column(column: Any) -> bytes:
    """Return the bytes of a column."""
    return column if isinstance(column, bytes) else b""


def as_number(column: Any) -> int:
    """Return the number in a column, in which SQLite accepts any type."""
    return column if type(column) is int else NO_NUMBER


def as_number_or_null(column: Any) -> int | None:
    """Return the number in a column, which may be missing."""
    return None if column is None else as_number(column)


def outline(thread_id: str, columns: Any) -> Outline:
    """Return a checkpoint's outline from the columns of `sql.expressions.OUTLINE`, whatever they hold."""
    ns, ranked, checkpoint_id, parent, created_at, metadata = columns
    rank = from_text_column(ranked)
    return Outline(
        thread_id=thread_id,
        ns=name(ns),
        id=rank if checkpoint_id is None else from_text_column(checkpoint_id),
        rank=rank,
        parent=from_text_or_null(parent),
        created_at=as_number(created_at),
        metadata=from_text_column(metadata),
    )


@counterpart("columns.checkpoint_row", outline, is_whole=True)
def checkpoint_row(thread_id: str, columns: Any) -> CheckpointRow:
    """Return a checkpoint from the columns of `sql.expressions.ROW`, whatever they hold."""
    *of_outline, header, check = columns
    return CheckpointRow(
        outline(thread_id, of_outline), header=from_blob_column(header), check=from_blob_column(check), run_id=None
    )


def write_of(ns: str, checkpoint_id: str, columns: Any) -> WriteRow:
    """Return a pending write from the columns of `sql.expressions.PENDING`, whatever they hold."""
    task_id, task_path, idx, channel, value, check = columns
    return WriteRow(
        ns=ns,
        checkpoint_id=checkpoint_id,
        task_id=from_id_column(task_id),
        idx=as_number(idx),
        task_path=name(task_path),
        channel=name(channel),
        value=from_blob_column(value),
        check=from_blob_column(check),
    )


@counterpart("columns.found_of", outline, write_of, from_text_column, as_number)
def found_of(
    thread_id: str,
    ns: str,
    rows: list[tuple[Any, ...]],
    with_head: bool = True,  # noqa: FBT001, FBT002 - compiled functions are called by position
) -> Found:
    """Return a checkpoint and its writes from the columns of `sql.finding.FIND` and its variants, checkpoint first."""
    head, _, epoch, owner, expires_at, *of_checkpoint = rows[0]
    newest = from_text_or_null(head) if with_head else None
    if of_checkpoint[0] is None:  # the head is the only row
        return Found(0, None, (), NO_SEGMENTS, newest, from_text_or_null(owner), as_number_or_null(expires_at))
    row = checkpoint_row(thread_id, of_checkpoint)
    writes = writes_of(ns, row.outline.id, rows[1:])
    about = from_text_or_null(owner), as_number_or_null(expires_at)
    return Found(as_number(epoch), row, writes, NO_SEGMENTS, newest, *about)


@counterpart("columns.checkpoint_columns", is_whole=True)
def checkpoint_columns(thread: int, row: CheckpointRow) -> tuple[Any, ...]:
    """Return the number of a thread and the columns of `sql.expressions.CHECKPOINT`."""
    _, ns, checkpoint_id, rank, parent, created_at, metadata = row.outline
    return (
        thread,
        to_column(ns),
        to_column(rank),
        None if checkpoint_id == rank else to_column(checkpoint_id),
        text_or_null(parent),
        created_at,
        to_column(metadata),
        bytearray(row.header),
        bytearray(row.check),
    )


def rewriting_columns(thread: int, row: CheckpointRow) -> tuple[Any, ...]:
    """Return the parameters of `sql.removing.REWRITE_CHECKPOINT`."""
    _, ns, rank, _, *rewritten = checkpoint_columns(thread, row)
    return *rewritten, thread, ns, rank


def writes_of(ns: str, checkpoint_id: str, rows: list[tuple[Any, ...]]) -> list[WriteRow]:
    """Return the pending writes from the columns of `sql.finding.WRITES_OF_CHECKPOINT`, or from more columns."""
    return [write_of(ns, checkpoint_id, columns[1 : 1 + len(PENDING)]) for columns in rows]


def write_with_key(columns: Any) -> WriteRow:
    """Return a pending write from the columns of `sql.expressions.WRITE`, whatever they hold."""
    ns, checkpoint_id, *rest = columns
    return write_of(name(ns), from_id_column(checkpoint_id), rest)


@counterpart("columns.write_rows", write_with_key, is_whole=True)
def write_rows(rows: list[tuple[Any, ...]]) -> list[WriteRow]:
    """Return pending writes from the columns of `sql.expressions.WRITE`."""
    return [write_with_key(columns) for columns in rows]


@counterpart("columns.write_columns", is_whole=True)
def write_columns(thread: int, rows: Iterable[WriteRow]) -> list[Any]:
    """Return the number of a thread and the columns of `sql.expressions.WRITE`, one row after the other.

    Mostly all rows are of one task.
    """
    every: list[Any] = []
    known: tuple[str, str, str] | None = None
    for ns, checkpoint_id, task_id, idx, task_path, channel, value, check in rows:
        task = ns, checkpoint_id, task_id
        if task != known:
            known = task
            columns = thread, to_column(ns), id_column(checkpoint_id), id_column(task_id)
        path = to_column(task_path) if task_path else ""  # a batch's record has an empty one
        every += columns
        every += path, idx, to_column(channel) if channel else "", bytearray(value), bytearray(check)
    return every


def thread_outline(columns: Any) -> ThreadOutline:
    """Return a thread from the columns of `sql.threads._OUTLINE`."""
    thread_id, created_at, owner, title, metadata, expires_at, check, updated_at = columns
    row = ThreadRow(
        from_text_column(thread_id),
        as_number(created_at),
        from_text_or_null(owner),
        from_text_or_null(title),
        from_text_or_null(metadata),
        as_number_or_null(expires_at),
        from_blob_column(check),
    )
    return ThreadOutline(row, as_number(updated_at))


def thread_columns(row: ThreadRow) -> tuple[Any, ...]:
    """Return the parameters of `sql.threads.SET_THREAD` except the last."""
    _, _, owner, title, metadata, expires_at, check = row
    return (
        text_or_null(owner),
        text_or_null(title),
        None if title is None else to_column(title.casefold()),
        text_or_null(metadata),
        expires_at,
        check or None,
    )


def thread_counts(columns: Any) -> ThreadCounts:
    """Return the derived fields of a thread from the columns of `sql.threads.COUNTS`."""
    thread_id, checkpoints, namespaces, size, newest, *states = columns
    leased, failed, interrupted, unfinished = map(bool, states)
    counts = checkpoints, namespaces, size, from_text_or_null(newest)
    return ThreadCounts(from_text_column(thread_id), *counts, leased, failed, interrupted, unfinished)


def lease_row(columns: Any) -> LeaseRow:
    """Return a lease from the columns of `sql.threads.LEASE`."""
    token, left, holder, began, outlasts = columns
    return LeaseRow(as_number(token), left, from_text_or_null(holder) or "", from_text_or_null(began), bool(outlasts))


def lease_columns(lease: LeaseRow) -> tuple[Any, ...]:
    """Return the parameters of `sql.threads.SET_LEASE` except the last. A lease that ends at once has no end."""
    left = lease.left or None
    return left, left, to_column(lease.holder), text_or_null(lease.began)
