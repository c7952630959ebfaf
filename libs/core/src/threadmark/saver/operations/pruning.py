"""Pruning: removal of old checkpoints from some threads, from all, or from the thread of a put."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from threadmark.config import ParsedConfig, named_thread
from threadmark.errors import ConfigError, CorruptDataError, ThreadNotFoundError
from threadmark.model import Duration, OnProgress, PruneReport, PruneStrategy
from threadmark.program import Operation, Program, read, write_and_reclaim
from threadmark.saver.arguments import check_flag, check_keep_last, check_progress, check_word, unique_names
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.listing import thread_ids as next_threads
from threadmark.saver.operations.removing import NOTHING, Rule, carry_out, removal_of, remove
from threadmark.saver.operations.reporting import PAGE, Reporter, damaged, in_batches, reporter_of
from threadmark.saver.options import checked_duration
from threadmark.saver.survivors import Namespace
from threadmark.store.contract import Key, now
from threadmark.store.threads import ThreadScope

_NAMED = 5
"""How many unknown threads an error names."""


def prune(
    context: SaverContext,
    thread_ids: Sequence[object] | None,
    rule: Rule,
    *,
    dry_run: bool,
    missing_ok: bool,
    progress: OnProgress | None,
) -> Operation[PruneReport]:
    """Remove the checkpoints that the rule selects from these threads, or from all for None."""
    check_flag(dry_run, "dry_run")
    check_flag(missing_ok, "missing_ok")
    check_progress(progress)
    if thread_ids is None:
        if rule.everything:  # a name that was not found is None as well
            raise ConfigError("prune(None, strategy='delete') would delete every thread: name the threads to delete")
        return (yield from _prune_all(context, rule, progress, dry_run=dry_run))
    names = unique_names(thread_ids, "thread_ids", named_thread)
    if not missing_ok:
        yield from read(_expect_all, context, names)
    total, reporter = NOTHING, Reporter(progress, len(names))
    for start in range(0, len(names), PAGE):
        pruned = yield from _prune_some(
            context, names[start : start + PAGE], rule, reporter, go_on=False, dry_run=dry_run
        )
        total = total.plus(pruned)
    return total


def prune_rule(strategy: PruneStrategy, keep_last: int | None, older_than: Duration | None) -> Rule:
    """Check the arguments of `prune`."""
    check_word(strategy, PruneStrategy, "strategy")
    if strategy == "delete":
        if keep_last is not None or older_than is not None:
            raise ConfigError("prune with strategy='delete' removes everything: leave out keep_last and older_than")
        return Rule(everything=True, choose=_everything)
    check_keep_last(keep_last)
    kept = keep_last if keep_last is not None else 1
    age = checked_duration(older_than, "older_than", positive=False) if older_than is not None else timedelta(0)
    return Rule(everything=False, choose=partial(_outlived, kept=kept, age=age), late_writes=True)


def keep_last(context: SaverContext, where: ParsedConfig, kept: int) -> Operation[None]:
    """Prune a thread that was put to, as the option `keep_last` says.

    A removal reads the thread's contents, so it comes when a namespace has an eighth more checkpoints than it is to
    have, or than the last removal had to leave. The number of puts until then is remembered, and found again if it has
    been forgotten. The put is stored by now: damage found on the way is left to the next reader.
    """
    thread_id, ns, checkpoint_id, *_ = where
    cache = context.encoding_cache
    if checkpoint_id is None or cache.put_before_removal(thread_id, ns):
        return
    try:
        done = yield from _remove_outlived(context, thread_id, (ns, checkpoint_id), kept, kept + kept // 8)
    except CorruptDataError:
        cache.set_puts_left(thread_id, ns, max(kept, 8))
        return
    cache.set_puts_left(thread_id, ns, max(kept + kept // 8 - done.left, done.left // 8))


def keep_at_most(context: SaverContext, where: ParsedConfig, most: int) -> Operation[None]:
    """Prune a thread that was put to, if a namespace has more than so many checkpoints now.

    Unlike `keep_last` it counts after every put, those of others, too, so that there are never more. From 64 on, a
    few more are removed than have to be, so that not every put removes. Damage is left to the next reader.
    """
    thread_id, ns, checkpoint_id, *_ = where
    heads = yield from read(context.store.heads, thread_id, ns)
    if checkpoint_id is not None and sum(head.checkpoints for head in heads) > most:
        with suppress(CorruptDataError):
            yield from _remove_outlived(context, thread_id, (ns, checkpoint_id), most - most // 64, most)


class _Kept(NamedTuple):
    """The checkpoints that a removal after a put has left."""

    left: int
    """Checkpoints of the namespace."""
    epoch: int | None
    """The one before it."""
    next_epoch: int | None


def _remove_outlived(context: SaverContext, thread_id: str, put: Key, kept: int, most: int) -> Operation[_Kept]:
    """Prune a thread that was put to, if it has more than `most` checkpoints. The put stays remembered."""
    done = yield from write_and_reclaim(_outlived_removed, context, thread_id, put, kept, most)
    if done.epoch is not None and done.epoch == context.encoding_cache.epoch(thread_id):
        context.encoding_cache.outlive(thread_id, *put, done.next_epoch or done.epoch)
    return done


def _outlived_removed(context: SaverContext, thread_id: str, put: Key, kept: int, most: int) -> Program[_Kept]:
    epoch = yield from context.store.lock(thread_id)
    heads = yield from context.store.heads(thread_id, put[0])
    count = sum(head.checkpoints for head in heads)
    if epoch is None or count <= most:
        return _Kept(count, epoch, epoch)
    choose = partial(_outlived, kept=kept, age=timedelta(0), spared=put)
    removal = yield from removal_of(context, thread_id, Rule(everything=False, choose=choose, late_writes=True))
    yield from carry_out(context, thread_id, removal)
    return _Kept(
        count - sum(ns == put[0] for ns, _ in removal.doomed), epoch, (yield from context.store.epoch(thread_id))
    )


def _prune_all(
    context: SaverContext, rule: Rule, progress: OnProgress | None, *, dry_run: bool
) -> Operation[PruneReport]:
    reporter = yield from reporter_of(context, progress, ThreadScope())
    total, after = NOTHING, ""
    more = True
    while more:
        names = yield from read(next_threads, context, after, PAGE)
        pruned = yield from _prune_some(context, names, rule, reporter, go_on=True, dry_run=dry_run)
        total = total.plus(pruned)
        more, after = len(names) == PAGE, names[-1] if names else ""
    return total


def _prune_some(
    context: SaverContext, names: Sequence[str], rule: Rule, reporter: Reporter, *, go_on: bool, dry_run: bool
) -> Operation[PruneReport]:
    """Prune a few threads, in transactions of a bounded size. With `go_on`, damaged ones are reported."""
    # A batch may consist of one, however large it is.
    counts = (yield from read(context.store.thread_counts, names)) if len(names) > 1 else []
    total = NOTHING
    for batch in in_batches(names, {each.thread_id: each.checkpoints for each in counts}):
        try:
            pruned = yield from _prune_batch(context, batch, rule, dry_run=dry_run)
        except CorruptDataError:
            pruned = yield from _prune_one_by_one(context, batch, rule, go_on=go_on, dry_run=dry_run)
        total = total.plus(pruned)
        reporter.done(batch)
    return total


def _prune_one_by_one(
    context: SaverContext, names: Iterable[str], rule: Rule, *, go_on: bool, dry_run: bool
) -> Operation[PruneReport]:
    """Prune all but the damaged ones, which are reported; without `go_on`, the first of them is an error."""
    total = NOTHING
    for name in names:
        try:
            pruned = yield from _prune_batch(context, [name], rule, dry_run=dry_run)
        except CorruptDataError as error:
            if not go_on:
                raise
            pruned = NOTHING._replace(problems=(damaged(error),))
        total = total.plus(pruned)
    return total


def _prune_batch(context: SaverContext, names: Sequence[str], rule: Rule, *, dry_run: bool) -> Operation[PruneReport]:
    run = read if dry_run else write_and_reclaim
    return run(_prune, context, names, rule, dry_run=dry_run)


def _prune(context: SaverContext, names: Sequence[str], rule: Rule, *, dry_run: bool) -> Program[PruneReport]:
    total = NOTHING
    for name in sorted(names):
        total = total.plus((yield from remove(context, name, rule, dry_run=dry_run)))
    return total


def _expect_all(context: SaverContext, names: Iterable[str]) -> Program[None]:
    epochs: dict[str, int | None] = {}
    for name in names:
        epochs[name] = yield from context.store.epoch(name)
    unknown = [name for name, epoch in epochs.items() if epoch is None]
    if unknown:
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        raise ThreadNotFoundError(
            f"there is no thread {', '.join(map(repr, unknown[:_NAMED]))}{more}, so nothing was removed: "
            "leave out missing_ok=False where that is no mistake"
        )


def _everything(namespace: Namespace) -> set[Key]:
    return {outline.key for outline in namespace.outlines}


def _outlived(namespace: Namespace, kept: int, age: timedelta, spared: Key | None = None) -> set[Key]:
    """All but the newest `kept`, or all if the call is over, among those that are old enough."""
    before = now() - round(age.total_seconds() * 1e6)
    rest = namespace.outlines[0 if namespace.is_over else kept :]
    return {outline.key for outline in rest if outline.created_at <= before and outline.key != spared}
