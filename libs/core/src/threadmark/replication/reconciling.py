"""Comparing two databases thread by thread, and copying the missing rows."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from threadmark.errors import ClosedError, ThreadmarkError, TransientStoreError
from threadmark.model import OnProgress, Progress
from threadmark.replication.applying import CopiedRows
from threadmark.replication.copying import copy_all, copy_thread
from threadmark.replication.model import ReconcileReport
from threadmark.replication.others import all_tables
from threadmark.replication.steps import PairFlow, Side, read_on
from threadmark.store.replica import Copied, StaleTermError, Summary

_PAGE = 512
_ENTRIES = 256


def reconcile(
    source: Side,
    target: Side,
    term: int,
    *,
    both_ways: bool = False,
    dry_run: bool = False,
    after: str = "",
    progress: OnProgress | None = None,
    note: Callable[[str], PairFlow[None]] | None = None,
) -> PairFlow[ReconcileReport]:
    """Give the target the contents of the source, and with `both_ways` the other way round as well.

    First both outboxes are copied. Then pages of summaries are compared, and only threads that differ are read. A
    thread that was once copied to the target (`ReplicaStore.copied`), and that the source does not have any more, was
    deleted there, so the target deletes it; rows that the source does not have any more, in a thread whose epoch has
    grown since, were removed, so the target removes them. The target's other extra rows stay, and are reported or with
    `both_ways` copied. `after` is the end of an earlier comparison (`Progress.thread_id`). `note` is called now and
    then with the thread up to which all of them were compared.

    A thread that cannot be copied, because its rows are damaged, say, does not stop the others: its error is raised
    when they are done.
    """
    run = _Run(source, target, term, both_ways, dry_run, progress)
    begun = time.monotonic()
    if not dry_run:
        yield from run.copy_outbox(source, target)
        yield from run.copy_outbox(target, source)
    here, there = _Summaries(source, after), _Summaries(target, after)
    while (yield from here.more()) | (yield from there.more()):
        thread_id = min(each.ahead[0].thread_id for each in (here, there) if each.ahead)
        one, other = here.take(thread_id), there.take(thread_id)
        run.threads += 1
        if one is None or other is None or _content(one) != _content(other):
            run.different += 1
            was_copied = one is None and (yield from there.was_copied(thread_id))
            yield from run.copy(thread_id, is_here=one is not None, was_copied=was_copied)
            run.report(thread_id)
        elif not here.ahead and not there.ahead:
            run.report(thread_id)
        if note is not None and run.problem is None and run.threads % _PAGE == 0:
            yield from note(thread_id)
    yield from run.compare_others()
    if run.problem is not None:
        raise run.problem
    return run.result(after, here.read + there.read, time.monotonic() - begun)


@dataclass
class _Run:
    """One comparison, and its findings and copies so far."""

    source: Side
    target: Side
    term: int
    both_ways: bool
    dry_run: bool
    progress: OnProgress | None
    threads: int = 0
    different: int = 0
    total: CopiedRows = field(default_factory=CopiedRows)
    deleted: list[str] = field(default_factory=list)
    branched: list[str] = field(default_factory=list)
    only_there: list[str] = field(default_factory=list)
    items_only_there: int = 0
    problem: ThreadmarkError | None = None

    def copy_outbox(self, source: Side, target: Side) -> PairFlow[None]:
        """Copy the entries that wait in an outbox now. Later ones are left, because there may be no end to them."""
        waiting = yield from read_on(source, source.store.waiting)
        for _ in range(-(-waiting.entries // _ENTRIES)):
            try:
                found = yield from copy_all(source, target, self.term, limit=_ENTRIES)
            except ThreadmarkError as error:
                self._note(error)
                return
            for thread_id, copied in found.items():
                self._count(thread_id, copied)
            if not found:
                return

    def copy(self, thread_id: str, *, is_here: bool, was_copied: bool) -> PairFlow[None]:
        """Copy a thread that differs.

        `is_here` is whether the source has it, `was_copied` whether it was once copied from there to the target.
        """
        try:
            dropped = False
            if is_here or was_copied:
                copied = yield from self._copy(self.source, self.target, thread_id)
                dropped = copied.dropped
                if copied.kept:
                    yield from self._copy(self.target, self.source, thread_id)
            if not is_here and not dropped and (yield from self._is_missing(thread_id)):
                self.only_there.append(thread_id)
                if self.both_ways:
                    yield from self._copy(self.target, self.source, thread_id)
        except ThreadmarkError as error:
            self._note(error)

    def compare_others(self) -> PairFlow[None]:
        """Compare other tables than those of threads."""
        for tables in all_tables():
            try:
                rows, only_there = yield from tables.reconcile(
                    self.source, self.target, self.term, both_ways=self.both_ways, dry_run=self.dry_run
                )
            except ThreadmarkError as error:
                self._note(error)
            else:
                self.total = self.total.plus(CopiedRows(items=rows))
                self.items_only_there += only_there

    def report(self, thread_id: str) -> None:
        """Report the progress."""
        if self.progress is not None:
            self.progress(Progress(self.threads, None, thread_id))

    def result(self, after: str, summaries: int, seconds: float) -> ReconcileReport:
        """Return the findings and copies."""
        total = self.total
        return ReconcileReport(
            self.threads,
            self.different,
            total.checkpoints,
            total.writes,
            total.segments,
            total.bytes,
            total.removed,
            self.deleted,
            self.branched,
            self.only_there,
            total.rows_read + summaries,
            seconds,
            self.dry_run,
            after,
            complete=not after,
            items=total.items,
            items_only_there=self.items_only_there,
        )

    def _copy(self, source: Side, target: Side, thread_id: str) -> PairFlow[CopiedRows]:
        copied = yield from copy_thread(source, target, thread_id, self.term, everything=True, dry_run=self.dry_run)
        self._count(thread_id, copied)
        return copied

    def _count(self, thread_id: str, copied: CopiedRows) -> None:
        self.total = self.total.plus(copied)
        if copied.dropped and thread_id not in self.deleted:
            self.deleted.append(thread_id)
        if copied.branched and thread_id not in self.branched:
            self.branched.append(thread_id)

    def _is_missing(self, thread_id: str) -> PairFlow[bool]:
        """Whether the source does not have a thread: it may have begun since its summaries were read."""
        epoch = yield from read_on(self.source, self.source.store.epoch, thread_id)
        return epoch is None

    def _note(self, error: ThreadmarkError) -> None:
        """Raise the error now if other threads would meet it, too. If not, keep it for the end."""
        if isinstance(error, (TransientStoreError, StaleTermError, ClosedError)):
            raise error
        self.problem = self.problem or error


class _Summaries:
    """The summaries of one database, a page at a time."""

    def __init__(self, side: Side, after: str) -> None:
        self._side = side
        self._after: str | None = after
        self._copied: dict[str, Copied] | None = None
        self._names: list[str] = []
        self.ahead: deque[Summary] = deque()
        self.read = 0
        """How many rows were read."""

    def more(self) -> PairFlow[bool]:
        """Read the next page if there is nothing ahead. Returns whether there is anything then."""
        if not self.ahead and self._after is not None:
            store = self._side.store
            page = yield from read_on(self._side, store.summaries, self._after, _PAGE)
            self.ahead.extend(page)
            self.read += len(page)
            self._names, self._copied = [each.thread_id for each in page], None
            self._after = self._names[-1] if len(page) == _PAGE else None
        return bool(self.ahead)

    def take(self, thread_id: str) -> Summary | None:
        """Return the summary of a thread if it is the next one."""
        return self.ahead.popleft() if self.ahead and self.ahead[0].thread_id == thread_id else None

    def was_copied(self, thread_id: str) -> PairFlow[bool]:
        """Whether a thread of the page that was read last was once copied from the other database."""
        if self._copied is None:
            store = self._side.store
            self._copied = yield from read_on(self._side, store.copied, self._names)
            self.read += len(self._copied)
        return thread_id in self._copied


def _content(summary: Summary) -> Summary:
    """The summary without the fields that differ between two databases with the same rows."""
    return summary._replace(epoch=0, position=0)
