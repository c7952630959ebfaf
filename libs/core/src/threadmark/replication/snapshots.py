"""What one database has of a thread, read to be compared with what the other one has, and the rows that are copied."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.metadata import run_id_in
from threadmark.program import Program
from threadmark.replica_store import Copied, ReplicaStore, RowMarks, WriteKey
from threadmark.replication.entries import Touched, joined
from threadmark.store import CheckpointRow, Key, Scope, WriteRow
from threadmark.thread_store import ThreadOutline

MOST_ENTRIES = 4096
"""Of a thread with more entries, the first ones are applied on their own."""

ALL_ENTRIES = 2**31 - 1
"""Of a thread that others are merged into, all count: the last one may say that something was removed."""

_PAGE = 4096

BEGUN = -2
"""The position (`Copied`) of a thread of which only a part was ever copied."""


class Snapshot(NamedTuple):
    """A thread in one database, without the bodies of its rows."""

    position: int
    """The last one of the thread in this database."""
    copied: Copied | None
    epoch: int
    """0 where the thread is no live one."""
    outline: ThreadOutline | None
    marks: RowMarks
    touched: Touched
    """What those changes touched that were made here and that the other database does not have."""
    known_to: int
    """The position up to which `touched` is complete."""
    dropped_at: int
    """The position of the last of them that deleted the thread, 0 for none."""
    first_change: int
    """The position of the first of them, 0 for none."""
    parents: Mapping[Key, Key] | None = None
    """The parents of its checkpoints. They are read only where the other database removed some (`rulings.py`)."""

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
    """Return what there is of a thread. `after` is up to which position the other database has what changed here.

    Returns None where it changed meanwhile: not every backend reads all of it at one moment.
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
    """Whether entries may be gone that this side had, or has got, since a snapshot: the other side has what they say.

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
    """Return up to where a thread was copied from the other database."""
    copied = yield from store.copied([thread_id])
    return copied.get(thread_id)


class CopyState(NamedTuple):
    """Up to where a thread was copied to the target, and whether it is a live one there."""

    copied: Copied | None = None
    is_live: bool = False


def read_copy_states(store: ReplicaStore, thread_ids: Sequence[str]) -> Program[dict[str, CopyState]]:
    """Return up to where each of these threads was copied from the other database, and whether it is a live one."""
    copied = yield from store.copied(thread_ids)
    new = [thread_id for thread_id in thread_ids if thread_id not in copied]
    live = {each.row.thread_id for each in ((yield from store.thread_outlines(new)) if new else [])}
    return {thread_id: CopyState(copied.get(thread_id), thread_id in live) for thread_id in thread_ids}


def _state(store: ReplicaStore, thread_id: str) -> Program[tuple[int, Copied | None]]:
    """The position and `Copied`, one of which differs after every change by a replicated saver and after every copy."""
    position = yield from last_position(store, thread_id)
    return position, (yield from copied_of(store, thread_id))


def _with_run(row: CheckpointRow) -> CheckpointRow:
    """The row with the run that made it, for the index of runs: what is read may lack it. Sealed metadata has none."""
    if row.run_id is not None:
        return row
    try:
        return row._replace(run_id=run_id_in(row.outline.metadata))
    except CorruptDataError:  # it is copied as it is, and reading it raises the error
        return row
