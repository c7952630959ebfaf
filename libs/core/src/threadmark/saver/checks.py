"""The checks that tie a row's body to its key, so that a damaged or misplaced row is never taken for a good one."""

from threadmark.digests import row_check
from threadmark.errors import CorruptDataError
from threadmark.store import CheckpointRow, Outline, WriteRow


def checkpoint_row(outline: Outline, header: bytes) -> CheckpointRow:
    """The row of a checkpoint, with its check."""
    return CheckpointRow(outline, header, row_check(*outline, header))


def write_row(thread_id: str, row: WriteRow) -> WriteRow:
    """The row of a pending write, with its check."""
    return row._replace(check=row_check(thread_id, *row[:-1]))


def prove_checkpoint(row: CheckpointRow) -> None:
    """Raise CorruptDataError where the row is not what was written under its key."""
    if row.check != row_check(*row.outline, row.header):
        raise CorruptDataError(f"the checkpoint's row {_problem(row.check)}", checkpoint_place(row.outline))


def prove_write(thread_id: str, row: WriteRow) -> None:
    """Raise CorruptDataError where the row is not what was written under its key."""
    if row.check != row_check(thread_id, *row[:-1]):
        raise CorruptDataError(f"the pending write's row {_problem(row.check)}", write_place(thread_id, row))


def checkpoint_place(outline: Outline) -> str:
    """How an error names a checkpoint."""
    return f"thread {outline.thread_id!r}, namespace {outline.ns!r}, checkpoint {outline.id!r}"


def header_place(outline: Outline) -> str:
    """How an error names a checkpoint's header."""
    return f"{checkpoint_place(outline)}, header"


def channel_place(outline: Outline, channel: str) -> str:
    """How an error names a channel of a checkpoint."""
    return f"{checkpoint_place(outline)}, channel {channel!r}"


def write_place(thread_id: str, row: WriteRow) -> str:
    """How an error names a pending write."""
    return (
        f"thread {thread_id!r}, namespace {row.ns!r}, checkpoint {row.checkpoint_id!r}, "
        f"pending write of task {row.task_id!r} to channel {row.channel!r}"
    )


def _problem(check: bytes) -> str:
    # A sealed row that does not open comes without a check.
    return "is not what was written" if check else "is damaged, or sealed with a key that is not on the keyring"
