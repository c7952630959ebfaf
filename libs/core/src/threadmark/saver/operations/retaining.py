"""Retention: removal of expired, idle and excess threads, and of old checkpoints in the other threads.

It goes through the threads a few at a time, and first looks at them without a lock, because mostly there is nothing to
do. The transaction that removes locks the affected threads and looks again, because a writer, a lease or another
retention may have changed them. So you can kill it at any point and run it again.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from threadmark.errors import CorruptDataError
from threadmark.metadata import matches
from threadmark.model import Duration, OnProgress, Problem, RetentionReport
from threadmark.program import Operation, Program, read, write_and_reclaim
from threadmark.saver.arguments import ThreadQuery, check_flag, checked_count, microseconds_in, thread_query
from threadmark.saver.completeness import prove_complete
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.listing import all_outlines
from threadmark.saver.operations.pruning import prune_rule
from threadmark.saver.operations.removing import NOTHING, Removal, Rule, carry_out, removal_of
from threadmark.saver.operations.reporting import PAGE, Reporter, damaged, in_batches, reporter_of
from threadmark.saver.options import checked_duration
from threadmark.saver.proving import metadata_of, sound_row
from threadmark.store.contract import now
from threadmark.store.threads import ThreadCounts, ThreadOutline, ThreadPlace, expect_counted, is_sound_thread

_BATCH = 256


class RetentionRule(NamedTuple):
    """The rule for removals. None leaves a part out; expired threads are removed in any case."""

    threads: ThreadQuery
    prune: Rule | None
    idle_for: int | None
    """Microseconds."""
    max_bytes: int | None

    def queries(self, moment: int) -> Iterator[ThreadQuery]:
        """Which threads to look at, in which order."""
        scope = self.threads.scope
        if self.max_bytes is not None:
            yield self.threads._replace(scope=scope._replace(sort="updated", descending=True))
        elif self.prune is not None:
            yield self.threads
        else:
            yield self.threads._replace(scope=scope._replace(expired=moment))
            if self.idle_for is not None:
                yield self.threads._replace(scope=scope._replace(until=moment - self.idle_for, sort="updated"))


Fate = Literal["gone", "busy", "expired", "idle", "for space", "kept"]
"""The result for a thread. It is "gone" if another process has deleted it, or changed the reason for its removal."""


class Outcome(NamedTuple):
    """The result for one thread, or with `dry_run` the result that a removal would have."""

    fate: Fate
    bytes: int
    """The bytes that it took, or if it is kept, that it takes."""
    removal: Removal | None = None

    @property
    def removes(self) -> bool:
        """Return whether anything is removed."""
        if self.fate == "kept":
            return self.removal is not None and self.removal.removes
        return self.fate not in ("gone", "busy")

    @property
    def taken(self) -> int:
        """The bytes that the threads after it can no longer use, whether it stays or is removed for space."""
        return self.bytes if self.fate in ("busy", "for space", "kept") else 0


def retention_rule(
    *,
    keep_last: int | None,
    older_than: Duration | None,
    idle_for: Duration | None,
    max_bytes: int | None,
    owner: str | None,
    metadata: Mapping[str, Any] | None,
) -> RetentionRule:
    """Check the arguments of `retention`."""
    pruning = prune_rule("keep_latest", keep_last, older_than)
    return RetentionRule(
        thread_query({"owner": owner, "metadata": metadata}, "id"),
        None if keep_last is None and older_than is None else pruning,
        None if idle_for is None else microseconds_in(checked_duration(idle_for, "idle_for")),
        None if max_bytes is None else checked_count(max_bytes, "max_bytes"),
    )


def retain(
    context: SaverContext, rule: RetentionRule, listed: Mapping[str, int], moment: int, used: int, *, dry_run: bool
) -> Program[list[Outcome]]:
    """Look at some threads, and apply the rules to them. `used` is the size of those before them.

    `listed` says when each was last updated as their order was found out. One that was updated since is not the next
    one any more that has to make room.
    """
    names = list(listed)
    if not dry_run:
        for name in sorted(names):
            yield from context.store.lock(name)
    counts = {each.thread_id: each for each in (yield from context.store.thread_counts(names))}
    outcomes: list[Outcome] = []
    for name in names:
        outline = yield from context.store.thread(name)
        if outline is None or name not in counts or not is_chosen(rule, outline):
            outcomes.append(Outcome("gone", 0))
            continue
        expect_counted(counts[name])
        limit = rule.max_bytes if outline.updated_at <= listed[name] else None
        outcome = yield from _outcome(context, rule, outline, counts[name], moment, used, limit, dry_run=dry_run)
        if outcome.fate in ("expired", "idle", "for space") and not dry_run:
            yield from context.store.drop(name, now())
        used += outcome.taken
        outcomes.append(outcome)
    return outcomes


def _outcome(
    context: SaverContext,
    rule: RetentionRule,
    outline: ThreadOutline,
    counts: ThreadCounts,
    moment: int,
    used: int,
    limit: int | None,
    *,
    dry_run: bool,
) -> Program[Outcome]:
    """Decide about one thread, and prune one that is kept. The caller drops the others.

    `limit` is how many bytes it and those before it may take.
    """
    size, name = counts.bytes, outline.row.thread_id
    if counts.leased:
        return Outcome("busy", size)
    if has_expired(outline, moment):
        return Outcome("expired", size)
    if rule.idle_for is not None and (yield from _is_idle(context, outline, moment - rule.idle_for)):
        return Outcome("idle", size)
    if limit is not None and used > limit:  # with those before it: nothing is left for it
        return Outcome("for space", size)
    if rule.prune is None:
        removal, left = None, size
    else:
        removal = yield from removal_of(context, name, rule.prune)
        if not dry_run:
            yield from carry_out(context, name, removal)
        left = 0 if rule.max_bytes is None else (yield from _left(context, name, removal, size, dry_run=dry_run))
    if limit is not None and used + left > limit:
        return Outcome("for space", size)
    return Outcome("kept", left, removal)


def is_chosen(rule: RetentionRule, outline: ThreadOutline) -> bool:
    """Whether a thread is one of those that the rule is for. Raises CorruptDataError if its row is damaged."""
    row = sound_row(outline)
    owner = rule.threads.scope.owner
    criteria = rule.threads.metadata
    return owner in (None, row.owner) and (not criteria or matches(metadata_of(row), criteria))


def has_expired(outline: ThreadOutline, moment: int) -> bool:
    """Whether the time has come at which a thread expires."""
    return outline.row.expires_at is not None and outline.row.expires_at <= moment


def _is_idle(context: SaverContext, outline: ThreadOutline, since: int) -> Program[bool]:
    """Whether nothing was stored in any namespace of a thread since then."""
    if outline.updated_at >= since:
        return False
    name = outline.row.thread_id
    yield from prove_complete(context, name, None)
    outlines = yield from all_outlines(context, name)
    return all(each.created_at < since for each in outlines)


def _left(context: SaverContext, name: str, removal: Removal, size: int, *, dry_run: bool) -> Program[int]:
    """The bytes of a pruned thread, in a dry run without the bytes that sealing adds to a row."""
    if not dry_run:
        return sum(each.bytes for each in (yield from context.store.thread_counts([name])))
    freed = removal.pruned.size_bytes + sum(len(row.value) for row in removal.writes)
    doomed = sorted(removal.doomed)
    for start in range(0, len(doomed), _BATCH):
        rows = yield from context.store.rows(name, doomed[start : start + _BATCH])
        freed += sum(len(row.header) + len(row.outline.metadata.encode("utf-8", "surrogatepass")) for row in rows)
    return size - freed


def apply_retention(
    context: SaverContext, rule: RetentionRule, *, dry_run: bool, progress: OnProgress | None
) -> Operation[RetentionReport]:
    """Go through all threads of the rule. Returns a report of the removals, with `dry_run` of the planned ones."""
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
        """Apply the rule to the threads that a query finds."""
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
            return names  # a thread's removal depends on the room that those before it have left
        to_do: list[str] = []
        for name, outcome in (yield from self._outcomes(names, self._used, dry_run=True)):
            if self._dry_run or not outcome.removes:
                self._count(outcome)
            else:
                to_do.append(name)
        return to_do

    def _do(self, names: Sequence[str]) -> Operation[None]:
        """Apply the rule to a few threads."""
        for _, outcome in (yield from self._outcomes(names, self._used, dry_run=False)):
            self._count(outcome)

    def _outcomes(self, names: Sequence[str], used: int, *, dry_run: bool) -> Operation[list[tuple[str, Outcome]]]:
        """Use one transaction, or if a thread is damaged, one for each thread. The damaged ones are left out."""
        listed = {name: self._listed[name] for name in names}
        run = read if dry_run else write_and_reclaim
        try:
            outcomes = yield from run(retain, self._context, self._rule, listed, self.moment, used, dry_run=dry_run)
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
