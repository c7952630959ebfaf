"""Adding and replacing rows of a thread that the transaction has locked.

The change is computed here in the same steps as in the script for a single change (lua/add.lua), and committed with the
rest of the transaction.
"""

from collections.abc import Mapping, Sequence

from threadmark.backends import (
    Added,
    Change,
    CheckpointRow,
    Copied,
    Facts,
    Key,
    Program,
    StoreError,
    WriteRow,
    is_outdated,
    judged,
    may_be_gone,
    renewal,
)
from threadmark_redis.changes import needed_segments, needs_column
from threadmark_redis.columns import (
    alias_of,
    checkpoint_row,
    checkpoint_value,
    copied_of,
    copied_value,
    head_field,
    int_or_none,
    is_live,
    lease_row,
    member_of,
    namespaces_in,
    needs_of,
    pack,
    parts_of,
    text_or_none,
    to_bytes,
    written_for,
)
from threadmark_redis.locked import Locked
from threadmark_redis.outbox import entries_of_thread, known_term
from threadmark_redis.reading import Reader, evicted_error
from threadmark_redis.writes import grouped, merge_group


def add_to_locked(reader: Reader, locked: Locked, change: Change, *, replace: bool) -> Program[Added]:
    """Add the rows of a change to a locked thread. With `replace`, its checkpoints replace others."""
    if change.term is not None and is_outdated(change, (yield from known_term(reader.replica_keys))):
        return Added(0, "term")
    old_rows = yield from _old_rows(reader, change.checkpoints)
    facts = yield from _facts(reader, locked, change, exists=bool(old_rows))
    refused = judged(change, facts, replaces=replace)
    if locked.is_torn and (refused is None or refused.refused != "behind"):
        raise evicted_error(change.thread_id)
    if refused is None or refused.refused == "conflict":
        yield from _check_order(reader, change.checkpoints)
        if change.epoch is not None and not (yield from reader.has_segments(needed_segments(change))):
            locked.set_head({b"e": b"%d" % (change.epoch + 1)})  # segments that the change needs are gone
            return Added(change.epoch + 1)
    if refused is not None:
        return refused
    old = {key: row.header for key, (_, row) in old_rows.items()}
    epoch = _begin(locked, change, facts.epoch)
    locked.segments.changes.update(change.segments)
    replaced = any(old.get(row.outline.key, row.header) != row.header for row in change.checkpoints)
    if replaced:
        epoch += 1
        locked.set_head({b"e": b"%d" % epoch})
    _update(locked, change, old)
    _add_checkpoints(locked, change, old)
    yield from _leave_order(reader, locked, change, {key: member for key, (member, _) in old_rows.items()})
    replaced_writes, pack_left_out = yield from _add_writes(reader, locked, change.writes)
    position, previous = (0, 0) if change.entry is None else locked.record(change.entry)
    if change.copied is not None:
        locked.set_head({b"f": copied_value(Copied(change.copied.position, change.copied.epoch))})
    return Added(
        epoch,
        replaced=replaced,
        replaced_writes=replaced_writes,
        renewal=renewal(change, facts),
        expires_at=int_or_none(locked.head.get(b"x")),
        position=position,
        previous=previous,
        pack_left_out=pack_left_out,
    )


def find_members(reader: Reader, keys: Sequence[Key]) -> Program[dict[Key, bytes]]:
    """Return the places of those checkpoints that exist, with the values of their fields."""
    ranks = yield from reader.checkpoints([alias_of(*key) for key in keys])
    members = {}
    for (ns, checkpoint_id), rank in zip(keys, ranks, strict=True):
        members[ns, checkpoint_id] = member_of(ns, checkpoint_id) if rank is None else member_of(ns, "") + rank
    return members


def stored_rows(reader: Reader, keys: Sequence[Key]) -> Program[list[tuple[bytes, CheckpointRow]]]:
    """Return those checkpoints that exist, each after its place."""
    distinct = list(dict.fromkeys(keys))
    members = yield from find_members(reader, distinct)
    values = yield from reader.checkpoints(list(members.values()))
    found = []
    for (key, member), value in zip(members.items(), values, strict=True):
        if value is not None:
            row = checkpoint_row(reader.thread_id, member, value)
            if row.outline.id == key[1] or member != member_of(*key):  # otherwise another one has this rank
                found.append((member, row))
    return found


def _facts(reader: Reader, locked: Locked, change: Change, *, exists: bool) -> Program[Facts]:
    head = locked.head
    replicates = change.copied is not None
    return Facts(
        epoch=int_or_none(head.get(b"e")),
        live=is_live(head),
        owner=text_or_none(head.get(b"o")),
        token=int_or_none(head.get(b"t")) or 0,
        left=lease_row(head, locked.moment).left if b"z" in head else None,
        ttl=int_or_none(head.get(b"l")) or 0,
        lacks_continued=(yield from _lacks_continued(reader, locked, change)),
        exists=exists,
        newest=_newest(locked, change) if change.has_place else "",
        copied=copied_of(head) if replicates else None,
        has_entries=replicates and bool((yield from entries_of_thread(reader, 1))),
    )


def _lacks_continued(reader: Reader, locked: Locked, change: Change) -> Program[bool]:
    """Return whether a change continues a checkpoint that was deleted with its thread."""
    if not may_be_gone(change, text_or_none(locked.head.get(b"d"))):
        return False
    return not (yield from stored_rows(reader, [(ns, change.continues or "") for ns in namespaces_in(locked.head)]))


def _old_rows(reader: Reader, rows: Sequence[CheckpointRow]) -> Program[dict[Key, tuple[bytes, CheckpointRow]]]:
    """Return those checkpoints that exist already, with their places."""
    found = yield from stored_rows(reader, [row.outline.key for row in rows])
    return {row.outline.key: (member, row) for member, row in found}


def _check_order(reader: Reader, rows: Sequence[CheckpointRow]) -> Program[None]:
    """Raise StoreError if another checkpoint has the place of one of these."""
    taken = yield from reader.checkpoints([member_of(row.outline.ns, row.outline.rank) for row in rows])
    for row, value in zip(rows, taken, strict=True):
        if value is not None:
            other = checkpoint_row(reader.thread_id, member_of(row.outline.ns, row.outline.rank), value)
            if other.outline.id != row.outline.id:
                raise StoreError(
                    f"thread {reader.thread_id!r}: the checkpoints {other.outline.id!r} and {row.outline.id!r} would "
                    "have the same place among the others"
                )


def _newest(locked: Locked, change: Change) -> str:
    return namespaces_in(locked.head).get(change.checkpoints[0].outline.ns, (0, ""))[1]


def _begin(locked: Locked, change: Change, epoch: int | None) -> int:
    """Create the thread of a change if it is not live. Returns its epoch."""
    if is_live(locked.head) and epoch is not None:
        return epoch
    epoch = change.now if epoch is None else epoch
    owner, expires_at, check = change.beginning
    locked.set_head(
        {
            b"i": to_bytes(change.thread_id),
            b"e": b"%d" % epoch,
            b"v": b"1",
            b"a": b"%d" % change.now,
            b"u": b"%d" % change.now,
            b"o": None if owner is None else to_bytes(owner),
            b"x": None if expires_at is None else b"%d" % expires_at,
            b"q": check or None,
        }
    )
    return epoch


def _update(locked: Locked, change: Change, old: dict[Key, bytes]) -> None:
    """Note when the thread was updated. Without checkpoints that is its creation, which does not count then."""
    updated = int_or_none(locked.head.get(b"u")) or 0
    times = [row.outline.created_at for row in change.checkpoints if row.outline.ns == ""]
    if times:
        count = namespaces_in(locked.head).get("", (0, ""))[0]
        has_others = count > len([ns for ns, _ in old if ns == ""])
        updated = max([updated, *times] if has_others else times)
    if change.touches:
        updated = max(updated, change.now)
    locked.set_head({b"u": b"%d" % updated})


def _add_checkpoints(locked: Locked, change: Change, old: dict[Key, bytes]) -> None:
    counts = namespaces_in(locked.head)
    for row in change.checkpoints:
        _, ns, checkpoint_id, rank, *_ = row.outline
        locked.checkpoints.changes[member_of(ns, rank)] = checkpoint_value(row)
        if checkpoint_id != rank:
            locked.checkpoints.changes[alias_of(ns, checkpoint_id)] = to_bytes(rank)
        count, newest = counts.get(ns, (0, ""))
        if not count or rank >= newest:
            newest = rank
            locked.checkpoints.changes[needs_of(ns)] = needs_column(change) or None
        counts[ns] = count + (row.outline.key not in old), newest
        locked.set_head({head_field(ns): pack((counts[ns][0], to_bytes(newest)))})


def _leave_order(reader: Reader, locked: Locked, change: Change, old_rows: dict[Key, bytes]) -> Program[None]:
    """Remove the old places of checkpoints that got another rank."""
    ranks = {row.outline.key: row.outline.rank for row in change.checkpoints}
    left = {key: member for key, member in old_rows.items() if member != member_of(key[0], ranks[key])}
    for (ns, checkpoint_id), member in left.items():
        locked.checkpoints.changes[member] = None
        if ranks[ns, checkpoint_id] == checkpoint_id:
            locked.checkpoints.changes[alias_of(ns, checkpoint_id)] = None
    if left:
        yield from settle_heads(reader, locked, dict.fromkeys([ns for ns, _ in left], 0))


def settle_heads(reader: Reader, locked: Locked, gone: Mapping[str, int]) -> Program[None]:
    """Update the heads of namespaces, each of which has lost some checkpoints. Empty ones are removed."""
    newest = {}
    for member in (yield from reader.members()):
        ns, rank = parts_of(member)
        newest[ns] = rank
    recorded = namespaces_in(locked.head)
    for ns, number in gone.items():
        count, rank = recorded.get(ns, (0, ""))
        count -= number
        if newest.get(ns, rank) != rank:
            rank = newest[ns]
            locked.checkpoints.changes[needs_of(ns)] = None
        if count == 0:
            locked.checkpoints.changes[needs_of(ns)] = None
        locked.set_head({head_field(ns): pack((count, to_bytes(rank))) if count else None})


def _add_writes(reader: Reader, locked: Locked, rows: Sequence[WriteRow]) -> Program[tuple[list[WriteRow], bool]]:
    """Add writes. Returns those that replaced others, and whether a pack was left out."""
    replaced: list[WriteRow] = []
    pack_left_out = False
    groups = grouped(rows)
    references = list(dict.fromkeys(reference for reference, *_ in groups))
    known = dict(zip(references, (yield from reader.written(references)), strict=True))
    names = [reference + task for reference, task, *_ in groups]
    known.update(zip(names, (yield from reader.writes(names)), strict=True))
    for reference, task, path, _, some in groups:
        locked.checkpoints.changes[written_for(reference)] = b""
        merged = merge_group(known[reference], known[reference + task], task, path, some)
        for name, value in ((reference, merged.main), (reference + task, merged.own)):
            if value is not None:
                locked.writes.changes[name] = known[name] = value
        replaced += merged.replaced
        pack_left_out = pack_left_out or merged.pack_left_out
    return replaced, pack_left_out
