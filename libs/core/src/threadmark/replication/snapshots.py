"""The data of a thread in one database, read to be compared with the other one, and the rows that are copied.

Most changes are copied by the few rows that the entries of a thread name, read at the source. Rows that are only added
commute, so the source may go on during the copying: the entries up to some position are copied with the rows that they
name, and later ones are left for the next time. A row may be newer than that position only if it does no harm to write
it again later, and if nothing older is left that would be written over it. The segments that it needs are copied with
it: the source may be lost before the next time.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.metadata import run_id_in
from threadmark.program import Program
from threadmark.replication.entries import Touched, joined
from threadmark.store.contract import NEVER, CheckpointRow, Key, Scope, WriteRow
from threadmark.store.replica import Copied, Entry, ReplicaStore, RowMarks, WriteKey
from threadmark.store.threads import ThreadOutline

MOST_ENTRIES = 4096
"""If a thread has more entries, the first ones are applied separately."""

ALL_ENTRIES = 2**31 - 1
"""If others are merged into a thread, all its entries count: the last one may say that something was removed."""

_PAGE = 4096

BEGUN = -2
"""The position (`Copied`) of a thread of which only a part was ever copied."""


class Snapshot(NamedTuple):
    """A thread in one database, without the bodies of its rows."""

    position: int
    """The last one of the thread in this database."""
    copied: Copied | None
    epoch: int
    """0 if the thread is no live one."""
    outline: ThreadOutline | None
    marks: RowMarks
    touched: Touched
    """The rows touched by changes that were made here and that the other database does not have."""
    known_to: int
    """The position up to which `touched` is complete."""
    dropped_at: int
    """The position of the last of them that deleted the thread, 0 for none."""
    first_change: int
    """The position of the first of them, 0 for none."""
    parents: Mapping[Key, Key] | None = None
    """The parents of its checkpoints. They are read only if the other database removed some (`rulings`)."""

    @property
    def rows(self) -> int:
        """How many rows were read for it."""
        return len(self.marks.checkpoints) + len(self.marks.writes) + len(self.marks.segments) + 1


class Bodies(NamedTuple):
    """Rows as they are stored."""

    rows: Mapping[Key, CheckpointRow]
    writes: Mapping[WriteKey, WriteRow]
    segments: Mapping[bytes, bytes]

    @property
    def size(self) -> int:
        """How many bytes they hold."""
        of_rows = sum(len(row.header) + len(row.outline.metadata) for row in self.rows.values())
        of_writes = sum(len(row.value) for row in self.writes.values())
        return of_rows + of_writes + sum(map(len, self.segments.values()))


def take_snapshot(
    store: ReplicaStore, thread_id: str, after: int, *, entries_at_most: int | None = None
) -> Program[Snapshot | None]:
    """Return the rows of a thread. `after` is the position up to which the other database has the changes made here.

    Returns None if it changed during the read: not every backend reads all of it at one moment.
    """
    at_most = entries_at_most or MOST_ENTRIES
    state = yield from _state(store, thread_id)
    position, copied = state
    entries = yield from store.outbox(thread_id, at_most)
    outline = yield from store.thread(thread_id)
    epoch = yield from store.epoch(thread_id)
    marks = yield from store.marks(thread_id)
    if (yield from _state(store, thread_id)) != state:
        return None
    touched = {entry.position: Touched.from_bytes(entry.body) for entry in entries if entry.position > after}
    known_to = entries[-1].position if len(entries) == at_most else position
    dropped_at = max((at for at, each in touched.items() if each.dropped), default=0)
    first = min(touched, default=0)
    return Snapshot(position, copied, epoch or 0, outline, marks, joined(touched.values()), known_to, dropped_at, first)


def has_settled(store: ReplicaStore, thread_id: str, before: Snapshot) -> Program[bool]:
    """Whether entries may be gone that this side had, or has got, since a snapshot: the other side has their changes.

    Entries are settled in their order. So as long as the first one is there, all are.
    """
    if not before.first_change:
        return (yield from last_position(store, thread_id)) != before.position
    entries = yield from store.outbox(thread_id, 1)
    return not entries or entries[0].position > before.first_change


def read_parents(store: ReplicaStore, thread_id: str) -> Program[dict[Key, Key]]:
    """Return the parent of each checkpoint of a thread that has one."""
    parents: dict[Key, Key] = {}
    page = yield from store.page(Scope(thread_id), None, _PAGE)
    while page:
        parents.update((outline.key, outline.parent_key) for outline in page if outline.parent_key)
        page = yield from store.page(Scope(thread_id), page[-1], _PAGE)
    return parents


def read_bodies(
    store: ReplicaStore, thread_id: str, rows: Sequence[Key], writes: Sequence[Key], segments: Collection[bytes]
) -> Program[Bodies]:
    """Return these rows, the writes of these checkpoints, and these segments, as far as they are there."""
    found = (yield from store.rows(thread_id, rows)) if rows else []
    written = (yield from store.writes(thread_id, writes)) if writes else []
    data = (yield from store.segments(thread_id, list(segments))) if segments else {}
    return Bodies(
        {row.outline.key: _with_run(row) for row in found},
        {(row.ns, row.checkpoint_id, row.task_id, row.idx): row for row in written},
        data,
    )


def last_position(store: ReplicaStore, thread_id: str) -> Program[int]:
    """Return the last position of a thread, 0 for none."""
    positions = yield from store.positions([thread_id])
    return positions.get(thread_id, 0)


def copied_of(store: ReplicaStore, thread_id: str) -> Program[Copied | None]:
    """Return the position up to which a thread was copied from the other database."""
    copied = yield from store.copied([thread_id])
    return copied.get(thread_id)


class CopyState(NamedTuple):
    """The position up to which a thread was copied to the target, and whether it is a live one there."""

    copied: Copied | None = None
    is_live: bool = False


def read_copy_states(store: ReplicaStore, thread_ids: Sequence[str]) -> Program[dict[str, CopyState]]:
    """Return for each of these threads the position copied from the other database, and whether it is a live one."""
    copied = yield from store.copied(thread_ids)
    new = [thread_id for thread_id in thread_ids if thread_id not in copied]
    live = {each.row.thread_id for each in ((yield from store.thread_outlines(new)) if new else [])}
    return {thread_id: CopyState(copied.get(thread_id), thread_id in live) for thread_id in thread_ids}


def _state(store: ReplicaStore, thread_id: str) -> Program[tuple[int, Copied | None]]:
    """The position and `Copied`, one of which differs after every change by a replicated saver and after every copy."""
    position = yield from last_position(store, thread_id)
    return position, (yield from copied_of(store, thread_id))


def _with_run(row: CheckpointRow) -> CheckpointRow:
    """The row with the run that made it, for the index of runs: the row may lack it. Sealed metadata has none."""
    if row.run_id is not None:
        return row
    try:
        return row._replace(run_id=run_id_in(row.outline.metadata))
    except CorruptDataError:  # it is copied as it is, and reading it raises the error
        return row


_MOST_ROWS_READ, _MOST_BYTES = 256, 4 * 1024 * 1024
"""A change, or a new thread, with more rows or bytes is compared whole, and copied in parts."""

NotAddable = Literal["more", "moved", "settled"]
"""Why rows cannot simply be added: more than that is to be done; the thread changed; the entries are gone,
because another process has copied them, or because the target has lost something."""


class EntryRows(NamedTuple):
    """Rows that are to be added to the target."""

    position: int
    known_to: int
    """The position up to which the source had entries: greater if these are only the first ones."""
    epoch: int
    outline: ThreadOutline | None
    """None if the target has everything already."""
    seen: int
    """The position up to which the source has the target's changes."""
    sets_row: bool
    """Whether the thread's own row was set."""
    bodies: Bodies


class _Part(NamedTuple):
    """The rows that the first entries of a thread touched."""

    touched: Touched
    position: int
    """That of the last of them."""
    rest: Touched
    """The rows that the later entries touched."""
    beside: frozenset[bytes]
    """The segments that those of them brought that add writes to the same checkpoints."""


def read_entry_rows(store: ReplicaStore, thread_id: str, copied_to: int) -> Program[EntryRows | NotAddable]:
    """Return the rows that changed after the position `copied_to`, or for `NEVER` all rows of the thread.

    If many rows changed, only those of the first entries are returned.
    """
    position = yield from last_position(store, thread_id)
    if position <= copied_to:
        return EntryRows(copied_to, copied_to, 0, None, 0, sets_row=False, bodies=Bodies({}, {}, {}))
    copied = yield from copied_of(store, thread_id)
    # The rows of the entries are read after them, the thread's row included: on Redis this is not one moment, and a row
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
        if copied_to == NEVER:  # checkpoints that were added since then have a separate entry
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
    """The rows that the first entries touched, as many as may be copied at once."""
    if not entries:
        return "settled"
    changes = [Touched.from_bytes(entry.body) for entry in entries]
    if any(each.whole or each == Touched() for each in changes):
        return "more"
    rows: set[tuple[str, str, str]] = set()
    count = 0
    for each in changes:
        rows |= {("row", *key) for key in each.checkpoints} | {("writes", *key) for key in each.writes}
        if len(rows) > _MOST_ROWS_READ:
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
    if len(marks.checkpoints) + len(marks.writes) > _MOST_ROWS_READ or size > _MOST_BYTES:
        return "more"
    rows = Touched(frozenset(marks.checkpoints), frozenset(key[:2] for key in marks.writes), frozenset(marks.segments))
    return _Part(rows, position, Touched(), frozenset())


def _segments_beside(later: Iterable[Touched], touched: Touched) -> frozenset[bytes]:
    """Return the segments of later writes to the same checkpoints: they may have been read as well."""
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
