"""Adding the rows of one change to the dictionaries, or saying what refuses it."""

from collections.abc import Iterable

from threadmark.format.packs import PACK
from threadmark.memory.replica_store import add_entry
from threadmark.memory.tables import Tables, Thread, clock, newest
from threadmark.store.contract import ANYONE, Added, Change, CheckpointRow, Follows, Refusal, WriteRow
from threadmark.store.replica import Copied, is_followed
from threadmark.store.threads import ThreadRow


def add_change(tables: Tables, change: Change, *, replace: bool) -> Added:
    """Add the rows of a change. With `replace` its checkpoints take the place of others."""
    if change.term is not None and tables.pair["replica"].term > change.term:
        return Added(0, "term")
    # Nothing is kept of a new thread if the change is refused.
    thread = tables.threads.get(change.thread_id) or Thread(change.thread_id, 0, live=False)
    if (refused := _refused(thread, change, replace=replace)) is not None:
        return refused
    if not thread.live:
        _begin(tables, thread, change)
    add_segments(tables, thread, change.segments.items())
    _update(tables, thread, change)
    replaced = _add_checkpoints(tables, thread, change.checkpoints)
    pack_left_out = any(row.idx == PACK and row[:4] in thread.writes for row in change.writes)
    added = Added(
        thread.epoch,
        replaced=replaced,
        replaced_writes=_add_writes(tables, thread, change.writes),
        pack_left_out=pack_left_out,
        renewal=_renewal(thread, change),
        expires_at=thread.row.expires_at,
    )
    if change.copied is not None:
        tables.set(thread.state, "copied", Copied(change.copied.position, change.copied.epoch))
    if change.entry is None:
        return added
    previous = thread.position
    return added._replace(position=add_entry(tables, thread, change.entry), previous=previous)


def _refused(thread: Thread, change: Change, *, replace: bool) -> Added | None:
    """Return why a change is not made, None where it is."""
    if change.copied is not None and _is_behind(thread, change.copied):
        return Added(thread.epoch, "behind")
    if change.epoch is not None and change.epoch != (thread.epoch or None):  # a new thread has none yet
        return Added(thread.epoch)
    if (refusal := _refusal(thread, change)) is not None:
        return Added(thread.epoch, refusal)
    if _too_late(thread, change):
        return Added(thread.epoch, too_late=True)
    exists = any(row.outline.key in thread.checkpoints for row in change.checkpoints)
    if exists:
        return None if replace else Added(thread.epoch, exists=True)
    is_next = not change.has_place or change.may_follow(_newest_rank(thread, change))
    return None if is_next else Added(thread.epoch, "conflict")


def _begin(tables: Tables, thread: Thread, change: Change) -> None:
    if change.thread_id not in tables.threads:
        tables.set(tables.threads, change.thread_id, thread)
        tables.set(thread.state, "epoch", change.now)
    tables.set(thread.state, "live", value=True)
    owner, expires_at, check = change.beginning
    row = ThreadRow(change.thread_id, change.now, owner, expires_at=expires_at, check=check)
    tables.set(thread.state, "row", row)
    tables.set(thread.state, "updated", change.now)


def _is_behind(thread: Thread, follows: Follows) -> bool:
    """Whether a thread is not as far as a change of another database needs it, or was changed here as well."""
    return not is_followed(thread.copied, follows) or bool(thread.outbox)


def _refusal(thread: Thread, change: Change) -> Refusal | None:
    if change.only_owner and thread.live and thread.row.owner != change.beginning.owner:
        return "owner"
    if change.token is None:
        return "busy" if thread.lease.ends > clock() else None
    return None if change.token in (thread.lease.row.token, ANYONE) else "lost"


def _newest_rank(thread: Thread, change: Change) -> str:
    row = newest(thread, change.checkpoints[0].outline.ns)
    return row.outline.rank if row else ""


def _renewal(thread: Thread, change: Change) -> int:
    lease = thread.lease
    is_due = change.token == lease.row.token and lease.ends - clock() < lease.ttl // 2
    return lease.ttl if is_due else 0


def _too_late(thread: Thread, change: Change) -> bool:
    """Whether the change continues a checkpoint that went with the deleted thread."""
    continued = change.continues
    if continued is None or continued > thread.deleted_up_to:
        return False
    return not any(key[1] == continued for key in thread.checkpoints)


def _update(tables: Tables, thread: Thread, change: Change) -> None:
    """Note when the thread was updated, before the checkpoints of a change are added.

    A thread without checkpoints was updated when it was created: that does not count any more once it has one.
    """
    fresh = {row.outline.key: row.outline.created_at for row in change.checkpoints if row.outline.ns == ""}
    if fresh:
        has_others = any(key[0] == "" and key not in fresh for key in thread.checkpoints)
        times = [thread.updated_at, *fresh.values()] if has_others else fresh.values()
        tables.set(thread.state, "updated", max(times))
    if change.touches:
        tables.set(thread.state, "updated", max(thread.updated_at, change.now))


def add_segments(tables: Tables, thread: Thread, segments: Iterable[tuple[bytes, bytes]]) -> None:
    """Add those that the thread does not have."""
    for key, data in segments:
        if key not in thread.segments:
            tables.set(thread.segments, key, data)


def _add_checkpoints(tables: Tables, thread: Thread, rows: Iterable[CheckpointRow]) -> bool:
    """Add checkpoints. Returns whether a different header was replaced, which ends the epoch."""
    replaced = False
    for row in rows:
        key = row.outline.key
        replaced |= key in thread.checkpoints and thread.checkpoints[key].header != row.header
        tables.set(thread.checkpoints, key, row)
    if replaced:
        tables.set(thread.state, "epoch", thread.epoch + 1)
    return replaced


def _add_writes(tables: Tables, thread: Thread, rows: Iterable[WriteRow]) -> list[WriteRow]:
    """Add writes. Returns those that replaced others, with the values of the replaced ones."""
    replaced = []
    for row in rows:
        key = row.ns, row.checkpoint_id, row.task_id, row.idx
        if key not in thread.writes:
            tables.set(thread.writes, key, row)
        elif row.idx < 0:
            replaced.append(row._replace(value=thread.writes[key].value))
            tables.set(thread.writes, key, row)
    return replaced
