"""Progress reports of long operations, and the loop over many threads, a few at a time."""

from collections.abc import Iterator, Mapping, Sequence

from threadmark.config import named_thread
from threadmark.errors import CorruptDataError
from threadmark.model import OnProgress, Problem, Progress
from threadmark.program import Operation, read
from threadmark.saver.arguments import check_progress
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.listing import thread_ids
from threadmark.store.threads import ThreadScope

PAGE = 64
"""How many threads are listed at once."""

IDS = 4096
"""How many ids of threads are read at once."""

MOST_THREADS = 16
"""How many one transaction looks at, or removes something from: on SQLite no other writer gets in, and on a server
each thread takes a few round trips."""

MOST_CHECKPOINTS = 1000
"""How many checkpoints of theirs it may look at. A larger thread has a separate transaction."""


def damaged(error: CorruptDataError) -> Problem:
    """The problem that an error tells of."""
    return Problem("damaged", error.location, error.problem)


class Reporter:
    """Calls the function `progress`, if there is one."""

    def __init__(self, progress: OnProgress | None, of: int | None) -> None:
        self._progress = progress
        self._of = of
        self._threads = 0

    def done(self, thread_ids: Sequence[str]) -> None:
        """Some more threads are done. Call it between two transactions."""
        self._threads += len(thread_ids)
        if self._progress is not None and thread_ids:
            self._progress(Progress(self._threads, self._of, thread_ids[-1]))


def reporter_of(context: SaverContext, progress: OnProgress | None, *scopes: ThreadScope) -> Operation[Reporter]:
    """Return a reporter for an operation that goes through the threads of some scopes."""
    check_progress(progress)
    of = 0
    if progress is not None:
        for scope in scopes:
            of += yield from read(context.store.count_threads, scope)
    return Reporter(progress, of)


def some_threads(
    context: SaverContext, thread_id: object | None, after: str
) -> Operation[tuple[list[str], str | None]]:
    """A page of thread ids, and the start of the next one."""
    if thread_id is not None:
        return [named_thread(thread_id)], None
    names = yield from read(thread_ids, context, after, IDS)
    return names, names[-1] if len(names) == IDS else None


def reporter_of_threads(
    context: SaverContext, thread_id: object | None, progress: OnProgress | None
) -> Operation[Reporter]:
    """Return a reporter for an operation that goes through one thread, or for None through all."""
    if thread_id is None:
        return (yield from reporter_of(context, progress, ThreadScope()))
    check_progress(progress)
    return Reporter(progress, 1)


def in_batches(thread_ids: Sequence[str], checkpoints: Mapping[str, int]) -> Iterator[Sequence[str]]:
    """Divide threads into groups for a transaction each, by how many checkpoints they have."""
    batch: list[str] = []
    looked_at = 0
    for thread_id in thread_ids:
        size = checkpoints.get(thread_id, 0)
        if batch and (len(batch) == MOST_THREADS or looked_at + size > MOST_CHECKPOINTS):
            yield batch
            batch, looked_at = [], 0
        batch.append(thread_id)
        looked_at += size
    if batch:
        yield batch
