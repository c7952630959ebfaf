"""What `States` does, as far as it is not listing (`outlining`)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from threadmark.config import ParsedConfig, parse_config
from threadmark.errors import ConfigError, StoreError
from threadmark.ids import new_id
from threadmark.interfaces.operations.channels import StateDraft, state_of
from threadmark.interfaces.operations.marks import STATE, is_marked, marked
from threadmark.interfaces.operations.newest import newest_rows
from threadmark.interfaces.operations.outlining import with_size
from threadmark.interfaces.operations.saving import config_of
from threadmark.interfaces.operations.saving import save as save_draft
from threadmark.model import RetentionReport
from threadmark.program import Operation, Program, read, read_existing
from threadmark.saver.context import SaverContext
from threadmark.saver.operations.pruning import keep_at_most
from threadmark.saver.operations.reading import get_tuple
from threadmark.saver.operations.retaining import retention
from threadmark.saver.operations.retention_rules import retention_rule
from threadmark.saver.operations.threads import count_threads
from threadmark.saver.proving.completeness import prove_absent
from threadmark.store import Scope


def save(
    context: SaverContext,
    thread_id: str,
    state: Any,
    metadata: Mapping[str, Any] | None,
    lease_token: int | None,
    max_history: int | None = None,
) -> Operation[str]:
    """Store a state as the newest of its thread. Returns its id."""
    config = config_of(thread_id, lease_token=lease_token)
    draft = StateDraft(context.serde, new_id(), state)
    about = with_size({} if metadata is None else metadata, draft.size)
    where = parse_config((yield from save_draft(context, config, draft, about, STATE)))
    if max_history is not None and (yield from read(is_marked, context, where.thread_id, STATE)):
        yield from keep_at_most(context, where, max_history)
    return draft.id


def load(context: SaverContext, thread_id: str, state_id: str | None, default: Any) -> Operation[Any]:
    """Return a state of a thread, the newest for None. Returns the default if there is none."""
    found = yield from get_tuple(context, config_of(thread_id, state_id))
    return state_of(found.checkpoint["channel_values"]) if found else default


def exists(context: SaverContext, thread_id: str, state_id: str | None) -> Operation[bool]:
    """Whether a thread has a state, or the one with this id."""
    return (yield from read(_exists, context, parse_config(config_of(thread_id, state_id))))


def size(context: SaverContext) -> Operation[int]:
    """Return how many threads have a state."""
    return (yield from count_threads(context, marked(STATE)))


def cleanup_old(context: SaverContext, max_age: timedelta) -> Operation[RetentionReport]:
    """Remove the threads whose newest state is older than that."""
    if max_age is None:
        raise ConfigError("max_age must be a positive datetime.timedelta, such as timedelta(days=90), not None")
    rule = retention_rule(keep_last=None, older_than=None, idle_for=max_age, max_bytes=None, owner=None, metadata=STATE)
    return (yield from retention(context, rule, dry_run=False, progress=None))


def ping(context: SaverContext) -> Operation[bool]:
    """Whether the store answers. Creates no tables."""
    try:
        yield from read_existing(context.store.epoch, "")
    except StoreError:
        return False
    return True


def _exists(context: SaverContext, where: ParsedConfig) -> Program[bool]:
    if where.checkpoint_id is None:
        return bool((yield from newest_rows(context, [where.thread_id])))
    found = yield from context.store.page(Scope(where.thread_id, "", where.checkpoint_id), None, 1)
    if not found:
        yield from prove_absent(context, where)
    return bool(found)
