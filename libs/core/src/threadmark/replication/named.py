"""The few rows that the entries of a thread name, read at the source: what most changes are copied by."""

from typing import NamedTuple

from threadmark.program import Program
from threadmark.replica_store import ReplicaStore
from threadmark.replication.entries import Touched, joined
from threadmark.replication.held import Bodies, bodies, copied_of, last_position
from threadmark.store import NEVER
from threadmark.thread_store import ThreadOutline

_MOST_ENTRIES, _MOST_ROWS, _MOST_BYTES = 256, 256, 4 * 1024 * 1024
"""What names or holds more than that is compared whole, and copied in parts."""


class Named(NamedTuple):
    """Rows that are to be added to the target."""

    position: int
    epoch: int
    outline: ThreadOutline | None
    """None where the target has come as far as the source is, so that there is nothing to do."""
    seen: int
    """The position up to which the source has what was changed at the target."""
    sets_row: bool
    """Whether the thread's own row was set."""
    bodies: Bodies


def named(store: ReplicaStore, thread_id: str, come: int) -> Program[Named | None]:
    """Return the rows that changed after the position up to which the target has come, all of a thread for `NEVER`.

    Returns None where they are not all there, or are too many, or adding them is not enough.
    """
    position = yield from last_position(store, thread_id)
    if position <= come:
        return Named(come, 0, None, 0, sets_row=False, bodies=Bodies({}, {}, {}))
    copied = yield from copied_of(store, thread_id)
    outline = yield from store.thread(thread_id)
    epoch = yield from store.epoch(thread_id)
    if outline is None or epoch is None:
        return None
    if come == NEVER:
        # What came from there in the first place is not new to it.
        touched = (yield from _all(store, thread_id)) if copied is None else None
    else:
        touched = yield from _touched(store, thread_id, come)
    if touched is None or touched.whole:
        return None
    rows, writes = sorted(touched.checkpoints), sorted(touched.writes)
    found = yield from bodies(store, thread_id, rows, writes, touched.segments)
    written = {key[:2] for key in found.writes}
    is_whole = (
        len(found.rows) == len(rows) and written >= touched.writes and len(found.segments) == len(touched.segments)
    )
    if not is_whole or (yield from last_position(store, thread_id)) != position:
        return None
    sets_row = touched.thread or (come == NEVER and (outline.row.title, outline.row.metadata) != (None, None))
    return Named(position, epoch, outline, copied.position if copied else 0, sets_row, found)


def _touched(store: ReplicaStore, thread_id: str, come: int) -> Program[Touched | None]:
    """What the entries name, None where there are none or too many."""
    entries = yield from store.outbox(thread_id, _MOST_ENTRIES)
    touched = joined(Touched.from_bytes(entry.body) for entry in entries if entry.position > come)
    many = len(touched.checkpoints) + len(touched.writes) > _MOST_ROWS or len(entries) == _MOST_ENTRIES
    return None if many or touched == Touched() else touched


def _all(store: ReplicaStore, thread_id: str) -> Program[Touched | None]:
    """All rows of a thread, None where they are too many."""
    marks = yield from store.marks(thread_id)
    size = sum(size for size, _ in marks.segments.values())
    if len(marks.checkpoints) + len(marks.writes) > _MOST_ROWS or size > _MOST_BYTES:
        return None
    return Touched(frozenset(marks.checkpoints), frozenset(key[:2] for key in marks.writes), frozenset(marks.segments))
