"""Adding and replacing rows of a thread that the transaction has locked.

It is made here, step by step the same as by the script of a change by itself (lua/add.lua), and committed with the
rest.
"""

from collections.abc import Mapping, Sequence

from threadmark.errors import StoreError
from threadmark.program import Program
from threadmark.store.contract import ANYONE, Added, Change, CheckpointRow, Follows, Key, Refusal, WriteRow
from threadmark.store.replica import Copied, is_followed
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
    """Add the rows of a change to a locked thread. With `replace` its checkpoints take the place of others."""
    if (outdated := (yield from _outdated(reader, locked, change))) is not None:
        return outdated
    head = locked.head
    epoch = int_or_none(head.get(b"e"))
    if (refused := _refusal(locked, change)) is not None:
        return Added(epoch or 0, refused)
    if (yield from _is_too_late(reader, locked, change.continues)):
        return Added(epoch or 0, too_late=True)
    places = yield from _old_rows(reader, change.checkpoints)
    old = {key: row.header for key, (_, row) in places.items()}
    if old and not replace:
        return Added(epoch or 0, exists=True)
    if (unfounded := (yield from _unfounded(reader, locked, change, is_there=bool(old)))) is not None:
        return unfounded
    epoch = _begin(locked, change, epoch)
    locked.segments.changes.update(change.segments)
    replaced = any(old.get(row.outline.key, row.header) != row.header for row in change.checkpoints)
    if replaced:
        epoch += 1
        locked.set_head({b"e": b"%d" % epoch})
    _update(locked, change, old)
    _add_checkpoints(locked, change, old)
    yield from _leave_places(reader, locked, change, {key: member for key, (member, _) in places.items()})
    replaced_writes, pack_left_out = yield from _add_writes(reader, locked, change.writes)
    position, previous = (0, 0) if change.entry is None else locked.record(change.entry)
    if change.copied is not None:
        locked.set_head({b"f": copied_value(Copied(change.copied.position, change.copied.epoch))})
    return Added(
        epoch,
        replaced=replaced,
        replaced_writes=replaced_writes,
        renewal=_renewal(locked, change),
        expires_at=int_or_none(head.get(b"x")),
        position=position,
        previous=previous,
        pack_left_out=pack_left_out,
    )


def find_members(reader: Reader, keys: Sequence[Key]) -> Program[dict[Key, bytes]]:
    """Return where those of these checkpoints stand that are there, with what their fields hold."""
    ranks = yield from reader.checkpoints([alias_of(*key) for key in keys])
    members = {}
    for (ns, checkpoint_id), rank in zip(keys, ranks, strict=True):
        members[ns, checkpoint_id] = member_of(ns, checkpoint_id) if rank is None else member_of(ns, "") + rank
    return members


def stored_rows(reader: Reader, keys: Sequence[Key]) -> Program[list[tuple[bytes, CheckpointRow]]]:
    """Return those of these checkpoints that are there, each behind its place."""
    distinct = list(dict.fromkeys(keys))
    members = yield from find_members(reader, distinct)
    values = yield from reader.checkpoints(list(members.values()))
    found = []
    for (key, member), value in zip(members.items(), values, strict=True):
        if value is not None:
            row = checkpoint_row(reader.thread_id, member, value)
            if row.outline.id == key[1] or member != member_of(*key):  # else it is another one with this rank
                found.append((member, row))
    return found


def _outdated(reader: Reader, locked: Locked, change: Change) -> Program[Added | None]:
    """Return what becomes of a change that is made for another term, place among copies, or epoch; else None."""
    epoch = int_or_none(locked.head.get(b"e"))
    if change.term is not None and (yield from known_term(reader.replica_keys)) > change.term:
        return Added(0, "term")
    if change.copied is not None and not (yield from _follows(reader, locked, change.copied)):
        return Added(epoch or 0, "behind")
    if locked.is_torn:
        raise evicted_error(change.thread_id)
    return Added(epoch or 0) if change.epoch is not None and change.epoch != epoch else None


def _follows(reader: Reader, locked: Locked, follows: Follows) -> Program[bool]:
    """Whether a thread is as far as a change that comes from another database takes it to be."""
    if not is_followed(copied_of(locked.head), follows):
        return False
    return not (yield from entries_of_thread(reader, 1))


def _refusal(locked: Locked, change: Change) -> Refusal | None:
    head = locked.head
    if change.only_owner and is_live(head) and text_or_none(head.get(b"o")) != change.beginning.owner:
        return "owner"
    if change.token is None:
        return "busy" if _left(locked) > 0 else None
    return None if change.token in (int_or_none(head.get(b"t")) or 0, ANYONE) else "lost"


def _left(locked: Locked) -> int:
    return lease_row(locked.head, locked.moment).left


def _renewal(locked: Locked, change: Change) -> int:
    head = locked.head
    ttl = int_or_none(head.get(b"l")) or 0
    is_own = change.token is not None and change.token == int_or_none(head.get(b"t"))
    return ttl if is_own and b"z" in head and _left(locked) < ttl // 2 else 0


def _is_too_late(reader: Reader, locked: Locked, continued: str | None) -> Program[bool]:
    """Whether a change continues a checkpoint that went with the deleted thread."""
    deleted_up_to = text_or_none(locked.head.get(b"d"))
    if deleted_up_to is None or not continued or continued > deleted_up_to:
        return False
    found = yield from stored_rows(reader, [(ns, continued) for ns in namespaces_in(locked.head)])
    return not found


def _old_rows(reader: Reader, rows: Sequence[CheckpointRow]) -> Program[dict[Key, tuple[bytes, CheckpointRow]]]:
    """Return those checkpoints that are there already, with their places."""
    found = yield from stored_rows(reader, [row.outline.key for row in rows])
    old = {row.outline.key: (member, row) for member, row in found}
    taken = yield from reader.checkpoints([member_of(row.outline.ns, row.outline.rank) for row in rows])
    for row, value in zip(rows, taken, strict=True):
        if value is not None:
            other = checkpoint_row(reader.thread_id, member_of(row.outline.ns, row.outline.rank), value)
            if other.outline.id != row.outline.id:
                raise StoreError(
                    f"thread {reader.thread_id!r}: the checkpoints {other.outline.id!r} and {row.outline.id!r} would "
                    "have the same place among the others"
                )
    return old


def _newest(locked: Locked, change: Change) -> str:
    return namespaces_in(locked.head).get(change.checkpoints[0].outline.ns, (0, ""))[1]


def _unfounded(reader: Reader, locked: Locked, change: Change, *, is_there: bool) -> Program[Added | None]:
    """Return what becomes of a change that counts on segments or on a newest checkpoint that are not there; else None.

    Where segments are gone, the epoch ends.
    """
    if change.epoch is not None and not (yield from reader.has_segments(needed_segments(change))):
        locked.set_head({b"e": b"%d" % (change.epoch + 1)})
        return Added(change.epoch + 1)
    if change.has_place and not is_there and not change.may_follow(_newest(locked, change)):
        return Added(int_or_none(locked.head.get(b"e")) or 0, "conflict")
    return None


def _begin(locked: Locked, change: Change, epoch: int | None) -> int:
    """Let the thread of a change be there. Returns its epoch."""
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
    """Note when the thread was updated. Without checkpoints it was when it was created, which does not count then."""
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


def _leave_places(reader: Reader, locked: Locked, change: Change, places: dict[Key, bytes]) -> Program[None]:
    """Let those checkpoints that got another rank be at one place only."""
    ranks = {row.outline.key: row.outline.rank for row in change.checkpoints}
    left = {key: member for key, member in places.items() if member != member_of(key[0], ranks[key])}
    for (ns, checkpoint_id), member in left.items():
        locked.checkpoints.changes[member] = None
        if ranks[ns, checkpoint_id] == checkpoint_id:
            locked.checkpoints.changes[alias_of(ns, checkpoint_id)] = None
    if left:
        yield from settle_heads(reader, locked, dict.fromkeys([ns for ns, _ in left], 0))


def settle_heads(reader: Reader, locked: Locked, gone: Mapping[str, int]) -> Program[None]:
    """Bring the heads of namespaces up to date, each of which has lost so many checkpoints. Empty ones go."""
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
