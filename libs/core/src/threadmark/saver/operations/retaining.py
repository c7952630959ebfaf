"""Retention: what has expired, lain idle or takes too much space goes, and old checkpoints of the other threads.

It goes through the threads a few at a time, and first looks at them without a lock, because mostly there is nothing to
do. The transaction that removes locks those where there is, and looks again: others may run at once, such as a writer,
whoever takes a lease, or another retention. So it may be killed anywhere, and run again.
"""

import time
from collections.abc import Sequence
from functools import partial

from threadmark.errors import CorruptDataError
from threadmark.model import OnProgress, Problem, RetentionReport
from threadmark.program import Operation, Program, Transaction, ask, read
from threadmark.saver.arguments import check_flag
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.inspecting import damaged
from threadmark.saver.operations.removing import NOTHING
from threadmark.saver.operations.reporting import PAGE, Reporter, in_batches, reporter_of
from threadmark.saver.operations.retention_rules import Fate, Outcome, RetentionRule, has_expired, is_chosen, retain
from threadmark.saver.thread_arguments import ThreadQuery
from threadmark.store import now
from threadmark.thread_store import ThreadCounts, ThreadOutline, ThreadPlace, is_sound_thread


def retention(
    context: SaverContext, rule: RetentionRule, *, dry_run: bool, progress: OnProgress | None
) -> Operation[RetentionReport]:
    """Go through all threads of the rule. Returns what was removed, or with `dry_run` what would be."""
    check_flag(dry_run, "dry_run")
    begun = time.monotonic()
    course = _Course(context, rule, now(), dry_run=dry_run)
    queries = list(rule.queries(course.moment))
    reporter = yield from reporter_of(context, progress, *(query.scope for query in queries))
    for number, query in enumerate(queries):
        yield from course.go_through(query, reporter, expired_are_done=number > 0)
    return course.report(time.monotonic() - begun)


class _Course:
    """One retention, as far as it has come."""

    def __init__(self, context: SaverContext, rule: RetentionRule, moment: int, *, dry_run: bool) -> None:
        self.moment = moment
        self._context = context
        self._rule = rule
        self._dry_run = dry_run
        self._used = 0
        """Bytes of the threads that were looked at and not idle or expired: they are the last updated ones."""
        self._listed: dict[str, int] = {}
        """When the threads of a page were last updated, as it says."""
        self._fates: dict[Fate, int] = {}
        self._bytes = 0
        self._pruned = NOTHING
        self._problems: list[Problem] = []

    def go_through(self, query: ThreadQuery, reporter: Reporter, *, expired_are_done: bool) -> Operation[None]:
        """Do what is to be done in the threads that a query finds."""
        after: ThreadPlace | None = None
        more = True
        while more:
            page, counts = yield from read(_page, self._context, query, after)
            self._listed = {each.row.thread_id: each.updated_at for each in page}
            more, after = len(page) == PAGE, query.place(page[-1]) if page else None
            done = [each for each in page if expired_are_done and has_expired(each, self.moment)]
            passed = {each.row.thread_id for each in (*done, *filter(self._passes, page))}
            reporter.done(sorted(passed))
            found = [each.row.thread_id for each in page if each.row.thread_id not in passed]
            checkpoints = {each.thread_id: each.checkpoints for each in counts}
            for names in in_batches(found, checkpoints):
                to_do = yield from self._look_at(names)
                reporter.done([name for name in names if name not in to_do])
                if to_do:
                    yield from self._do(to_do)
                    reporter.done(to_do)

    def _passes(self, outline: ThreadOutline) -> bool:
        """Whether a thread that was listed is none of those that are meant. A damaged one is looked at again."""
        return is_sound_thread(outline.row) and not is_chosen(self._rule, outline)

    def report(self, seconds: float) -> RetentionReport:
        """The sums."""
        fates = {fate: count for fate, count in self._fates.items() if fate != "gone"}
        return RetentionReport(
            sum(fates.values()) + len(self._problems),
            fates.get("busy", 0),
            fates.get("expired", 0),
            fates.get("idle", 0),
            fates.get("for space", 0),
            self._bytes,
            self._pruned,
            self._problems,
            seconds,
            self._dry_run,
        )

    def _look_at(self, names: Sequence[str]) -> Operation[Sequence[str]]:
        """Find out, with no lock, in which of a few threads something is to be done. Returns those."""
        if self._rule.max_bytes is not None and not self._dry_run:
            return names  # what goes depends on what those before it have left
        to_do: list[str] = []
        for name, outcome in (yield from self._outcomes(names, self._used, dry_run=True)):
            if self._dry_run or not outcome.removes:
                self._count(outcome)
            else:
                to_do.append(name)
        return to_do

    def _do(self, names: Sequence[str]) -> Operation[None]:
        """Do what is to be done in a few threads."""
        for _, outcome in (yield from self._outcomes(names, self._used, dry_run=False)):
            self._count(outcome)

    def _outcomes(self, names: Sequence[str], used: int, *, dry_run: bool) -> Operation[list[tuple[str, Outcome]]]:
        """Have one transaction, or where a thread is damaged, one for each thread. The damaged ones are left out."""
        listed = {name: self._listed[name] for name in names}
        program = partial(retain, self._context, self._rule, listed, self.moment, used, dry_run=dry_run)
        try:
            outcomes = yield from ask(Transaction(program, writes=not dry_run, reclaims_space=not dry_run))
        except CorruptDataError as error:
            if len(names) == 1:
                self._problems.append(damaged(error))
                return []
        else:
            return list(zip(names, outcomes, strict=True))
        found: list[tuple[str, Outcome]] = []
        for name in names:
            one = yield from self._outcomes([name], used, dry_run=dry_run)
            used += sum(outcome.taken for _, outcome in one)
            found += one
        return found

    def _count(self, outcome: Outcome) -> None:
        fate, size, removal = outcome
        self._fates[fate] = self._fates.get(fate, 0) + 1
        self._used += outcome.taken
        if fate in ("expired", "idle", "for space"):
            self._bytes += size
        if fate == "kept" and removal is not None:
            self._pruned = self._pruned.plus(removal.pruned)


def _page(
    context: SaverContext, query: ThreadQuery, after: ThreadPlace | None
) -> Program[tuple[list[ThreadOutline], list[ThreadCounts]]]:
    page = yield from context.store.thread_page(query.scope, after, 0, PAGE)
    counts = yield from context.store.thread_counts([outline.row.thread_id for outline in page])
    return page, counts
