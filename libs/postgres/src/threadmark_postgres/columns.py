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


def checkpoint_alone(change: Change) -> tuple[Any, ...] | None:
    """Return the parameters of `sql.adding.ADD_CHECKPOINT`.

    Returns None if the change is not one checkpoint whose rank is its id.
    """
    if len(change.checkpoints) != 1 or change.writes:
        return None
    ((outline, header, check, run_id),) = change.checkpoints
    if outline.rank != outline.id:
        return None
    return (
        *_change_alone(change),
        to_column(outline.ns),
        to_column(outline.id),
        optional(outline.parent),
        outline.created_at,
        to_column(outline.metadata),
        header,
        check,
        None if run_id is None else run_number(run_id),
        Blobs(change.needs()),
        *_segments(change),
        change.term,
        change.entry,
    )


def task_alone(change: Change) -> tuple[Any, ...] | None:
    """Return the parameters of `sql.adding.ADD_TASK`, None if the change is not one task's pack with its record.

    They must be of the checkpoint that the change continues.
    """
    if change.checkpoints or len(change.writes) != _PACK_AND_RECORD:
        return None
    pack, record = change.writes
    if pack.idx != PACK or record.idx < FIRST_RECORD or pack[:3] != record[:3]:
        return None
    if pack.channel or record.channel or record.task_path or pack.checkpoint_id != change.continues:
        return None
    return (
        *_change_alone(change),
        to_column(pack.ns),
        id_column(pack.task_id),
        to_column(pack.task_path),
        pack.value,
        pack.check,
        record.idx,
        record.value,
        record.check,
        *_segments(change),
        change.term,
        change.entry,
    )


def _change_alone(change: Change) -> tuple[Any, ...]:
    return (
        to_column(change.thread_id),
        change.epoch,
        change.token,
        change.only_owner,
        optional(change.beginning.owner),
        optional(change.continues),
    )


def _segments(change: Change) -> tuple[Blobs | None, Blobs | None]:
    """Return the keys and data. Two changes that add the same segments use one order, or they could deadlock."""
    if not change.segments:
        return None, None
    keys = sorted(change.segments)
    return Blobs(keys), Blobs(change.segments[key] for key in keys)


def change_columns(change: Change) -> tuple[Any, ...]:
    """Return the first parameters of `functions/add_1.sql`: the change itself."""
    owner, expires_at, check = change.beginning
    return (
        to_column(change.thread_id),
        change.epoch,
        change.now,
        optional(change.continues),
        change.token,
        optional(owner),
        expires_at,
        check or None,
    )


def rows_of(change: Change) -> tuple[Any, ...]:
    """Return its last parameters: the rows of the change, if it has some, and the data for its replication.

    Two changes that add the same rows use one order, or they could deadlock.
    """
    params: list[Any] = []
    if change.segments:
        params += _segments(change)
    if change.checkpoints:
        rows = change.checkpoints
        params += checkpoint_columns(rows if change.has_place else sorted(rows, key=_place_of_checkpoint))
        params.append(Blobs(change.needs()) if len(change.checkpoints) == 1 else None)
    if change.writes:
        params += write_columns(sorted(change.writes, key=_place_of_write))
    if is_replicated(change):
        params += change.term, change.entry, *(change.copied or (None, None, None))
    return tuple(params)


def _place_of_checkpoint(row: CheckpointRow) -> tuple[str, str]:
    return row.outline.ns, row.outline.rank


def _place_of_write(row: WriteRow) -> tuple[str, str, str, int]:
    return row.ns, row.checkpoint_id, row.task_id, row.idx


def is_replicated(change: Change) -> bool:
    """Return whether a change has a term, an entry for the outbox, or a position in another database."""
    return change.term is not None or change.entry is not None or change.copied is not None


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
