"""What a task writes that has a pack already (`packs.py`): what it had not written yet gets rows of its own."""

from collections.abc import Sequence

from threadmark.packs import Written
from threadmark.program import Program
from threadmark.saver.proving.batches import proven_batches, separate_rows
from threadmark.store import PACK, Added, Change, Store, WriteRow


def has_more(rows: Sequence[WriteRow]) -> bool:
    """Whether a batch has a pack, and more rows than that one and its record: special writes, or another pack.

    A store adds these even where it leaves the first pack out, so such a batch is added by `add_whole`.
    """
    return len(rows) > 2 and rows[-2].idx >= PACK  # noqa: PLR2004 - the pack and its record


def add_whole(store: Store, change: Change, written: Sequence[Written]) -> Program[Added]:
    """Add what one task wrote, in one transaction, whatever it has written before.

    Returns what became of the change, with nothing left out.
    """
    yield from store.lock(change.thread_id)
    added = yield from store.add(change)
    if not added.pack_left_out:
        return added
    thread_id, (ns, checkpoint_id, task_id, _, task_path, *_) = change.thread_id, change.writes[0]
    found = yield from store.writes(thread_id, [(ns, checkpoint_id)])
    there = {row.idx for row in proven_batches(thread_id, [row for row in found if row.task_id == task_id])}
    rest = [each for each in written if each[0] >= 0 and each[0] not in there]
    if rest:
        rows = separate_rows(thread_id, ns, checkpoint_id, task_id, task_path, rest)
        yield from store.add(change._replace(epoch=added.epoch, segments={}, writes=rows))
    return added._replace(pack_left_out=False)
