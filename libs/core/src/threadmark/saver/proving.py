"""The checks that tie a row's body to its key, so that a damaged or misplaced row is never taken for a good one."""

from collections.abc import Sequence

from threadmark.errors import CorruptDataError
from threadmark.format.digests import HOW_TO_OPEN, HOW_TO_SEAL, NOT_OPENED, NOT_SEALED, OF_ANOTHER_LIFE, check_of
from threadmark.format.packs import PACK, is_pack_index
from threadmark.metadata import from_json
from threadmark.model import Metadata
from threadmark.store.contract import CheckpointRow, Outline, WriteRow
from threadmark.store.threads import ThreadOutline, ThreadRow, expect_sound_thread

RECORDED = 2
"""Comes first in the check of a row of a write, and of the record of a batch."""

PACKED = 3
"""Comes first in the check of a pack (`store.PACK`)."""


def checkpoint_row(outline: Outline, header: bytes, run_id: str | None) -> CheckpointRow:
    """The row of a checkpoint, with its check."""
    return CheckpointRow(outline, header, _check(outline, header), run_id)


def with_check(row: CheckpointRow) -> CheckpointRow:
    """The same row with its check, after something of it was changed."""
    return row._replace(check=_check(row.outline, row.header))


def write_row(
    thread_id: str, ns: str, checkpoint_id: str, task_id: str, idx: int, task_path: str, channel: str, value: bytes
) -> WriteRow:
    """Return the row of a pending write, as `write_rows` does."""
    (row,) = write_rows(thread_id, ns, checkpoint_id, task_id, [(idx, task_path, channel, value)])
    return row


def write_rows(
    thread_id: str, ns: str, checkpoint_id: str, task_id: str, written: Sequence[tuple[int, str, str, bytes]]
) -> list[WriteRow]:
    """Return rows, with their checks, of a task's writes (idx, task_path, channel, value).

    Their batch has a record (`saver/batches.py`).
    """
    rows = []
    for idx, task_path, channel, value in written:
        fields = ns, checkpoint_id, task_id, idx, task_path, channel, value
        rows.append(WriteRow(*fields, check=check_of([_mark(idx), thread_id, *fields])))
    return rows


def rebound_write(source: str, target: str, row: WriteRow) -> WriteRow:
    """Verify a write's row and return it for another thread. Raises CorruptDataError if it is damaged."""
    prove_write(source, row)
    return write_row(target, *row[:-1])


def prove_checkpoint(row: CheckpointRow) -> None:
    """Raise CorruptDataError if the row is not the one written under its key."""
    if not is_sound(row):
        raise CorruptDataError(f"the checkpoint's row {_problem(row.check)}", checkpoint_location(row.outline))


def is_sound(row: CheckpointRow) -> bool:
    """Whether a checkpoint's row is the one written under its key."""
    return row.check == _check(row.outline, row.header)


def _check(outline: Outline, header: bytes) -> bytes:
    return check_of([*outline, header])


def prove_write(thread_id: str, row: WriteRow) -> None:
    """Raise CorruptDataError if the row is not the one written under its key."""
    if row.check != check_of([_mark(row.idx), thread_id, *row[:-1]]):
        raise CorruptDataError(f"the pending write's row {_problem(row.check)}", write_location(thread_id, row))


def checkpoint_location(outline: Outline) -> str:
    """How an error names a checkpoint."""
    return f"thread {outline.thread_id!r}, namespace {outline.ns!r}, checkpoint {outline.id!r}"


def header_location(outline: Outline) -> str:
    """How an error names a checkpoint's header."""
    return f"{checkpoint_location(outline)}, header"


def channel_location(outline: Outline, channel: str) -> str:
    """How an error names a channel of a checkpoint."""
    return f"{checkpoint_location(outline)}, channel {channel!r}"


def write_location(thread_id: str, row: WriteRow) -> str:
    """How an error names a pending write, or the row of several."""
    if isinstance(row.idx, int) and row.idx >= PACK:  # a damaged file may hold anything
        return task_location(thread_id, row)
    return (
        f"thread {thread_id!r}, namespace {row.ns!r}, checkpoint {row.checkpoint_id!r}, "
        f"pending write of task {row.task_id!r} to channel {row.channel!r}"
    )


def task_location(thread_id: str, row: WriteRow) -> str:
    """How an error names the writes of a task."""
    return (
        f"thread {thread_id!r}, namespace {row.ns!r}, checkpoint {row.checkpoint_id!r}, "
        f"pending writes of task {row.task_id!r}"
    )


def namespace_location(thread_id: str, ns: str) -> str:
    """How an error names a namespace."""
    return f"thread {thread_id!r}, namespace {ns!r}"


def _mark(idx: int) -> int:
    """The beginning of the check of a row with this index."""
    return PACKED if is_pack_index(idx) else RECORDED


def _problem(check: bytes) -> str:
    return _PROBLEMS.get(check, "is not as it was written")


_PROBLEMS = {
    # A sealed row has its check inside the body.
    b"": f"is sealed: {HOW_TO_OPEN} (if nothing was ever sealed, it is damaged)",
    NOT_OPENED: "is damaged, or sealed with a key that is not on the keyring",
    NOT_SEALED: f"is not sealed: {HOW_TO_SEAL}",
    OF_ANOTHER_LIFE: (
        "was stored in another life of the thread, or under a later owner: this row, or the thread's own, was put back"
    ),
}


def sound_row(outline: ThreadOutline) -> ThreadRow:
    """Return a thread's row. Raises CorruptDataError if it was changed."""
    expect_sound_thread(outline.row)
    return outline.row


def metadata_of(row: ThreadRow) -> Metadata:
    """Return a thread's metadata, an empty dictionary if none was set."""
    return from_json(row.metadata) if row.metadata else {}
