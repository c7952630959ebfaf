"""The few rows that the entries of a thread name, read at the source. Most changes are copied in this way.

Rows that are only added commute. So it does not matter that a source goes on meanwhile: the entries up to some position
are copied with the rows that they name, and later ones are left for the next time. A row may be newer than that
position only if it does no harm to write it again later, and if nothing older is left that would be written over it.
The segments that it needs are copied with it: the source may be lost before the next time.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from threadmark.program import Program
from threadmark.replica_store import Entry, ReplicaStore
from threadmark.replication.entries import Touched, joined
from threadmark.replication.snapshots import MOST_ENTRIES, Bodies, copied_of, last_position, read_bodies
from threadmark.store import NEVER
from threadmark.thread_store import ThreadOutline

_MOST_ROWS, _MOST_BYTES = 256, 4 * 1024 * 1024
"""A change, or a new thread, with more rows or bytes is compared whole, and copied in parts."""

NotAddable = Literal["more", "moved", "settled"]
"""Why rows cannot simply be added: more than that is to be done; the thread changed meanwhile; the entries are gone,
because another process has copied them, or because the target has lost something."""


class EntryRows(NamedTuple):
    """Rows that are to be added to the target."""

    position: int
    known_to: int
    """The position up to which the source had entries: greater where these are only the first ones."""
    epoch: int
    outline: ThreadOutline | None
    """None where the target has everything already."""
    seen: int
    """The position up to which the source has what was changed at the target."""
    sets_row: bool
    """Whether the thread's own row was set."""
    bodies: Bodies


class _Part(NamedTuple):
    """What the first entries of a thread touched."""

    touched: Touched
    position: int
    """That of the last of them."""
    rest: Touched
    """What those touched that come after it."""
    beside: frozenset[bytes]
    """The segments that those of them brought that add writes to the same checkpoints."""


def read_entry_rows(store: ReplicaStore, thread_id: str, copied_to: int) -> Program[EntryRows | NotAddable]:
    """Return the rows that changed after the position `copied_to`, or for `NEVER` all rows of the thread.

    Where many rows changed, only those of the first entries are returned.
    """
    position = yield from last_position(store, thread_id)
    if position <= copied_to:
        return EntryRows(copied_to, copied_to, 0, None, 0, sets_row=False, bodies=Bodies({}, {}, {}))
    copied = yield from copied_of(store, thread_id)
    # What the entries name is read after them, the thread's row included: on Redis this is not one moment, and a row
    # that is older than its entry would be settled with it.
    entries = yield from store.outbox(thread_id, MOST_ENTRIES)
    outline = yield from store.thread(thread_id)
    epoch = yield from store.epoch(thread_id)
    known_to = max(position, entries[-1].position if entries else 0)
    if outline is None or epoch is None or len(entries) == MOST_ENTRIES:
        return "more"
    if copied_to != NEVER:
        part = _first([entry for entry in entries if entry.position > copied_to])
    else:  # a thread that was copied from the target is not new there
        part = (yield from _all(store, thread_id, known_to)) if copied is None else "more"
    if not isinstance(part, _Part):
        return part
    touched = part.touched
    rows, writes = sorted(touched.checkpoints), sorted(touched.writes)
    found = yield from read_bodies(store, thread_id, rows, writes, touched.segments)
    beside = part.beside
    written = {key[:2] for key in found.writes}
    is_whole = (
        len(found.rows) == len(rows) and written >= touched.writes and len(found.segments) == len(touched.segments)
    )
    if not is_whole or _meets(part.rest, touched, found):
        return "more"
    if (yield from last_position(store, thread_id)) != known_to:
        entries = yield from store.outbox(thread_id, MOST_ENTRIES)
        changes = [Touched.from_bytes(entry.body) for entry in entries if entry.position > known_to]
        later, beside = joined(changes), beside | _segments_beside(changes, touched)
        if copied_to == NEVER:  # checkpoints that were added meanwhile have an entry of their own
            rows_then = {key: row for key, row in found.rows.items() if key not in later.checkpoints}
            found = found._replace(rows=rows_then)
            touched = touched._replace(checkpoints=touched.checkpoints - later.checkpoints)
        if len(entries) == MOST_ENTRIES or _meets(later, touched, found):
            return "moved"
    if beside:
        found = found._replace(segments={**found.segments, **(yield from store.segments(thread_id, sorted(beside)))})
    sets_row = touched.thread or (copied_to == NEVER and (outline.row.title, outline.row.metadata) != (None, None))
    return EntryRows(part.position, known_to, epoch, outline, copied.position if copied else 0, sets_row, found)


def _first(entries: Sequence[Entry]) -> _Part | NotAddable:
    """What the first entries touched, as many as may be copied at once."""
    if not entries:
        return "settled"
    changes = [Touched.from_bytes(entry.body) for entry in entries]
    if any(each.whole or each == Touched() for each in changes):
        return "more"
    rows: set[tuple[str, str, str]] = set()
    count = 0
    for each in changes:
        rows |= {("row", *key) for key in each.checkpoints} | {("writes", *key) for key in each.writes}
        if len(rows) > _MOST_ROWS:
            break
        count += 1
    if not count:
        return "more"
    touched, rest = joined(changes[:count]), changes[count:]
    return _Part(touched, entries[count - 1].position, joined(rest), _segments_beside(rest, touched))


def _all(store: ReplicaStore, thread_id: str, position: int) -> Program[_Part | NotAddable]:
    """All rows of a thread, unless they are too many."""
    marks = yield from store.marks(thread_id)
    size = sum(size for size, _ in marks.segments.values())
    if len(marks.checkpoints) + len(marks.writes) > _MOST_ROWS or size > _MOST_BYTES:
        return "more"
    rows = Touched(frozenset(marks.checkpoints), frozenset(key[:2] for key in marks.writes), frozenset(marks.segments))
    return _Part(rows, position, Touched(), frozenset())


def _segments_beside(later: Iterable[Touched], touched: Touched) -> frozenset[bytes]:
    """Return what the writes need that later changes added to the same checkpoints: they may have been read as well."""
    none: frozenset[bytes] = frozenset()
    return none.union(*(each.segments for each in later if not each.writes.isdisjoint(touched.writes)))


def _meets(later: Touched, touched: Touched, found: Bodies) -> bool:
    """Whether rows that were read may be newer than their position, and not only added.

    A write of a special channel, whose index is negative, takes the place of an earlier one.
    """
    special = {key[:2] for key in found.writes if key[3] < 0}
    return (
        later.whole
        or (later.thread and touched.thread)
        or not later.checkpoints.isdisjoint(touched.checkpoints)
        or not later.writes.isdisjoint(special)
    )
