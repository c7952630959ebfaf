"""Removing: deleting threads and runs, and what any removal from a thread does.

A thread's segments are shared by its checkpoints, so what a removal frees is found by marking what the survivors
need and sweeping the rest, in the same transaction.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from threadmark.config import as_thread_id
from threadmark.errors import CorruptDataError
from threadmark.metadata import certain_fragments, matches
from threadmark.model import Pruned
from threadmark.program import Operation, Program, Transaction, ask, read
from threadmark.saver.arguments import given_names, given_run
from threadmark.saver.context import SaverContext
from threadmark.saver.loading.decoding import decode_metadata
from threadmark.saver.operations.inspecting import damaged
from threadmark.saver.operations.listing import all_outlines
from threadmark.saver.paging import Pages
from threadmark.saver.proving.batches import count_writes
from threadmark.saver.proving.checks import checkpoint_row, prove_checkpoint
from threadmark.saver.proving.completeness import prove_complete
from threadmark.saver.proving.writes import proven_writes
from threadmark.saver.pruning.late_writes import late_writes
from threadmark.saver.pruning.survivors import Choice, Namespace, sparing_messages, survival
from threadmark.store import Key, Outline, Scope, WriteRow, now

_PAGE = 4096
_BATCH = 256

NOTHING = Pruned(0, 0, 0, 0, 0)


class Rule(NamedTuple):
    """What is to be removed from a thread."""

    everything: bool
    choose: Choice
    late_writes: bool = False
    """Whether writes go, too, that came when their checkpoint had gone."""
    orphan_writes: bool = False
    """Whether all writes go whose checkpoint is not there, even if it may still come."""


class Removal(NamedTuple):
    """What is to be removed from one thread."""

    outlines: Sequence[Outline]
    """Of everything that is there."""
    doomed: set[Key]
    """The checkpoints that go."""
    late: set[Key]
    """The checkpoints that are not there and whose writes go."""
    writes: Sequence[WriteRow]
    """The writes that go, records of batches included."""
    segments: Sequence[bytes]
    whole: bool
    """Whether nothing is left."""
    pruned: Pruned

    @property
    def removes(self) -> bool:
        """Whether anything goes."""
        return self.whole or bool(self.doomed or self.late or self.segments)


def delete_thread(context: SaverContext, thread_id: str) -> Operation[bool]:
    """Remove a thread whole. Returns whether there was one."""
    program = partial(_delete, context, as_thread_id(thread_id), [])
    return (yield from ask(Transaction(program, writes=True, reclaims_space=True)))


def sweep(context: SaverContext, thread_id: str) -> Operation[None]:
    """Remove the segments of a thread that nothing needs any more, after something was replaced.

    What was replaced is stored by then, so damage found on the way is left to whoever reads it, and to `verify`.
    """
    try:
        yield from _removal(context, thread_id, Rule(everything=False, choose=_nothing))
    except CorruptDataError:
        return


def delete_for_runs(context: SaverContext, run_ids: Sequence[str]) -> Operation[Pruned]:
    """Remove the checkpoints that these runs made, except those that a surviving delta channel is read from."""
    total = NOTHING
    visited: set[str] = set()
    for run_id in given_names(run_ids, "run_ids", given_run):
        wanted = {"run_id": run_id}
        threads: dict[str, None] = {}
        pages = Pages(Scope(fragments=certain_fragments(wanted), run_id=run_id), _PAGE)
        while pages.more:
            page = pages.read((yield from read(context.store.page, *pages.request)))
            threads |= dict.fromkeys(row.thread_id for row in page if _may_match(row, wanted))
        rule = Rule(everything=False, choose=partial(_made_by, wanted=wanted))
        visited |= threads.keys()
        for thread_id in sorted(threads):
            try:
                removed = yield from _removal(context, thread_id, rule)
            except CorruptDataError as error:
                removed = NOTHING._replace(problems=(damaged(error),))
            total = total.plus(removed)
    return total._replace(threads=len(visited))  # a thread that two of the runs were in counts once


def removal_of(context: SaverContext, thread_id: str, rule: Rule) -> Program[Removal]:
    """Choose what goes from a thread that is there, by a rule. Whoever means to remove it has locked the thread."""
    # The newest are chosen by what is there: were one hidden, an older one would be kept in its place.
    yield from prove_complete(context, thread_id, None)
    outlines = yield from all_outlines(context, thread_id)
    writes = yield from context.store.writes(thread_id, None)
    choose = rule.choose if rule.everything else sparing_messages(rule.choose)
    doomed, needed = yield from survival(context, thread_id, outlines, writes, choose)
    late = late_writes(outlines, writes, now()) if rule.late_writes else set()
    if rule.orphan_writes:
        late = {row[:2] for row in writes} - {outline.key for outline in outlines}
    gone = [row for row in writes if rule.everything or row[:2] in doomed or row[:2] in late]
    kept = () if rule.everything else [row for row in writes if row[:2] not in doomed and row[:2] not in late]
    sizes = yield from context.store.segment_sizes(thread_id)
    written = {key for write in proven_writes(thread_id, kept) for key in write.value.segment_keys()}
    swept = sorted(sizes.keys() - needed - written)
    pruned = Pruned(1, len(doomed), count_writes(thread_id, gone), len(swept), sum(sizes[key] for key in swept))
    whole = rule.everything or bool(outlines and len(doomed) == len(outlines) and not kept)
    return Removal(outlines, doomed, late, gone, swept, whole, pruned)


def remove(context: SaverContext, thread_id: str, rule: Rule, *, dry_run: bool = False) -> Program[Pruned]:
    """Remove from one thread what the rule lets go. Returns what that was, or with `dry_run` would be."""
    epoch = yield from (context.store.epoch(thread_id) if dry_run else context.store.lock(thread_id))
    if epoch is None:
        return NOTHING
    removal = yield from removal_of(context, thread_id, rule)
    if not dry_run:
        yield from carry_out(context, thread_id, removal)
    return removal.pruned


def carry_out(context: SaverContext, thread_id: str, removal: Removal) -> Program[None]:
    """Remove what was chosen, in the transaction that has locked the thread."""
    if removal.whole:
        yield from context.store.drop(thread_id, now())
    elif removal.removes:
        if removal.doomed:
            yield from context.store.forget(thread_id, sorted(removal.doomed), removes=True)
        yield from context.store.remove(thread_id, sorted(removal.doomed | removal.late), removal.segments)
        yield from _forget_parents(context, thread_id, removal.outlines, removal.doomed)


def _removal(context: SaverContext, thread_id: str, rule: Rule) -> Operation[Pruned]:
    return ask(Transaction(partial(remove, context, thread_id, rule), writes=True, reclaims_space=True))


def _delete(context: SaverContext, thread_id: str, tried: list[int]) -> Program[bool]:
    """Remove a thread. `tried` has its epochs before earlier attempts, one of which may have been committed."""
    epoch = yield from context.store.lock(thread_id)
    yield from context.store.drop(thread_id, now())
    if epoch is not None:
        tried.append(epoch)
    return bool(tried)


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


def _may_match(row: Outline, wanted: Mapping[str, str]) -> bool:
    """Whether a checkpoint is of a run, or nobody can tell: then its thread is looked at, and found to be damaged."""
    try:
        return matches(decode_metadata(row), wanted)
    except CorruptDataError:
        return True


def _nothing(_: Namespace) -> set[Key]:
    return set()


def _made_by(namespace: Namespace, wanted: Mapping[str, str]) -> set[Key]:
    return {outline.key for outline in namespace.outlines if matches(decode_metadata(outline), wanted)}
