"""Removing a thread or one checkpoint of it, and what goes over all threads of one kind: counting, and removing."""

from collections.abc import Sequence
from functools import partial

from threadmark.config import as_thread_id
from threadmark.interfaces.operations.marks import Mark, is_marked, marked
from threadmark.interfaces.operations.saving import config_of
from threadmark.program import Operation, Program, Transaction, ask, read
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.deleting import delete_checkpoint
from threadmark.saver.operations.removing import delete_thread
from threadmark.saver.operations.threads import filtered
from threadmark.store import now
from threadmark.thread_store import ThreadCounts, ThreadPlace

_PAGE = 256
_BATCH = 16


def delete(context: SaverContext, thread_id: str, checkpoint_id: str | None) -> Operation[bool]:
    """Remove one checkpoint of a thread, or all for None. Returns whether there was anything."""
    if checkpoint_id is None:
        return (yield from delete_thread(context, as_thread_id(thread_id)))
    return (yield from delete_checkpoint(context, config_of(thread_id, checkpoint_id)))


def clear(context: SaverContext, mark: Mark) -> Operation[int]:
    """Remove every thread with this mark, a few in a transaction. Returns how many there were."""
    count = 0
    pages = _Pages(context, mark)
    while pages.more:
        names = yield from pages.read()
        for start in range(0, len(names), _BATCH):
            seen: set[str] = set()
            program = partial(_drop, context, names[start : start + _BATCH], mark, seen)
            count += yield from ask(Transaction(program, writes=True, reclaims_space=True))
    return count


def counts(context: SaverContext, mark: Mark) -> Operation[list[ThreadCounts]]:
    """Return what every thread with this mark holds."""
    found: list[ThreadCounts] = []
    pages = _Pages(context, mark)
    while pages.more:
        names = yield from pages.read()
        found += yield from read(context.store.thread_counts, names)
    return found


class _Pages:
    """The ids of the threads with a mark, a page at a time."""

    def __init__(self, context: SaverContext, mark: Mark) -> None:
        self.more = True
        self._context = context
        self._query = marked(mark)
        self._after: ThreadPlace | None = None

    def read(self) -> Operation[list[str]]:
        """The next ones."""
        found = (yield from filtered(self._context, self._query, self._after, _PAGE))[:_PAGE]
        self.more = len(found) == _PAGE
        self._after = self._query.place(found[-1]) if found else None
        return [outline.row.thread_id for outline in found]


def _drop(context: SaverContext, names: Sequence[str], mark: Mark, seen: set[str]) -> Program[int]:
    """Remove those that have the mark still. `seen` are those that an earlier attempt, maybe committed, found."""
    for name in sorted(names):
        is_gone = (yield from context.store.lock(name)) is None
        # Of two databases this one may lack what the other one refused to remove, and still has.
        if (is_gone and name in seen) or (yield from is_marked(context, name, mark)):
            seen.add(name)
            yield from context.store.drop(name, now())
    return len(seen)
