"""From the write rows of checkpoints to writes: proven, opened, and in their order."""

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from threadmark.compiled import IN_USE
from threadmark.errors import CorruptDataError
from threadmark.saver.proving.batches import proven_batches
from threadmark.saver.proving.checks import write_location
from threadmark.store import WriteRow
from threadmark.stored import Stored

if TYPE_CHECKING or IN_USE:
    from threadmark_speed import proving

_ORDER = attrgetter("task_path", "task_id", "idx")


class Write(NamedTuple):
    """A pending write whose row has been proven."""

    row: WriteRow
    value: Stored


def proven_writes(thread_id: str, rows: Sequence[WriteRow]) -> list[Write]:
    """Verify all write rows of some checkpoints. Returns the writes in the order in which a step applies them."""
    if IN_USE and type(rows) is list:
        # It proves what is as it should be, and returns None for anything else.
        proven = proving.proven_writes(thread_id, rows, Write)
        if proven is not None:
            return proven
    return proven_by_reference(thread_id, rows)


def proven_by_reference(thread_id: str, rows: Sequence[WriteRow]) -> list[Write]:
    """Do the same in Python."""
    # Proven before they are sorted: what is damaged may not even compare.
    return [opened_write(thread_id, row) for row in sorted(proven_batches(thread_id, rows), key=_ORDER)]


def opened_write(thread_id: str, row: WriteRow) -> Write:
    """A write whose row has been proven."""
    try:
        return tuple.__new__(Write, (row, Stored.from_bytes(row.value)))  # as in `checks.write_rows`
    except CorruptDataError as error:
        raise error.at(write_location(thread_id, row)) from error
