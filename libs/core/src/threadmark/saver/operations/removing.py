"""Removing: deleting threads and runs, and pruning.

A thread's segments are shared by its checkpoints, so what a removal frees is found by marking what the survivors
need and sweeping the rest, in the same transaction.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NamedTuple, get_args

from threadmark.config import as_thread_id
from threadmark.errors import ConfigError, CorruptDataError, shown
from threadmark.metadata import certain_fragments, matches
from threadmark.model import Pruned, PruneStrategy
from threadmark.program import Operation, Program, Transaction, ask, read
from threadmark.saver.arguments import check_flag, check_keep_last, given_names, given_run
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_metadata
from threadmark.saver.loading.loader import proven_writes
from threadmark.saver.operations.listing import all_outlines
from threadmark.saver.paging import Pages
from threadmark.saver.proving.batches import without_records
from threadmark.saver.proving.checks import checkpoint_row, prove_checkpoint
from threadmark.saver.proving.completeness import prove_complete
from threadmark.saver.pruning.survivors import Choice, Namespace, survival
from threadmark.store import Key, Outline, Scope, now

_PAGE = 4096
_BATCH = 256


class Rule(NamedTuple):
    """What is to be removed from a thread."""

    everything: bool
    choose: Choice


def delete_thread(context: SaverContext, thread_id: str) -> Operation[bool]:
    """Remove a thread whole. Returns whether there was one."""
    program = partial(_delete, context, as_thread_id(thread_id))
    return (yield from ask(Transaction(program, writes=True, reclaims_space=True)))


def prune(context: SaverContext, thread_ids: Sequence[str], rule: Rule, *, dry_run: bool) -> Operation[Pruned]:
    """Remove what the rule lets go, thread by thread."""
    check_flag(dry_run, "dry_run")
    total = Pruned(0, 0, 0, 0, 0)
    for thread_id in dict.fromkeys(given_names(thread_ids, "thread_ids", as_thread_id)):
        removed = yield from _removal(context, thread_id, rule, dry_run=dry_run)
        total = total.plus(removed)
    return total


def keep_last(context: SaverContext, thread_id: str) -> Operation[None]:
    """Prune a thread that was put to, as the option `keep_last` says.

    To prune costs as much as the thread holds, so a namespace may have an eighth more before it is done.
    """
    kept = context.threads.keep_last
    if kept is not None:
        heads = yield from read(context.store.heads, thread_id, None)
        if any(head.checkpoints > kept + kept // 8 for head in heads):
            yield from _removal(context, thread_id, prune_rule("keep_latest", kept, None))


def sweep(context: SaverContext, thread_id: str) -> Operation[None]:
    """Remove the segments of a thread that nothing needs any more, after something was replaced.

    What was replaced is stored by then, so damage found on the way is left to whoever reads it, and to `verify`.
    """
    try:
        yield from _removal(context, thread_id, Rule(everything=False, choose=_nothing))
    except CorruptDataError:
        return


def prune_rule(strategy: PruneStrategy, keep_last: int | None, older_than: timedelta | None) -> Rule:
    """Check the arguments of `prune`."""
    if not isinstance(strategy, str) or strategy not in get_args(PruneStrategy):
        raise ConfigError(f"unknown prune strategy {shown(strategy)}: give 'keep_latest' or 'delete'")
    if strategy == "delete":
        if keep_last is not None or older_than is not None:
            raise ConfigError("prune with strategy='delete' removes everything: leave out keep_last and older_than")
        return Rule(everything=True, choose=_everything)
    check_keep_last(keep_last)
    if older_than is not None and not isinstance(older_than, timedelta):
        raise ConfigError(
            f"older_than must be a datetime.timedelta, such as timedelta(days=30), not {shown(older_than)}"
        )
    kept = keep_last if keep_last is not None else 1
    age = older_than if older_than is not None else timedelta(0)
    return Rule(everything=False, choose=partial(_outlived, kept=kept, age=age))


def delete_for_runs(context: SaverContext, run_ids: Sequence[str]) -> Operation[Pruned]:
    """Remove the checkpoints that these runs made, except those that a surviving delta channel is read from."""
    total = Pruned(0, 0, 0, 0, 0)
    visited: set[str] = set()
    for run_id in given_names(run_ids, "run_ids", given_run):
        wanted = {"run_id": run_id}
        threads: dict[str, None] = {}
        pages = Pages(Scope(fragments=certain_fragments(wanted), run_id=run_id), _PAGE)
        while pages.more:
            page = pages.read((yield from read(context.store.page, *pages.request)))
            threads |= dict.fromkeys(row.thread_id for row in page if matches(decode_metadata(row), wanted))
        rule = Rule(everything=False, choose=partial(_made_by, wanted=wanted))
        visited |= threads.keys()
        for thread_id in sorted(threads):
            removed = yield from _removal(context, thread_id, rule)
            total = total.plus(removed)
    return total._replace(threads=len(visited))  # a thread that two of the runs were in counts once


def _delete(context: SaverContext, thread_id: str) -> Program[bool]:
    epoch = yield from context.store.lock(thread_id)
    yield from context.store.drop(thread_id, now())
    return epoch is not None


def _removal(context: SaverContext, thread_id: str, rule: Rule, *, dry_run: bool = False) -> Operation[Pruned]:
    program = partial(_remove, context, thread_id, rule, dry_run=dry_run)
    return ask(Transaction(program, writes=not dry_run, reclaims_space=not dry_run))


def _remove(context: SaverContext, thread_id: str, rule: Rule, *, dry_run: bool) -> Program[Pruned]:
    """Remove the chosen checkpoints of one thread with their writes, and the segments that nothing needs then."""
    epoch = yield from (context.store.epoch(thread_id) if dry_run else context.store.lock(thread_id))
    if epoch is None:
        return Pruned(0, 0, 0, 0, 0)
    # The newest are chosen by what is there: were one hidden, an older one would be kept in its place.
    yield from prove_complete(context, thread_id, None)
    outlines = yield from all_outlines(context, thread_id)
    writes = yield from context.store.writes(thread_id, None)
    doomed, needed = yield from survival(context, thread_id, outlines, writes, rule.choose)
    sizes = yield from context.store.segment_sizes(thread_id)
    gone = [row for row in writes if rule.everything or (row.ns, row.checkpoint_id) in doomed]
    kept = () if rule.everything else [row for row in writes if (row.ns, row.checkpoint_id) not in doomed]
    written = {key for write in proven_writes(thread_id, kept) for key in write.value.segment_keys()}
    swept = sorted(sizes.keys() - needed - written)
    pruned = Pruned(1, len(doomed), len(without_records(gone)), len(swept), sum(sizes[key] for key in swept))
    if dry_run:
        return pruned
    if rule.everything or (outlines and len(doomed) == len(outlines) and not kept):
        yield from context.store.drop(thread_id, now())
    elif doomed or swept:
        yield from context.store.remove(thread_id, sorted(doomed), swept)
        yield from _forget_parents(context, thread_id, outlines, doomed)
    return pruned


def _forget_parents(
    context: SaverContext, thread_id: str, outlines: Sequence[Outline], doomed: set[Key]
) -> Program[None]:
    """Let no checkpoint that stays name a parent that went."""
    orphaned = [
        outline.key for outline in outlines if outline.key not in doomed and (outline.ns, outline.parent) in doomed
    ]
    for start in range(0, len(orphaned), _BATCH):
        rows = yield from context.store.rows(thread_id, orphaned[start : start + _BATCH])
        for row in rows:
            prove_checkpoint(row)
        parentless = [checkpoint_row(row.outline._replace(parent=None), row.header, row.run_id) for row in rows]
        yield from context.store.rewrite(thread_id, parentless)


def _nothing(_: Namespace) -> set[Key]:
    return set()


def _everything(namespace: Namespace) -> set[Key]:
    return {outline.key for outline in namespace.outlines}


def _outlived(namespace: Namespace, kept: int, age: timedelta) -> set[Key]:
    """All but the newest `kept`, or all where it is of a call that is over, of those that are old enough."""
    before = now() - round(age.total_seconds() * 1e6)
    rest = namespace.outlines[0 if namespace.is_over else kept :]
    return {outline.key for outline in rest if outline.created_at <= before}


def _made_by(namespace: Namespace, wanted: Mapping[str, str]) -> set[Key]:
    return {outline.key for outline in namespace.outlines if matches(decode_metadata(outline), wanted)}
