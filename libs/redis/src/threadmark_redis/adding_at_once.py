"""Adding rows to a thread by one script, lua/add.lua."""

from typing import Any

from threadmark.backends import Added, Change, CorruptDataError, Program, was_added
from threadmark_redis.announcing import announce
from threadmark_redis.changes import change_columns, is_replicated
from threadmark_redis.columns import int_or_none, text_or_none
from threadmark_redis.formats import later_form_error
from threadmark_redis.index import STALE, Indexed, Settings, index
from threadmark_redis.keys import index_keys, replica_keys, shard_of, thread_keys
from threadmark_redis.reading import evicted_error
from threadmark_redis.steps import run, script
from threadmark_redis.transactions import ChangedError
from threadmark_redis.writes import grouped

ADD = script("add", "thread", "outbox", "groups", "index")


def add_at_once(settings: Settings, change: Change) -> Program[Added]:
    """Add the rows of a change to a thread that is not locked, in one script."""
    if is_replicated(change):
        return (yield from _add_replicated(settings, change))
    return (yield from _add(settings, change, ()))


def _add_replicated(settings: Settings, change: Change) -> Program[Added]:
    """Add the rows of a change, with the entry for replication."""
    keys = replica_keys(settings.prefix, change.thread_id)
    if not settings.clustered:
        return (yield from _add(settings, change, keys))
    pending = [] if change.entry is None else [change.thread_id]
    if not (yield from announce(keys, change.term, pending)):
        return Added(0, "term")
    added = yield from _add(settings, change, (keys.outbox,))
    if was_added(change, added) or added.exists:  # the existing change may be this one, whose reply was lost
        return added if (yield from announce(keys, change.term, pending)) else Added(0, "term")
    return added


def _add(settings: Settings, change: Change, replica: tuple[bytes, ...]) -> Program[Added]:
    keys: tuple[bytes, ...] = thread_keys(settings.prefix, change.thread_id)
    if not settings.clustered:
        keys += index_keys(settings.prefix, shard_of(change.thread_id))
    reply = yield from run(ADD, keys + replica, (change_columns(change), STALE, settings.grace))
    outcome, epoch = reply[:2]
    if outcome == b"added":
        _, _, replaced, renewal, expires_at, is_stale, created, updated, owner, left_out, *recorded = reply
        position, previous = recorded or (0, 0)
        if is_stale and settings.clustered:
            yield from _index(settings, change.thread_id, created, updated, owner, expires_at)
        in_order = [row for *_, rows in grouped(change.writes) for row in rows]
        return Added(
            epoch,
            replaced_writes=[
                in_order[number]._replace(value=value)
                for number, value in zip(replaced[::2], replaced[1::2], strict=True)
            ],
            renewal=renewal,
            expires_at=int_or_none(expires_at),
            position=position,
            previous=previous,
            pack_left_out=bool(left_out),
        )
    if outcome == b"torn":
        raise evicted_error(change.thread_id)
    if outcome == b"form":
        raise later_form_error(change.thread_id)
    if outcome == b"held":
        raise ChangedError
    if outcome == b"damaged":
        raise CorruptDataError(
            "its head cannot be read: `verify` names the damaged rows", f"thread {change.thread_id!r}"
        )
    if outcome == b"exists" and settings.clustered:
        # This change may have been made, and its reply lost. Then the index must still be updated.
        yield from _index(settings, change.thread_id, *reply[2:])
    return _not_added(outcome.decode(), epoch)


def _index(
    settings: Settings, thread_id: str, created: int, updated: int, owner: bytes | None, expires_at: bytes | None
) -> Program[None]:
    entry = Indexed(created, updated, text_or_none(owner), int_or_none(expires_at))
    yield from index(settings, thread_id, entry)


def _not_added(outcome: Any, epoch: int) -> Added:
    if outcome == "epoch":
        return Added(epoch)
    if outcome == "late":
        return Added(epoch, too_late=True)
    if outcome == "exists":
        return Added(epoch, exists=True)
    return Added(epoch, outcome)
