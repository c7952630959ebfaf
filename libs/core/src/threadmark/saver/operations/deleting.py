"""Deleting one checkpoint, where nothing that stays needs it."""

from collections.abc import Sequence
from functools import partial

from threadmark.config import ParsedConfig, parse_config
from threadmark.errors import ConfigError, ConflictError
from threadmark.model import Config
from threadmark.program import Operation, Program, Transaction, ask
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.removing import Rule, carry_out, removal_of
from threadmark.saver.proving.completeness import prove_absent
from threadmark.saver.pruning.calls import enclosing_namespaces
from threadmark.saver.pruning.survivors import Namespace
from threadmark.store import Key, Outline, Scope

_QUESTION = "__interrupt__"


def delete_checkpoint(context: SaverContext, config: Config) -> Operation[bool]:
    """Remove one checkpoint. Returns whether there was one. Raises ConflictError if it has to stay."""
    where = parse_config(config)
    if where.checkpoint_id is None:
        raise ConfigError(
            "delete_checkpoint needs the checkpoint_id of the one that is to go: `delete_thread` removes a whole thread"
        )
    program = partial(_delete, context, where, (where.ns, where.checkpoint_id), [])
    return (yield from ask(Transaction(program, writes=True, reclaims_space=True)))


def _delete(context: SaverContext, where: ParsedConfig, key: Key, seen: list[Key]) -> Program[bool]:
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
