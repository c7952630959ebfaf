"""Python values as columns and back.

Reading never raises: of a damaged column comes some value, and the row's check says that it is the wrong one,
with its place.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from threadmark.format.packs import FIRST_RECORD, PACK
from threadmark.ids import UUID_BYTES, packed_uuid, uuid_text
from threadmark.names import from_column, to_column
from threadmark.store.contract import Change, CheckpointRow, Outline, WriteRow
from threadmark_postgres.arrays import Blobs, ChangeNumbers, Numbers, Texts

Columns = tuple[Texts | Blobs | Numbers, ...]

_ROWS_ALONE = 2
"""What most batches of writes have: a pack and the record of it."""

_TEXT, _LONGER_TEXT = b"\x01", b"\x02\x00"
"""The prefixes of ids that are not UUIDs. The second is used where the first would make one as long as a UUID."""


def id_column(text: str) -> bytes:
    """An id that is only compared for equality: 16 bytes where it is a UUID as it is usually written."""
    packed = packed_uuid(text)
    if packed is not None:
        return packed
    encoded = text.encode("utf-8", "surrogatepass")
    return (_LONGER_TEXT if len(encoded) == UUID_BYTES - 1 else _TEXT) + encoded


def from_id_column(column: bytes) -> str:
    """The id that `id_column` was given."""
    if len(column) == UUID_BYTES:
        return uuid_text(column)
    for start in (_TEXT, _LONGER_TEXT):
        if column.startswith(start):
            return _as_text(column.removeprefix(start))
    return f"\ufffd{column.hex()}"


def optional(text: str | None) -> str | None:
    """Text as a column, which is NULL where there is none."""
    return None if text is None else to_column(text)


def from_optional(column: str | None) -> str | None:
    """The text that `optional` was given."""
    return None if column is None else from_column(column)


def outline(thread_id: str, columns: Sequence[Any]) -> Outline:
    """A checkpoint's outline from the columns of `sql.expressions.OUTLINE`."""
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
    """A checkpoint from the columns of `sql.expressions.ROW`."""
    *of_outline, header, check = columns
    return CheckpointRow(outline(thread_id, of_outline), header, check, None)


def checkpoint_columns(rows: Sequence[CheckpointRow], needs: Sequence[bytes]) -> Columns:
    """Return one array for each column of `sql.adding.ADD_CHECKPOINTS`. `needs` are the segments of a single row."""
    outlines = [row.outline for row in rows]
    return (
        ChangeNumbers([1] * len(rows)),
        Texts(to_column(outline.ns) for outline in outlines),
        Texts(None if outline.id == outline.rank else to_column(outline.id) for outline in outlines),
        Texts(to_column(outline.rank) for outline in outlines),
        Texts(optional(outline.parent) for outline in outlines),
        Numbers(outline.created_at for outline in outlines),
        Texts(to_column(outline.metadata) for outline in outlines),
        Blobs(row.header for row in rows),
        Blobs(row.check for row in rows),
        Numbers(None if row.run_id is None else run_number(row.run_id) for row in rows),
        Texts([_array_of_bytes(needs)] if needs else [None] * len(rows)),
    )


def write_row(columns: Sequence[Any]) -> WriteRow:
    """A pending write from the columns of `sql.listing._WRITE`."""
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
    """Return one array for each column of `sql.adding.ADD_WRITES`."""
    return (
        ChangeNumbers([1] * len(rows)),
        Texts(to_column(row.ns) for row in rows),
        Texts(to_column(row.checkpoint_id) for row in rows),
        Blobs(id_column(row.task_id) for row in rows),
        Numbers(row.idx for row in rows),
        Texts(to_column(row.task_path) for row in rows),
        Texts(to_column(row.channel) for row in rows),
        Blobs(row.value for row in rows),
        Blobs(row.check for row in rows),
    )


def change_columns(change: Change) -> Columns:
    """Return the parameters that every statement about a change begins with: the change itself."""
    return (
        Texts([to_column(change.thread_id)]),
        Numbers([change.epoch]),
        Numbers([change.now]),
        Texts([optional(change.continues)]),
        Numbers([change.token]),
        Texts([optional(change.beginning.owner)]),
        Numbers([change.beginning.expires_at]),
        Blobs([change.beginning.check or None]),
        Numbers([change.only_owner]),
    )


def segment_columns(change: Change) -> Columns:
    """Return what follows then: one array for each column of its segments."""
    return (
        ChangeNumbers([1] * len(change.segments)),
        Blobs(change.segments.keys()),
        Blobs(change.segments.values()),
    )


def entry_columns(change: Change) -> Columns:
    """Return what stands behind all others where a change is fenced by a term or recorded in the outbox."""
    return Numbers([change.term]), Blobs([change.entry])


def checkpoint_alone(change: Change) -> tuple[Any, ...] | None:
    """Return the parameters of `sql.adding_alone.ADD_CHECKPOINT_ALONE`, None where the change is not one checkpoint,
    ranked by its id. Those of its segments are the last two, where it has some.
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
        *_segments_alone(change),
    )


def writes_alone(change: Change) -> tuple[Any, ...] | None:
    """Return the parameters of `sql.adding_alone.ADD_WRITES_ALONE`, None where the change is not one task's pack with
    its record.

    They must be of the checkpoint that the change continues.
    """
    if change.checkpoints or len(change.writes) != _ROWS_ALONE:
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
        *_segments_alone(change),
    )


def _change_alone(change: Change) -> tuple[Any, ...]:
    return (
        to_column(change.thread_id),
        change.epoch,
        change.token,
        optional(change.beginning.owner) if change.only_owner else None,
        optional(change.continues),
    )


def _segments_alone(change: Change) -> tuple[Any, ...]:
    segments = change.segments
    return (Blobs(segments.keys()), Blobs(segments.values())) if segments else ()


@lru_cache(maxsize=64)
def run_number(run_id: str) -> int:
    """A number for a run, by which an index finds its checkpoints.

    It only has to differ for most runs: the saver compares the metadata itself.
    """
    digest = blake2b(run_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _array_of_bytes(items: Sequence[bytes]) -> str:
    """An array as text, because there is no array of arrays of different lengths."""
    return "{" + ",".join([f'"\\\\x{item.hex()}"' for item in items]) + "}"


def _as_text(encoded: bytes) -> str:
    try:
        return encoded.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return f"\ufffd{encoded.hex()}"
