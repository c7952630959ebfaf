"""Bringing a thread of one database up to what the other one has."""

from typing import NamedTuple

from threadmark.replication.steps import Exchange, Side
from threadmark.store import Added, Change


class CopiedRows(NamedTuple):
    """What was copied, or would be."""

    checkpoints: int = 0
    writes: int = 0
    segments: int = 0
    bytes: int = 0
    removed: int = 0
    dropped: bool = False
    branched: bool = False
    """Whether both sides had written to the thread."""
    rows_read: int = 0


def copy_change(source: Side, target: Side, change: Change, added: Added, term: int) -> Exchange[bool]:
    """Copy one change that the source has just made, with the rows at hand, and settle its entry.

    Returns False, having done nothing, where the target lacks something of the thread that came before (it is not at
    `added.previous`): `copy_thread` is to be called then. Raises StaleTermError where the target's term is greater.
    """
    raise NotImplementedError


def copy_thread(
    source: Side, target: Side, thread_id: str, term: int, *, everything: bool = False, dry_run: bool = False
) -> Exchange[CopiedRows]:
    """Bring a thread of the target up to what the source has now, as far as its outbox says that it changed, or whole.

    Reads the thread's entries, its position and the rows that they name in one transaction of the source; writes them
    in one transaction of the target that locks the thread and looks how far it has come, so that nothing older is ever
    written over anything newer, whoever else copies it at the same time. Then settles the entries.

    Where the target has entries of its own for the thread, both have written to it: then nothing is removed from it,
    unless the source deleted the whole thread, and all segments that it lacks are copied. Raises StaleTermError where
    the target's term is greater than `term`.
    """
    raise NotImplementedError


def copy_all(source: Side, target: Side, term: int, *, limit: int = 256) -> Exchange[dict[str, CopiedRows]]:
    """Copy the threads of the first `limit` entries of the source's outbox. Returns what was copied of each.

    Returns nothing where the outbox is empty. A thread whose copying fails, because its rows are damaged, say, does
    not stop the others: it is tried again next time, and the error is raised when the others are done.
    """
    raise NotImplementedError
