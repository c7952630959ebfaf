"""The parts in which a thread is copied, so that a large one is never in memory as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from threadmark.program import Program
from threadmark.replica_store import LONG_MARK, ReplicaStore
from threadmark.replication.applying import Fetched
from threadmark.replication.comparing import Difference
from threadmark.replication.snapshots import Snapshot, copied_of, read_bodies
from threadmark.store import Key

MOST_ROWS, MOST_BYTES = 256, 4 * 1024 * 1024


class Batch(NamedTuple):
    """Checkpoints with their writes, and segments."""

    checkpoints: Sequence[Key] = ()
    segments: Sequence[bytes] = ()


def batches(difference: Difference) -> list[Batch]:
    """Return what is to be copied in parts, which are written in this order.

    All segments come before the first checkpoint, and checkpoints after their parents. What replaces something
    comes last, in one part, together with what is removed.
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
    """Read a part. Returns None where any of it is not what it was when the thread was compared.

    So it does where more has come from the other side since, which may have said that some of it is to go. Writes that
    were added since are left out: they have an entry of their own.
    """
    if (yield from copied_of(store, thread_id)) != theirs.copied:
        return None
    keys = batch.checkpoints
    found = yield from read_bodies(store, thread_id, keys, keys, batch.segments)
    wanted, marks = set(keys), theirs.marks
    rows = {key: mark for key, mark in marks.checkpoints.items() if key in wanted}
    writes = {key: mark for key, mark in marks.writes.items() if key[:2] in wanted}
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
