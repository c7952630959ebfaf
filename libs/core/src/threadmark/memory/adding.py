"""Adding the rows of one change to the dictionaries, or refusing it with a reason."""

from collections.abc import Iterable

from threadmark.format.packs import PACK
from threadmark.memory.replica_store import add_entry
from threadmark.memory.tables import Tables, Thread, clock, heads_of, newest
from threadmark.store.contract import Added, Change, CheckpointRow, WriteRow
from threadmark.store.judging import Facts, is_outdated, judged, may_be_gone, renewal
from threadmark.store.replica import Copied
from threadmark.store.threads import ThreadRow


def add_change(tables: Tables, change: Change, *, replace: bool) -> Added:
    """Add the rows of a change. With `replace` its checkpoints take the place of others."""
    if is_outdated(change, tables.pair["replica"].term):
        return Added(0, "term")
    # Nothing is kept of a new thread if the change is refused.
    thread = tables.threads.get(change.thread_id) or Thread(change.thread_id, 0, live=False)
    facts = _facts(thread, change)
    if (refused := judged(change, facts, replaces=replace)) is not None:
        return refused
    if not thread.live:
        _begin(tables, thread, change)
    add_segments(tables, thread, change.segments.items())
    _update(tables, thread, change)
    replaced = _add_checkpoints(tables, thread, change.checkpoints)
    replaced_writes, pack_left_out = _add_writes(tables, thread, change.writes)
    added = Added(
        thread.epoch,
        replaced=replaced,
        replaced_writes=replaced_writes,
        pack_left_out=pack_left_out,
        renewal=renewal(change, facts),
        expires_at=thread.row.expires_at,
    )
    if change.copied is not None:
        tables.set(thread.state, "copied", Copied(change.copied.position, change.copied.epoch))
    if change.entry is None:
        return added
    previous = thread.position
    return added._replace(position=add_entry(tables, thread, change.entry), previous=previous)


def _facts(thread: Thread, change: Change) -> Facts:
    lease = thread.lease
    return Facts(
        epoch=thread.epoch or None,  # a new thread has none yet
        live=thread.live,
        owner=thread.row.owner,
        token=lease.row.token,
        left=lease.ends - clock(),
        ttl=lease.ttl,
        lacks_continued=_lacks_continued(thread, change),
        exists=any(row.outline.key in thread.checkpoints for row in change.checkpoints),
        newest=_newest_rank(thread, change) if change.has_place else "",
        copied=thread.state["copied"],
        has_entries=bool(thread.outbox),
    )


def _begin(tables: Tables, thread: Thread, change: Change) -> None:
    if change.thread_id not in tables.threads:
        tables.set(tables.threads, change.thread_id, thread)
        tables.set(thread.state, "epoch", change.now)
    tables.set(thread.state, "live", value=True)
    owner, expires_at, check = change.beginning
    row = ThreadRow(change.thread_id, change.now, owner, expires_at=expires_at, check=check)
    tables.set(thread.state, "row", row)
    tables.set(thread.state, "updated", change.now)


def _newest_rank(thread: Thread, change: Change) -> str:
    row = newest(thread, change.checkpoints[0].outline.ns)
    return row.outline.rank if row else ""


def _lacks_continued(thread: Thread, change: Change) -> bool:
    """Whether the change continues a checkpoint that went with the deleted thread."""
    if not may_be_gone(change, thread.deleted_up_to):
        return False
    return not any(checkpoint_id == change.continues for _, checkpoint_id in thread.checkpoints)


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
        head = newest(thread, row.outline.ns)
        tables.set(thread.checkpoints, key, row)
        if head is None or row.outline.rank >= head.outline.rank:
            tables.set(thread.heads, row.outline.ns, key)
        elif head.outline.key == key:  # its rank was greater before
            tables.set(thread.heads, row.outline.ns, heads_of(thread)[row.outline.ns])
    if replaced:
        tables.set(thread.state, "epoch", thread.epoch + 1)
    return replaced


def _add_writes(tables: Tables, thread: Thread, rows: Iterable[WriteRow]) -> tuple[list[WriteRow], bool]:
    """Add writes. Returns those that replaced others, with the values of the replaced ones, and if a pack was there."""
    replaced = []
    pack_left_out = False
    for row in rows:
        key, place = row[:2], row[2:4]
        if key not in thread.writes:
            tables.set(thread.writes, key, {})
        held = thread.writes[key]
        if place not in held:
            tables.set(held, place, row)
        elif row.idx < 0:
            replaced.append(row._replace(value=held[place].value))
            tables.set(held, place, row)
        elif row.idx == PACK:
            pack_left_out = True
    return replaced, pack_left_out
