"""Which side has the say over a checkpoint that one of them removed, where both changed the thread.

The one that removed it, or was asked to and had none: what that side has of it counts, which is nothing unless it was
put there again. A checkpoint is spared that another one follows which only the other side has. That may be read from it
(`saver/pruning/survivors.py`), which cannot be told here, because rows may be sealed. So both stay.
"""

from collections.abc import Mapping
from typing import NamedTuple

from threadmark.replication.snapshots import Snapshot
from threadmark.store import Key


class Rulings(NamedTuple):
    """The checkpoints over which one side has the say."""

    by_source: frozenset[Key] = frozenset()
    by_target: frozenset[Key] = frozenset()


def rulings(source: Snapshot, target: Snapshot) -> Rulings:
    """Return who has the say over what either side removed. What both did is merged like anything else."""
    mine, theirs = source.touched.removed, target.touched.removed
    return Rulings(_ruled(mine - theirs, source, target), _ruled(theirs - mine, target, source))


def _ruled(removed: frozenset[Key], remover: Snapshot, other: Snapshot) -> frozenset[Key]:
    """Return what was removed on one side, without what the other one's own checkpoints follow."""
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
