"""Conversion of Python values to columns and back.

Reading never raises: a damaged column gives some value, and the row's check then reports that it is wrong, with its
place.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from threadmark.backends import (
    FIRST_RECORD,
    PACK,
    UUID_BYTES,
    Change,
    CheckpointRow,
    Outline,
    WriteRow,
    from_column,
    packed_uuid,
    to_column,
    uuid_text,
)
from threadmark_postgres.arrays import Blobs, Numbers, Texts

Columns = tuple[Texts | Blobs | Numbers, ...]

_PACK_AND_RECORD = 2
"""The rows of most batches of writes."""

_NO_CHECKPOINT, _NO_TASK = (None,) * 7, (None,) * 6
"""The parameters of `functions/add_one_1.sql` for the part that a change does not have."""

_TEXT, _LONGER_TEXT = b"\x01", b"\x02\x00"
"""The prefixes of ids that are not UUIDs. The second is used if the first would make one as long as a UUID."""


def id_column(text: str) -> bytes:
    """Return the column of an id that is only compared for equality: 16 bytes for a UUID in its usual form."""
    packed = packed_uuid(text)
    if packed is not None:
        return packed
    encoded = text.encode("utf-8", "surrogatepass")
    return (_LONGER_TEXT if len(encoded) == UUID_BYTES - 1 else _TEXT) + encoded


def from_id_column(column: bytes) -> str:
    """Return the id that `id_column` took."""
    if len(column) == UUID_BYTES:
        return uuid_text(column)
    for start in (_TEXT, _LONGER_TEXT):
        if column.startswith(start):
            return _as_text(column.removeprefix(start))
    return f"\ufffd{column.hex()}"


def optional(text: str | None) -> str | None:
    """Return text as a column, NULL if there is none."""
    return None if text is None else to_column(text)


def from_optional(column: str | None) -> str | None:
    """Return the text that `optional` took."""
    return None if column is None else from_column(column)


def outline(thread_id: str, columns: Sequence[Any]) -> Outline:
    """Return a checkpoint's outline from the columns of `sql.expressions.OUTLINE`."""
    ns, checkpoint_id, rank, parent, created_at, metadata = columns
    return Outline(
        thread_id,
        from_column(ns),
        from_column(checkpoint_id),
        from_column(rank),
        from_optional(parent),
        created_at,
        from_column(metadata),
    )


def checkpoint_row(thread_id: str, columns: Sequence[Any]) -> CheckpointRow:
    """Return a checkpoint from the columns of `sql.expressions.ROW`."""
    *of_outline, header, check = columns
    return CheckpointRow(outline(thread_id, of_outline), header, check, None)


def checkpoint_columns(rows: Sequence[CheckpointRow]) -> Columns:
    """Return one array for each column of `sql.expressions.CHECKPOINT`."""
    outlines = [row.outline for row in rows]
    return (
        Texts(to_column(outline.ns) for outline in outlines),
        Texts(None if outline.id == outline.rank else to_column(outline.id) for outline in outlines),
        Texts(to_column(outline.rank) for outline in outlines),
        Texts(optional(outline.parent) for outline in outlines),
        Numbers(outline.created_at for outline in outlines),
        Texts(to_column(outline.metadata) for outline in outlines),
        Blobs(row.header for row in rows),
        Blobs(row.check for row in rows),
        Numbers(None if row.run_id is None else run_number(row.run_id) for row in rows),
    )


def write_row(columns: Sequence[Any]) -> WriteRow:
    """Return a pending write from the columns of `sql.listing._WRITE`."""
    ns, checkpoint_id, task_id, idx, task_path, channel, value, check = columns
    return WriteRow(
        from_column(ns),
        from_column(checkpoint_id),
        from_id_column(task_id),
        idx,
        from_column(task_path),
        from_column(channel),
        value,
        check,
    )


def write_columns(rows: Sequence[WriteRow]) -> Columns:
    """Return one array for each column of `sql.expressions.WRITE`."""
    return (
        Texts(to_column(row.ns) for row in rows),
        Texts(to_column(row.checkpoint_id) for row in rows),
        Blobs(id_column(row.task_id) for row in rows),
        Numbers(row.idx for row in rows),
        Texts(to_column(row.task_path) for row in rows),
        Texts(to_column(row.channel) for row in rows),
        Blobs(row.value for row in rows),
        Blobs(row.check for row in rows),
    )


def one_row(change: Change) -> tuple[Any, ...] | None:
    """Return the parameters of `functions/add_one_1.sql`.

    Returns None if the change is neither one checkpoint whose rank is its id, nor a task's pack with its record for the
    checkpoint that it continues.
    """
    if not change.continues or change.touches:
        return None
    if len(change.checkpoints) == 1 and not change.writes:
        ((outline, header, check, run_id),) = change.checkpoints
        if outline.rank != outline.id:
            return None
        ns, *others = (
            to_column(outline.ns),
            to_column(outline.id),
            optional(outline.parent),
            outline.created_at,
            to_column(outline.metadata),
            header,
            None if run_id is None else run_number(run_id),
            Blobs(change.needs()),
            *_NO_TASK,
        )
    elif len(change.writes) == _PACK_AND_RECORD and not change.checkpoints:
        pack, record = change.writes
        check = pack.check
        if pack.idx != PACK or record.idx < FIRST_RECORD or pack[:3] != record[:3]:
            return None
        if pack.channel or record.channel or record.task_path or pack.checkpoint_id != change.continues:
            return None
        ns, *others = (
            to_column(pack.ns),
            *_NO_CHECKPOINT,
            id_column(pack.task_id),
            to_column(pack.task_path),
            pack.value,
            record.idx,
            record.value,
            record.check,
        )
    else:
        return None
    return *_judged(change), ns, *others, check, *_segments_and_entry(change)


def any_rows(change: Change, *, replaces: bool, waits: bool) -> tuple[Any, ...]:
    """Return the parameters of `functions/add_1.sql`.

    Two changes that add the same rows use one order, or they could deadlock.
    """
    checkpoints = change.checkpoints if change.has_place else sorted(change.checkpoints, key=_place_of_checkpoint)
    return (
        *_judged(change),
        change.now,
        change.beginning.expires_at,
        change.beginning.check or None,
        optional(change.expects),
        change.sorts_last,
        change.touches,
        replaces,
        waits,
        *checkpoint_columns(checkpoints),
        Blobs(change.needs()) if len(checkpoints) == 1 else None,
        *write_columns(sorted(change.writes, key=_place_of_write)),
        *_segments_and_entry(change),
        *(change.copied or (None, None, None)),
    )


def size_of(change: Change) -> int:
    """Return roughly how many bytes are sent, including metadata, which may be as large as any value."""
    size = sum(map(len, change.segments.values()))
    for row in change.checkpoints:
        size += len(row.header) + len(row.outline.metadata)
    for written in change.writes:
        size += len(written.value)
    return size


def _judged(change: Change) -> tuple[Any, ...]:
    return (
        to_column(change.thread_id),
        change.epoch,
        change.token,
        change.only_owner,
        optional(change.beginning.owner),
        optional(change.continues),
    )


def _segments_and_entry(change: Change) -> tuple[Any, ...]:
    """Return the last parameters of both. Two changes that add the same segments use one order, too."""
    if not change.segments:
        return None, None, change.term, change.entry
    keys = sorted(change.segments)
    return Blobs(keys), Blobs(change.segments[key] for key in keys), change.term, change.entry


def _place_of_checkpoint(row: CheckpointRow) -> tuple[str, str]:
    return row.outline.ns, row.outline.rank


def _place_of_write(row: WriteRow) -> tuple[str, str, str, int]:
    return row.ns, row.checkpoint_id, row.task_id, row.idx


@lru_cache(maxsize=64)
def run_number(run_id: str) -> int:
    """Return a number for a run, by which an index finds its checkpoints.

    It only has to differ for most runs: the saver compares the metadata itself.
    """
    digest = blake2b(run_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _as_text(encoded: bytes) -> str:
    try:
        return encoded.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return f"\ufffd{encoded.hex()}"
