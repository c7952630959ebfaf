"""The data that a thread of one database lacks compared with another one. This knows keys and marks, no bodies.

If both changed the thread, and one of them removed a checkpoint, one side has to decide. It is the side that removed
it, or was asked to remove it and had none: its present data counts, which is nothing unless the checkpoint was put
there again. A checkpoint is spared if another one follows it that only the other side has. That one may be read from it
(`saver/survivors.py`), which cannot be decided here, because rows may be sealed. So both stay.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from threadmark.program import Program
from threadmark.replication.snapshots import ALL_ENTRIES, Snapshot, read_parents, take_snapshot
from threadmark.store.contract import NEVER, Key
from threadmark.store.replica import ReplicaStore, WriteKey
from threadmark.store.threads import ThreadRow


class Rulings(NamedTuple):
    """The checkpoints over which one side has the say."""

    by_source: frozenset[Key] = frozenset()
    by_target: frozenset[Key] = frozenset()


def rulings(source: Snapshot, target: Snapshot) -> Rulings:
    """Return the side that decides about each removal. Removals of both are merged like anything else."""
    mine, theirs = source.touched.removed, target.touched.removed
    return Rulings(_ruled(mine - theirs, source, target), _ruled(theirs - mine, target, source))


def _ruled(removed: frozenset[Key], remover: Snapshot, other: Snapshot) -> frozenset[Key]:
    """Return the keys removed on one side, without those that the other one's own checkpoints follow."""
    if not removed:
        return removed
    parents: Mapping[Key, Key] = other.parents or {}
    followed: set[Key] = set()
    for own in other.marks.checkpoints.keys() - remover.marks.checkpoints.keys() - removed:
        parent = parents.get(own)
        while parent in removed and parent not in followed:
            followed.add(parent)
            parent = parents.get(parent)
    return removed - followed


class Difference(NamedTuple):
    """The changes that give the target the contents of the source."""

    drops: bool = False
    """The thread is deleted, and nothing else is done: later contents of the source are another difference."""
    begins: bool = False
    """The thread is no live one in the target, and becomes one."""
    checkpoints: Sequence[Key] = ()
    """Those of which the row or writes are copied, parents before children."""
    rebuilt: frozenset[Key] = frozenset()
    """Those of them that are removed first, with their writes."""
    kept: frozenset[WriteKey] = frozenset()
    """Writes of the target that stay although the source has others."""
    segments: Mapping[bytes, int] = {}
    """Those that are copied, with their sizes."""
    replaced_segments: frozenset[bytes] = frozenset()
    """Those of them that are removed first: they were sealed again."""
    removed: Sequence[Key] = ()
    removed_segments: Sequence[bytes] = ()
    row: ThreadRow | None = None
    """The thread's own row afterwards, if it differs."""
    merges: bool = False
    """Whether the target keeps something that the source does not have."""

    @property
    def branches(self) -> bool:
        """Whether both have checkpoints or writes that the other one lacks."""
        return self.merges and bool(self.checkpoints)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not (
            self.drops
            or self.begins
            or self.checkpoints
            or self.segments
            or self.removed
            or self.removed_segments
            or self.row
        )


def compare(source: Snapshot, target: Snapshot) -> Difference:
    """Return the differences of the target.

    If both databases changed the thread, the rows of either stay, but for the removals of the other one (`rulings`).
    If both have a checkpoint, the changed one stays; if both changed it, the one with the greater marks, so
    that it does not matter who asks. If one of them deleted the thread, it is deleted with the other one's writes.
    """
    both = _both_changed(source, target)
    is_there, is_here = source.outline is not None, target.outline is not None
    if source.touched.dropped and not (both and target.touched.dropped) and is_here:
        return Difference(drops=True)
    if both and (not is_there or (target.touched.dropped and not source.touched.dropped)):
        return _removals(source, target) if is_here else Difference()
    if not is_there:
        return Difference(drops=is_here)
    return _Comparison(source, target, both=both).difference()


def take_target(store: ReplicaStore, thread_id: str, source: Snapshot) -> Program[Snapshot | None]:
    """Return the target's data of a thread, or None if it changed during the read, as `take_snapshot` does."""
    seen = source.copied.position if source.copied else NEVER
    target = yield from take_snapshot(store, thread_id, seen, entries_at_most=ALL_ENTRIES)
    if target is not None and source.touched.removed and _both_changed(source, target):
        target = target._replace(parents=(yield from read_parents(store, thread_id)))
    return target


def lacks_parents(source: Snapshot, target: Snapshot) -> bool:
    """Whether the parents of the source's checkpoints are needed and were not read."""
    return source.parents is None and bool(target.touched.removed) and _both_changed(source, target)


def _removals(source: Snapshot, target: Snapshot) -> Difference:
    """The source's removals are repeated, and nothing is copied: the source has no thread, or is about to lose it."""
    there = target.marks.checkpoints.keys() | _by_checkpoint(target.marks.writes).keys()
    removed = (there & rulings(source, target).by_source) - source.marks.checkpoints.keys()
    if not removed:
        return Difference()
    return Difference(drops=source.outline is None and removed == there, removed=sorted(removed))


def _both_changed(source: Snapshot, target: Snapshot) -> bool:
    """Whether the target may have rows that the source never had.

    It has entries that the source did not get; or it was copied from a later position than the source has,
    which has lost something; or it has rows that the source lacks although nothing was removed there since.
    """
    if target.copied is None and source.copied is None:
        return target.outline is not None or target.position > 0
    if target.position > (source.copied.position if source.copied else 0):
        return True
    if target.copied is None:  # it began there, and the source has got all of it
        return False
    if target.copied.position > source.position:
        return True
    if source.outline is None or source.epoch > target.copied.epoch:
        return False
    mine, theirs = source.marks, target.marks
    return not (theirs.checkpoints.keys() <= mine.checkpoints.keys() and theirs.writes.keys() <= mine.writes.keys())


Marks = Mapping[WriteKey, bytes]


class _Comparison:
    """A thread in two databases, neither of which deleted it."""

    def __init__(self, source: Snapshot, target: Snapshot, *, both: bool) -> None:
        self._source, self._target, self._both = source, target, both
        self._ruled = rulings(source, target) if both else Rulings()
        self._written = _by_checkpoint(source.marks.writes)
        self._written_there = _by_checkpoint(target.marks.writes)

    def difference(self) -> Difference:
        """Return the difference."""
        source, target = self._source.marks, self._target.marks
        kept = frozenset(key for each in self._written_there for key in self._kept_writes(each))
        rebuilt = frozenset(filter(self._is_rebuilt, self._written_there.keys() | target.checkpoints.keys()))
        lacking = [
            key for key in self._written.keys() | source.checkpoints.keys() if key in rebuilt or self._lacks(key)
        ]
        gone = (
            (self._written_there.keys() | target.checkpoints.keys()) - self._written.keys() - source.checkpoints.keys()
        )
        again = frozenset(key for key in source.segments.keys() & target.segments.keys() if self._is_sealed_again(key))
        removed = {key for key in gone if not self._is_merged(key)}
        extra = target.segments.keys() - source.segments.keys()
        sweeps = not self._both or (bool(removed) and not self._has_own())
        fresh = source.segments.keys() - target.segments.keys() | again
        # If the target lacks only rows that it removed, it does not need their segments either.
        shunned = self._ruled.by_target & (self._written.keys() | source.checkpoints.keys())
        needs_none = bool(shunned) and not lacking
        row = self._row()
        return Difference(
            begins=self._target.outline is None and not needs_none,
            checkpoints=sorted(lacking, key=lambda key: (source.checkpoints.get(key, ("", b""))[0], key)),
            rebuilt=rebuilt - gone,
            kept=kept,
            segments={} if needs_none else {key: source.segments[key][0] for key in sorted(fresh)},
            replaced_segments=frozenset() if needs_none else again,
            removed=sorted(removed),
            removed_segments=sorted(extra) if sweeps else [],
            row=row,
            # If both deleted it, the target's deletion is copied to the source later, with the source's present rows.
            merges=self._both
            and (self._target.touched.dropped or self._keeps(gone - removed, () if sweeps else extra, kept)),
        )

    def _is_merged(self, key: Key) -> bool:
        """Whether the rows of both sides for a checkpoint stay."""
        return self._both and key not in self._ruled.by_source

    def _is_rebuilt(self, key: Key) -> bool:
        """Whether the target's checkpoint, or a write of it that is not simply written over, is another one."""
        if key in self._ruled.by_target:
            return False
        row, row_there = self._rows(key)
        written, there = self._written.get(key, {}), self._written_there.get(key, {})
        others = [each for each, mark in there.items() if each[3] >= 0 and written.get(each, mark) != mark]
        conflicts = bool(others) or (row_there is not None and row is not None and row != row_there)
        if self._is_merged(key):
            return conflicts and self._source_wins(key)
        lost = [each for each in there if each not in written]
        return conflicts or bool(lost) or (row is None and row_there is not None)

    def _lacks(self, key: Key) -> bool:
        """Whether the target lacks the checkpoint, or a write of it."""
        if key in self._ruled.by_target:
            return False
        row, row_there = self._rows(key)
        there, kept = self._written_there.get(key, {}), self._kept_writes(key)
        written = self._written.get(key, {}).items()
        lacks = any(each not in there or (there[each] != mark and each not in kept) for each, mark in written)
        return lacks or (row is not None and row_there is None)

    def _kept_writes(self, key: Key) -> set[WriteKey]:
        """Return the target's own writes for a checkpoint that stay."""
        if not self._is_merged(key):
            return set()
        written, there = self._written.get(key, {}), self._written_there.get(key, {})
        if key in self._ruled.by_target:
            return {*there}
        own = {each for each in there if each not in written}
        return own if self._source_wins(key) else {each for each in there if written.get(each) != there[each]}

    def _source_wins(self, key: Key) -> bool:
        """Whether the source's rows for a checkpoint are taken if both databases changed the thread."""
        if key in self._ruled.by_source or key in self._ruled.by_target:
            return key in self._ruled.by_source
        mine, theirs = (
            touched.everything or key in touched.checkpoints or key in touched.writes
            for touched in (self._source.touched, self._target.touched)
        )
        if mine != theirs:
            return mine
        row, row_there = self._rows(key)
        marks = sorted(self._written.get(key, {}).items()), sorted(self._written_there.get(key, {}).items())
        return (row or ("", b""), marks[0]) > (row_there or ("", b""), marks[1])

    def _is_sealed_again(self, key: bytes) -> bool:
        segment, there = self._source.marks.segments[key], self._target.marks.segments[key]
        if segment == there:
            return False
        mine, theirs = self._source.touched.everything, self._target.touched.everything
        return not self._both or (mine if mine != theirs else segment > there)

    def _row(self) -> ThreadRow | None:
        """Return the target's next row of the thread, None if it stays."""
        outline, there = self._source.outline, self._target.outline
        if outline is None:
            return None
        row, row_there = outline.row, there.row if there else None
        if row_there is None:  # the other columns are set when the thread begins
            return row if (row.title, row.metadata) != (None, None) else None
        if row_there[2:] == row[2:]:
            return None
        if self._both:
            mine, theirs = (each.touched.thread or each.touched.everything for each in (self._source, self._target))
            return row if (mine if mine != theirs else row.check > row_there.check) else None
        return row

    def _keeps(self, gone: Iterable[Key], extra: Iterable[bytes], kept: Iterable[WriteKey]) -> bool:
        """Whether the target will have rows that the source does not have."""
        source, target = self._source.marks, self._target.marks
        common = source.checkpoints.keys() & target.checkpoints.keys()
        others = [key for key in common if source.checkpoints[key] != target.checkpoints[key]]
        segments = [key for key in source.segments.keys() & target.segments.keys() if not self._is_sealed_again(key)]
        row, row_there = (each.outline and each.outline.row[2:] for each in (self._source, self._target))
        return (
            any(True for _ in (*gone, *extra, *kept))
            or any(not self._source_wins(key) for key in others)
            or any(source.segments[key] != target.segments[key] for key in segments)
            or (row_there is not None and row != row_there and self._row() is None)
        )

    def _has_own(self) -> bool:
        """Whether the target has any row that the source lacks or has differently, and does not decide about.

        If it has none, all the segments that it needs are at the source as well.
        """
        source, target, ruled = self._source.marks, self._target.marks, self._ruled.by_source
        return any(
            source.checkpoints.get(key) != row for key, row in target.checkpoints.items() if key not in ruled
        ) or any(source.writes.get(key) != mark for key, mark in target.writes.items() if key[:2] not in ruled)

    def _rows(self, key: Key) -> tuple[tuple[str, bytes] | None, tuple[str, bytes] | None]:
        return self._source.marks.checkpoints.get(key), self._target.marks.checkpoints.get(key)


def _by_checkpoint(writes: Marks) -> dict[Key, dict[WriteKey, bytes]]:
    found: dict[Key, dict[WriteKey, bytes]] = {}
    for key, mark in writes.items():
        found.setdefault(key[:2], {})[key] = mark
    return found
