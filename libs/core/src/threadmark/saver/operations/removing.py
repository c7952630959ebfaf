"""Removing: deleting threads, runs and single checkpoints, and the part that all removals share.

The checkpoints of a thread share its segments, so a removal marks the segments that the survivors need and sweeps the
rest, in the same transaction. One checkpoint is deleted if nothing that stays needs it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from threadmark.config import ParsedConfig, named_thread, parse_config
from threadmark.errors import ConfigError, ConflictError, CorruptDataError
from threadmark.metadata import certain_fragments, matches
from threadmark.model import Config, PruneReport
from threadmark.program import Operation, Program, read, write_and_reclaim
from threadmark.saver.arguments import checked_run_id, unique_names
from threadmark.saver.batches import count_writes, proven_writes
from threadmark.saver.completeness import prove_absent, prove_complete
from threadmark.saver.context import SaverContext
from threadmark.saver.decoding import decode_metadata
from threadmark.saver.operations.listing import all_outlines
from threadmark.saver.operations.reporting import damaged
from threadmark.saver.paging import Pages
from threadmark.saver.proving import prove_checkpoint, with_check
from threadmark.saver.survivors import Choice, Namespace, enclosing_namespaces, late_writes, sparing_messages, survival
from threadmark.store.contract import Key, Outline, Scope, WriteRow, now

_PAGE = 4096
_BATCH = 256

NOTHING = PruneReport(0, 0, 0, 0, 0)


class Rule(NamedTuple):
    """A rule for removing data from a thread."""

    everything: bool
    choose: Choice
    late_writes: bool = False
    """Whether writes go, too, that came when their checkpoint had gone."""
    orphan_writes: bool = False
    """Whether all writes go whose checkpoint is not there, even if it may still come."""


class Removal(NamedTuple):
    """The rows to remove from one thread."""

    outlines: Sequence[Outline]
    """The total of everything that is there."""
    doomed: set[Key]
    """The checkpoints that go."""
    late: set[Key]
    """The checkpoints that are not there and whose writes go."""
    writes: Sequence[WriteRow]
    """The writes that go, records of batches included."""
    segments: Sequence[bytes]
    whole: bool
    """Whether nothing is left."""
    pruned: PruneReport

    @property
    def removes(self) -> bool:
        """Whether anything goes."""
        return self.whole or bool(self.doomed or self.late or self.segments)


def delete_thread(context: SaverContext, thread_id: object) -> Operation[bool]:
    """Remove a thread whole. Returns whether there was one."""
    return (yield from write_and_reclaim(_delete, context, named_thread(thread_id), now(), []))


def sweep(context: SaverContext, thread_id: str) -> Operation[None]:
    """Remove the segments of a thread that nothing needs any more, after something was replaced.

    The replacement is stored by then, so damage found on the way is left to the next reader, and to `verify`.
    """
    try:
        yield from _removal(context, thread_id, Rule(everything=False, choose=_nothing))
    except CorruptDataError:
        return


def delete_for_runs(context: SaverContext, run_ids: Sequence[str]) -> Operation[PruneReport]:
    """Remove the checkpoints that these runs made, except those that a surviving delta channel is read from."""
    total = NOTHING
    visited: set[str] = set()
    for run_id in unique_names(run_ids, "run_ids", checked_run_id):
        criteria = {"run_id": run_id}
        threads: dict[str, None] = {}
        pages = Pages(Scope(fragments=certain_fragments(criteria), run_id=run_id), _PAGE)
        while pages.more:
            page = pages.read((yield from read(context.store.page, *pages.request)))
            threads |= dict.fromkeys(row.thread_id for row in page if _may_match(row, criteria))
        rule = Rule(everything=False, choose=partial(_made_by, criteria=criteria))
        visited |= threads.keys()
        for thread_id in sorted(threads):
            try:
                removed = yield from _removal(context, thread_id, rule)
            except CorruptDataError as error:
                removed = NOTHING._replace(problems=(damaged(error),))
            total = total.plus(removed)
    return total._replace(threads=len(visited))  # a thread that two of the runs were in counts once


def removal_of(context: SaverContext, thread_id: str, rule: Rule) -> Program[Removal]:
    """Choose the rows to remove from a thread that is there, by a rule. To remove it, lock the thread first."""
    # The newest are chosen from the rows found: were one hidden, an older one would be kept in its place.
    yield from prove_complete(context, thread_id, None)
    outlines = yield from all_outlines(context, thread_id)
    writes = yield from context.store.writes(thread_id, None)
    choose = rule.choose if rule.everything else sparing_messages(rule.choose)
    doomed, needed, kept = yield from survival(context, thread_id, outlines, writes, choose)
    late = late_writes(outlines, writes, now()) if rule.late_writes else set()
    if rule.orphan_writes:
        late = {row[:2] for row in writes} - {outline.key for outline in outlines}
    gone = [row for row in writes if rule.everything or row[:2] in doomed or row[:2] in late]
    staying = () if rule.everything else [row for row in writes if row[:2] not in doomed and row[:2] not in late]
    sizes = yield from context.store.segment_sizes(thread_id)
    written = {key for write in proven_writes(thread_id, staying) for key in write.value.segment_keys()}
    swept = sorted(sizes.keys() - needed - written)
    size = sum(sizes[key] for key in swept)
    pruned = PruneReport(1, len(doomed), count_writes(thread_id, gone), len(swept), size, kept_for_deltas=kept)
    whole = rule.everything or bool(outlines and len(doomed) == len(outlines) and not staying)
    return Removal(outlines, doomed, late, gone, swept, whole, pruned)


def remove(context: SaverContext, thread_id: str, rule: Rule, *, dry_run: bool = False) -> Program[PruneReport]:
    """Remove from one thread the rows that the rule selects. Returns a report of them, also with `dry_run`."""
    epoch = yield from (context.store.epoch(thread_id) if dry_run else context.store.lock(thread_id))
    if epoch is None:
        return NOTHING
    removal = yield from removal_of(context, thread_id, rule)
    if not dry_run:
        yield from carry_out(context, thread_id, removal)
    return removal.pruned


def carry_out(context: SaverContext, thread_id: str, removal: Removal) -> Program[None]:
    """Remove the chosen rows, in the transaction that has locked the thread."""
    if removal.whole:
        yield from context.store.drop(thread_id, now())
    elif removal.removes:
        if removal.doomed:
            yield from context.store.forget(thread_id, sorted(removal.doomed), removes=True)
        yield from context.store.remove(thread_id, sorted(removal.doomed | removal.late), removal.segments)
        yield from _forget_parents(context, thread_id, removal.outlines, removal.doomed)


def _removal(context: SaverContext, thread_id: str, rule: Rule) -> Operation[PruneReport]:
    return write_and_reclaim(remove, context, thread_id, rule)


def _delete(context: SaverContext, thread_id: str, moment: int, tried: list[int]) -> Program[bool]:
    """Remove a thread. `tried` has its epochs before earlier attempts, one of which may have been committed.

    `moment` is the same for all attempts: by it a backend knows what an earlier one removed.
    """
    epoch = yield from context.store.drop(thread_id, moment)
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
        parentless = [with_check(row._replace(outline=row.outline._replace(parent=None))) for row in rows]
        yield from context.store.rewrite(thread_id, parentless)


def _may_match(row: Outline, criteria: Mapping[str, str]) -> bool:
    """Return whether a checkpoint may be of a run. If it is unclear, a closer look finds its thread to be damaged."""
    try:
        return matches(decode_metadata(row), criteria)
    except CorruptDataError:
        return True


def _nothing(_: Namespace) -> set[Key]:
    return set()


def _made_by(namespace: Namespace, criteria: Mapping[str, str]) -> set[Key]:
    """Those that a run made, and the effects of checkpoints that all go: many runs may have asked for one."""
    if namespace.is_over and "callers" in decode_metadata(namespace.outlines[0]):
        return {outline.key for outline in namespace.outlines}
    return {outline.key for outline in namespace.outlines if matches(decode_metadata(outline), criteria)}


_QUESTION = "__interrupt__"


def delete_checkpoint(context: SaverContext, config: Config) -> Operation[bool]:
    """Remove one checkpoint. Returns whether there was one. Raises ConflictError if it has to stay."""
    where = parse_config(config)
    if where.checkpoint_id is None:
        raise ConfigError(
            "delete_checkpoint needs the checkpoint_id of the one to remove; `delete_thread` removes the whole thread"
        )
    return (yield from write_and_reclaim(_delete_one, context, where, (where.ns, where.checkpoint_id), []))


def _delete_one(context: SaverContext, where: ParsedConfig, key: Key, seen: list[Key]) -> Program[bool]:
    """Remove a checkpoint. `seen` has it if an earlier attempt, which may have been committed, found it."""
    if (yield from context.store.lock(where.thread_id)) is None:
        yield from context.store.forget(where.thread_id, [key], removes=False)
        return bool(seen)
    if not (yield from context.store.rows(where.thread_id, [key])):
        yield from prove_absent(context, where)
        yield from context.store.forget(where.thread_id, [key], removes=False)
        return bool(seen)
    seen.append(key)
    if (yield from _is_asked_for(context, where.thread_id, key)):
        raise ConflictError(
            f"{where} is kept, because a question waits there for its answer: resume the run first, or remove the "
            "whole thread with `delete_thread`"
        )
    removal = yield from removal_of(context, where.thread_id, Rule(everything=False, choose=partial(_with_calls, key)))
    if key not in removal.doomed:
        raise ConflictError(
            f"{where} is kept, because later checkpoints are read from it: a delta channel of theirs, or packets that "
            "it sent. Remove those first, or remove old ones together with `prune`"
        )
    yield from carry_out(context, where.thread_id, removal)
    return True


def _is_asked_for(context: SaverContext, thread_id: str, key: Key) -> Program[bool]:
    """Whether a run that stopped with a question goes on from here.

    It stopped at the newest checkpoint of a namespace; for a question of a subgraph, also at those around it.
    """
    newest: list[Outline] = []
    for ns in (key[0], *enclosing_namespaces(key[0])):
        page: Sequence[Outline] = yield from context.store.page(Scope(thread_id, ns), None, 1)
        newest += page
    if not newest or newest[0].key != key:
        return False
    writes = yield from context.store.writes(thread_id, [outline.key for outline in newest])
    return any(row.channel == _QUESTION for row in writes)


def _with_calls(key: Key, namespace: Namespace) -> set[Key]:
    """The checkpoint, and in an inner namespace all that are of a call that is over with it."""
    return {outline.key for outline in namespace.outlines if namespace.is_over or outline.key == key}
