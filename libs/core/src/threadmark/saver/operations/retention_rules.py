"""What a retention does with one thread: the rules, and the program that looks at a few threads and applies them."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from threadmark.errors import ConfigError, shown
from threadmark.metadata import matches
from threadmark.program import Program
from threadmark.saver.arguments import microseconds_in
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.listing import all_outlines
from threadmark.saver.operations.pruning import prune_rule
from threadmark.saver.operations.removing import Removal, Rule, carry_out, removal_of
from threadmark.saver.proving.completeness import prove_complete
from threadmark.saver.proving.thread_rows import metadata_of, sound_row
from threadmark.saver.thread_arguments import ThreadQuery, given_count, given_query
from threadmark.store import now
from threadmark.thread_store import ThreadCounts, ThreadOutline, expect_counted

_BATCH = 256


class RetentionRule(NamedTuple):
    """What is to go. None leaves a part out; what has expired goes in any case."""

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
"""What became of a thread. Somebody else has deleted it or changed what it was chosen by: then it is gone."""


class Outcome(NamedTuple):
    """What became of one thread, or in a dry run what would."""

    fate: Fate
    bytes: int
    """Those that it took, or where it is kept, that it takes."""
    removal: Removal | None = None

    @property
    def removes(self) -> bool:
        """Whether anything goes."""
        if self.fate == "kept":
            return self.removal is not None and self.removal.removes
        return self.fate not in ("gone", "busy")

    @property
    def taken(self) -> int:
        """The bytes that are not there any more for those after it, whether they stay or go for want of space."""
        return self.bytes if self.fate in ("busy", "for space", "kept") else 0


def retention_rule(
    *,
    keep_last: int | None,
    older_than: timedelta | None,
    idle_for: timedelta | None,
    max_bytes: int | None,
    owner: str | None,
    metadata: Mapping[str, Any] | None,
) -> RetentionRule:
    """Check the arguments of `retention`."""
    if idle_for is not None and (not isinstance(idle_for, timedelta) or idle_for <= timedelta(0)):
        raise ConfigError(
            f"idle_for must be a positive datetime.timedelta, such as timedelta(days=90), not {shown(idle_for)}"
        )
    pruning = prune_rule("keep_latest", keep_last, older_than)
    return RetentionRule(
        given_query(owner=owner, metadata=metadata, sort="id"),
        None if keep_last is None and older_than is None else pruning,
        None if idle_for is None else microseconds_in(idle_for),
        None if max_bytes is None else given_count(max_bytes, "max_bytes"),
    )


def retain(
    context: SaverContext, rule: RetentionRule, listed: Mapping[str, int], moment: int, used: int, *, dry_run: bool
) -> Program[list[Outcome]]:
    """Look at some threads, and remove what is to go. `used` is what those before them take.

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
    """Decide about one thread, and prune one that is kept. Whoever asks drops those that are not.

    `limit` is how many bytes it and those before it may take.
    """
    size, name = counts.bytes, outline.row.thread_id
    if counts.leased:
        return Outcome("busy", size)
    if has_expired(outline, moment):
        return Outcome("expired", size)
    if rule.idle_for is not None and (yield from _is_idle(context, outline, moment - rule.idle_for)):
        return Outcome("idle", size)
    if limit is not None and used > limit:  # with what comes before it: nothing is left for it
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
    wanted = rule.threads.metadata
    return owner in (None, row.owner) and (not wanted or matches(metadata_of(row), wanted))


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
    """The bytes of a pruned thread, or in a dry run of one that would be: it cannot know what sealing adds to a row."""
    if not dry_run:
        return sum(each.bytes for each in (yield from context.store.thread_counts([name])))
    freed = removal.pruned.bytes + sum(len(row.value) for row in removal.writes)
    doomed = sorted(removal.doomed)
    for start in range(0, len(doomed), _BATCH):
        rows = yield from context.store.rows(name, doomed[start : start + _BATCH])
        freed += sum(len(row.header) + len(row.outline.metadata.encode("utf-8", "surrogatepass")) for row in rows)
    return size - freed
