"""Writing a thread's data from the source to the target: programs, each of which is one transaction.

A thread is copied in parts, so that a large one is never in memory as a whole.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from threadmark.errors import TransientStoreError
from threadmark.program import Program
from threadmark.replication.comparing import Difference, compare, lacks_parents, take_target
from threadmark.replication.entries import Touched
from threadmark.replication.snapshots import (
    BEGUN,
    Bodies,
    EntryRows,
    Snapshot,
    copied_of,
    has_settled,
    last_position,
    read_bodies,
)
from threadmark.replication.steps import Side
from threadmark.store.contract import ANYONE, NEVER, Change, CheckpointRow, Follows, Key, WriteRow, now, was_added
from threadmark.store.replica import LONG_MARK, Copied, ReplicaStore, StaleTermError
from threadmark.store.threads import Beginning, ThreadOutline


class CopiedRows(NamedTuple):
    """The rows that were copied, or would be."""

    checkpoints: int = 0
    writes: int = 0
    segments: int = 0
    bytes: int = 0
    removed: int = 0
    dropped: bool = False
    branched: bool = False
    """Whether both sides had written to the thread."""
    kept: bool = False
    """Whether the target keeps rows that the source does not have, and has recorded that it is to be copied back."""
    rows_read: int = 0
    items: int = 0
    """Rows of other tables."""

    def plus(self, other: "CopiedRows") -> "CopiedRows":
        """Both together."""
        return CopiedRows(
            self.checkpoints + other.checkpoints,
            self.writes + other.writes,
            self.segments + other.segments,
            self.bytes + other.bytes,
            self.removed + other.removed,
            self.dropped or other.dropped,
            self.branched or other.branched,
            self.kept or other.kept,
            self.rows_read + other.rows_read,
            self.items + other.items,
        )


def counted(bodies: Bodies) -> CopiedRows:
    """Return the count of these rows."""
    return CopiedRows(len(bodies.rows), len(bodies.writes), len(bodies.segments), bodies.size)


class Route(NamedTuple):
    """A thread that is copied."""

    source: Side
    target: Side
    thread_id: str
    term: int


class Fetched(NamedTuple):
    """The rows read at the source."""

    keys: Sequence[Key]
    """The checkpoints of which all that is to be copied is in it."""
    bodies: Bodies

    @property
    def counts(self) -> CopiedRows:
        """The rows to copy if the target has none of them."""
        return counted(self.bodies)

    @property
    def rows_read(self) -> int:
        """How many rows were read for it."""
        rows, writes, segments = self.bodies
        return len(rows) + len(writes) + len(segments)


class Compared(NamedTuple):
    """A thread in both databases, as it was when they were compared."""

    theirs: Snapshot
    ours: Snapshot
    difference: Difference


def add_entry_rows(route: Route, found: EntryRows, copied_to: int) -> Program[Literal["added", "more", "moved"]]:
    """Add the rows that entries named.

    If it adds nothing, it returns "moved" if the target is at another position by now, and "more" if more than
    adding rows is to be done.
    """
    store, outline, rows = route.target.store, found.outline, _in_order(found.bodies)
    if outline is None:
        return "added"
    if (yield from last_position(store, route.thread_id)) > found.seen:
        return "more"
    if found.sets_row:
        yield from store.lock(route.thread_id)
    is_later = outline.updated_at > _updated_by(rows)
    change = _change(route, outline, found.bodies, rows)._replace(
        copied=Follows(copied_to, found.position, found.epoch), term=route.term
    )
    if copied_to != NEVER and rows and is_later:
        change = change._replace(now=outline.updated_at, touches=True)
    added = yield from store.add(change)
    if added.refused == "term":
        raise StaleTermError
    if not was_added(change, added):
        return "moved" if added.refused == "behind" else "more"
    if copied_to == NEVER and outline.updated_at > max(_updated_by(rows), outline.row.created_at):
        yield from _touch(store, outline)
    if found.sets_row:
        yield from store.set_thread(outline.row)
    return "added"


def add_some(route: Route, compared: Compared, expected: Copied | None, fetched: Fetched) -> Program[Copied | None]:
    """Add rows that a large thread lacks, before `finish`. Returns the position up to which it is copied then.

    Returns None, having added nothing, if another writer changed it.
    """
    theirs, ours, difference = compared
    store, thread_id = route.target.store, route.thread_id
    yield from _lock(route)
    copied = yield from copied_of(store, thread_id)
    position = yield from last_position(store, thread_id)
    if copied != expected or position != ours.position or theirs.outline is None:
        return None
    if (yield from has_settled(store, thread_id, ours)):
        return None
    bodies = _only(fetched.bodies, set(fetched.keys) - ours.marks.checkpoints.keys(), set(fetched.keys), difference)
    change = _change(route, theirs.outline, bodies, _in_order(bodies))
    if not was_added(change, (yield from store.add(change))):
        return None
    if copied is None:
        copied = Copied(BEGUN, 0)
        yield from store.set_copied(thread_id, copied)
    return copied


def finish(route: Route, compared: Compared, expected: Copied | None, fetched: Fetched) -> Program[CopiedRows | None]:
    """Apply the comparison to the target's thread, with the rows that were fetched for it.

    Returns None, having done nothing, if another writer changed it, so that other rows are needed; also if
    the source has heard since of a change of the target: its rows were read before that.
    """
    store, thread_id, theirs = route.target.store, route.thread_id, compared.theirs
    yield from _lock(route)
    if (yield from has_settled(store, thread_id, compared.ours)):
        return None
    ours = yield from take_target(store, thread_id, theirs)
    if ours is None or ours.copied != expected or lacks_parents(theirs, ours):
        return None
    difference = compare(theirs, ours)
    if difference.drops:
        yield from store.drop(thread_id, now())
        yield from store.set_copied(thread_id, Copied(theirs.dropped_at or theirs.known_to, 0))
        return CopiedRows(dropped=True)
    if not (
        set(difference.checkpoints) <= {*fetched.keys} and difference.segments.keys() <= fetched.bodies.segments.keys()
    ):
        return None
    done = yield from _make_equal(route, theirs, ours, difference, fetched.bodies)
    if difference.merges:
        position = yield from store.record(thread_id, Touched(merged=True).to_bytes(), route.term)
        if position is None:
            raise StaleTermError
    yield from store.set_copied(thread_id, Copied(theirs.known_to, theirs.epoch))
    return done._replace(branched=difference.branches, kept=difference.merges)


def _make_equal(
    route: Route, theirs: Snapshot, ours: Snapshot, difference: Difference, fetched: Bodies
) -> Program[CopiedRows]:
    store, thread_id, outline = route.target.store, route.thread_id, theirs.outline
    if outline is None or (ours.outline is None and not difference.begins):  # it stays deleted
        if difference.removed:
            yield from store.remove(thread_id, difference.removed, ())
        return CopiedRows(removed=len(difference.removed))
    kept = yield from _kept_of_rebuilt(route, difference)
    doomed = [*sorted(difference.rebuilt), *difference.removed]
    doomed_segments = [*sorted(difference.replaced_segments), *difference.removed_segments]
    if doomed or doomed_segments:
        yield from store.remove(thread_id, doomed, doomed_segments)
    lacking = set(difference.checkpoints)
    fresh = {key for key in lacking if key in difference.rebuilt or key not in ours.marks.checkpoints}
    bodies = _only(fetched, fresh, lacking, difference)
    rows = _in_order(bodies)
    change = _change(route, outline, bodies, rows)
    change = change._replace(writes=[*change.writes, *kept])
    if difference.begins or change.checkpoints or change.writes or change.segments:
        added = yield from store.add(change)
        if not was_added(change, added):
            raise TransientStoreError(f"thread {thread_id!r} was changed while it was locked")
    # If the thread has no other checkpoint, those that are added say when it was updated.
    known = ours.outline.updated_at if ours.outline and not doomed else outline.row.created_at
    if outline.updated_at > max(known, _updated_by(rows)):
        yield from _touch(store, outline)
    if difference.row is not None:
        yield from store.set_thread(difference.row)
    return counted(bodies)._replace(removed=len(difference.removed))


def _only(fetched: Bodies, rows: Collection[Key], writes: Collection[Key], difference: Difference) -> Bodies:
    """Return these checkpoints, the writes of those, and the segments, as far as the difference names them."""
    return Bodies(
        {key: row for key, row in fetched.rows.items() if key in rows},
        {key: row for key, row in fetched.writes.items() if key[:2] in writes and key not in difference.kept},
        {key: data for key, data in fetched.segments.items() if key in difference.segments},
    )


def _lock(route: Route) -> Program[None]:
    """Lock a thread, whether it is there or not. Raises StaleTermError for an old term."""
    store = route.target.store
    if (yield from store.replica()).term > route.term:
        raise StaleTermError
    if (yield from store.lock(route.thread_id)) is None:
        yield from store.lock_lease(route.thread_id)


def _kept_of_rebuilt(route: Route, difference: Difference) -> Program[list[WriteRow]]:
    """The target's own writes for checkpoints that are removed and added again."""
    if not difference.rebuilt or not difference.kept:
        return []
    written = yield from route.target.store.writes(route.thread_id, sorted(difference.rebuilt))
    return [row for row in written if (row.ns, row.checkpoint_id, row.task_id, row.idx) in difference.kept]


def _change(route: Route, outline: ThreadOutline, bodies: Bodies, rows: Sequence[CheckpointRow]) -> Change:
    """Return rows as a change that no lease or deletion refuses. A thread that it begins is as old as the source's."""
    row = outline.row
    beginning = Beginning(row.owner, row.expires_at, row.check)
    writes = [bodies.writes[key] for key in sorted(bodies.writes)]
    return Change(
        route.thread_id,
        None,
        row.created_at,
        bodies.segments,
        rows,
        writes,
        None,
        token=ANYONE,
        beginning=beginning,
    )


def _touch(store: ReplicaStore, outline: ThreadOutline) -> Program[None]:
    """Give the thread the time of its last update at the source."""
    moment = outline.updated_at
    yield from store.add(Change(outline.row.thread_id, None, moment, {}, (), (), None, token=ANYONE, touches=True))


def _in_order(bodies: Bodies) -> list[CheckpointRow]:
    return sorted(bodies.rows.values(), key=lambda row: (row.outline.rank, row.outline.ns))


def _updated_by(rows: Sequence[CheckpointRow]) -> int:
    """When a thread was updated, as far as these checkpoints tell."""
    return max((row.outline.created_at for row in rows if row.outline.ns == ""), default=0)


MOST_ROWS, MOST_BYTES = 256, 4 * 1024 * 1024


class Batch(NamedTuple):
    """Checkpoints with their writes, and segments."""

    checkpoints: Sequence[Key] = ()
    segments: Sequence[bytes] = ()


def batches(difference: Difference) -> list[Batch]:
    """Return the parts to copy, which are written in this order.

    All segments come before the first checkpoint, and checkpoints after their parents. Replacements
    come last, in one part, together with the removals.
    """
    replaced = difference.replaced_segments
    segments = list(_segments({key: size for key, size in difference.segments.items() if key not in replaced}))
    fresh = [key for key in difference.checkpoints if key not in difference.rebuilt]
    checkpoints = [fresh[start : start + MOST_ROWS] for start in range(0, len(fresh), MOST_ROWS)]
    last = Batch(sorted(difference.rebuilt), sorted(replaced))
    if len(segments) <= 1 and len(checkpoints) <= 1:
        return [Batch([*fresh, *last.checkpoints], list(difference.segments))]
    before = [Batch(segments=keys) for keys in segments] + [Batch(keys) for keys in checkpoints]
    return [*before, last]


def fetch(store: ReplicaStore, thread_id: str, theirs: Snapshot, batch: Batch) -> Program[Fetched | None]:
    """Read a part. Returns None if any of it has changed since the thread was compared.

    It also returns None if more has come from the other side, which may have removed some of it. Writes that
    were added since are left out: they have a separate entry.
    """
    if (yield from copied_of(store, thread_id)) != theirs.copied:
        return None
    keys = batch.checkpoints
    found = yield from read_bodies(store, thread_id, keys, keys, batch.segments)
    selected, marks = set(keys), theirs.marks
    rows = {key: mark for key, mark in marks.checkpoints.items() if key in selected}
    writes = {key: mark for key, mark in marks.writes.items() if key[:2] in selected}
    is_same = (
        {key: (row.outline.rank, _mark(row.check, row.header)) for key, row in found.rows.items()} == rows
        and {key: _mark(row.check, row.value) for key, row in found.writes.items() if key in writes} == writes
        and {key: (len(data), _mark(b"", data)) for key, data in found.segments.items()}
        == {key: marks.segments[key] for key in batch.segments}
    )
    if not is_same:
        return None
    return Fetched(keys, found._replace(writes={key: found.writes[key] for key in writes}))


def _mark(check: bytes, body: bytes) -> bytes:
    return (check or body)[-LONG_MARK:]


def _segments(sizes: Mapping[bytes, int]) -> Iterator[list[bytes]]:
    """Cut the segments into parts of about `MOST_BYTES`, at least one each."""
    part: list[bytes] = []
    held = 0
    for key, size in sizes.items():
        if part and held + size > MOST_BYTES:
            yield part
            part, held = [], 0
        part.append(key)
        held += size
    if part:
        yield part
