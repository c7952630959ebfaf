"""Python values as the fields of hashes, and back.

Text is UTF-8 in which lone surrogates are encoded like other code points: its bytes sort as Python sorts text. Reading
never raises: of a damaged field comes some value, and the row's check says that it is the wrong one, with its place.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgpack

from threadmark.digests import KEY_SIZE
from threadmark.ids import UUID_BYTES, packed_uuid, uuid_text
from threadmark.store import ANYONE, Change, CheckpointRow, Key, Outline, WriteRow
from threadmark.thread_store import LeaseRow, ThreadOutline, ThreadRow

ALIAS = b"\xff\xff"
"""Before the namespace and the id of a checkpoint whose rank is another: such a field holds the rank."""

NEEDS = b"\xff\xfe"
"""Before a namespace: such a field holds the keys of the segments of its newest checkpoint."""

INLINE = 1024
"""Up to this many bytes the writes of a checkpoint stand in one field; as in lua/groups.lua."""

_SINGLE, _SEVERAL = b"\x00", b"\x01"

Head = Mapping[bytes, bytes | None]
"""The fields of a thread's head. One that is not there may be None."""

Group = list[Any]
"""The writes of one task: the task, its path, then number, channel, value and check of each."""


def pack(value: Any) -> bytes:
    """Pack for a script: of msgpack's types for bytes and text Redis knows the older one only."""
    packed: bytes = msgpack.packb(value, use_bin_type=False)
    return packed


def unpack(packed: bytes | None) -> Any:
    """Return what was packed, with text as bytes; None where it is damaged."""
    try:
        return msgpack.unpackb(packed or b"", raw=True, strict_map_key=False)
    except (ValueError, TypeError):
        return None


def to_bytes(text: str) -> bytes:
    """Return the stored form of a text."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(stored: Any) -> str:
    """Return the text that `to_bytes` was given."""
    if not isinstance(stored, bytes):
        return f"\ufffd{type(stored).__name__}"
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return stored.decode("utf-8", "replace")


def text_or_none(stored: bytes | None) -> str | None:
    """Return a text that may be missing."""
    return None if stored is None else from_bytes(stored)


def int_or_none(stored: bytes | None) -> int | None:
    """Return a number that may be missing."""
    try:
        return None if stored is None else int(stored)
    except ValueError:
        return -1


def _bytes_of(stored: Any) -> bytes:
    return stored if isinstance(stored, bytes) else b""


def measured(text: bytes) -> bytes:
    """Return a text behind its length."""
    return len(text).to_bytes(2, "big") + text


def _cut(field: bytes) -> tuple[bytes, bytes]:
    """Return a measured text, and what comes behind it."""
    end = 2 + int.from_bytes(field[:2], "big")
    return field[2:end], field[end:]


@lru_cache(256)  # the writes of a step have two in common
def packed_id(text: str) -> bytes:
    """Return an id that is only compared for equality: 17 bytes for a UUID as it is usually written."""
    packed = packed_uuid(text)
    return b"\x00" + to_bytes(text) if packed is None else b"\x01" + packed


def from_packed_id(stored: Any) -> str:
    """Return the id that `packed_id` was given."""
    if isinstance(stored, bytes) and stored[:1] == b"\x01" and len(stored) == UUID_BYTES + 1:
        return uuid_text(stored[1:])
    return from_bytes(stored[1:] if isinstance(stored, bytes) else stored)


# Checkpoints.


def member_of(ns: str, rank: str) -> bytes:
    """Return the field of a checkpoint, which is its place among the ranks, too."""
    return measured(to_bytes(ns)) + to_bytes(rank)


def alias_of(ns: str, checkpoint_id: str) -> bytes:
    """Return the field that holds the rank of a checkpoint, where that is not its id."""
    return ALIAS + member_of(ns, checkpoint_id)


def alias_parts(field: bytes) -> tuple[str, str]:
    """Return the namespace and the id of a field of `alias_of`."""
    return parts_of(field[len(ALIAS) :])


def needs_of(ns: str) -> bytes:
    """Return the field that holds what the newest checkpoint of a namespace needs."""
    return NEEDS + to_bytes(ns)


def is_member(field: bytes) -> bool:
    """Whether a field is a checkpoint."""
    return field[:1] != b"\xff"


def parts_of(member: bytes) -> tuple[str, str]:
    """Return the namespace and the rank of a checkpoint's field."""
    ns, rank = _cut(member)
    return from_bytes(ns), from_bytes(rank)


def range_of(ns: str) -> tuple[bytes, bytes]:
    """Return the least and the greatest place that checkpoints of a namespace may have, as ZRANGEBYLEX has them."""
    start = measured(to_bytes(ns))
    return b"[" + start, b"(" + start + b"\xff"


def checkpoint_value(row: CheckpointRow) -> bytes:
    """Return what the field of a checkpoint holds."""
    _, _, checkpoint_id, rank, parent, created_at, metadata = row.outline
    own_id = None if checkpoint_id == rank else to_bytes(checkpoint_id)
    packed_parent = None if parent is None else packed_id(parent)
    return pack((own_id, packed_parent, created_at, to_bytes(metadata), row.header, row.check))


def checkpoint_row(thread_id: str, member: bytes, value: bytes) -> CheckpointRow:
    """Return a checkpoint from its field."""
    ns, rank = parts_of(member)
    columns = unpack(value)
    if not isinstance(columns, list) or len(columns) != _CHECKPOINT_COLUMNS:
        columns = [None, None, 0, b"", b"", b"damaged"]
    own_id, parent, created_at, metadata, header, check = columns
    return CheckpointRow(
        Outline(
            thread_id,
            ns,
            rank if own_id is None else from_bytes(own_id),
            rank,
            None if parent is None else from_packed_id(parent),
            created_at if isinstance(created_at, int) else 0,
            from_bytes(metadata),
        ),
        _bytes_of(header),
        _bytes_of(check),
        None,
    )


_CHECKPOINT_COLUMNS = 6


# Pending writes.


def reference_to(key: Key) -> bytes:
    """Return the field of a checkpoint's writes."""
    ns, checkpoint_id = key
    return measured(to_bytes(ns)) + measured(to_bytes(checkpoint_id))


def referred(field: bytes) -> tuple[Key, bytes]:
    """Return the checkpoint whose writes a field holds, and the task, b"" where the field is not one task's own."""
    ns, rest = _cut(field)
    checkpoint_id, task = _cut(rest)
    return (from_bytes(ns), from_bytes(checkpoint_id)), task


def groups_in(field: bytes | None) -> list[Group]:
    """Return the groups of writes that a field holds. What is damaged is left out: the record of its batch says so."""
    unpacker = msgpack.Unpacker(raw=True, strict_map_key=False, max_buffer_size=0)
    unpacker.feed((field or b"")[1:])
    try:
        return [group for group in unpacker if isinstance(group, list) and group]
    except (ValueError, TypeError):
        return []


def has_own_fields(field: bytes | None) -> bool:
    """Whether tasks of a checkpoint have fields of their own."""
    return (field or b"")[:1] == _SEVERAL


def own_fields(reference: bytes, field: bytes | None) -> list[bytes]:
    """Return the fields of the tasks that have one of their own."""
    if not has_own_fields(field):
        return []
    return [reference + group[0] for group in groups_in(field) if len(group) == 1]


def write_rows(key: Key, fields: Iterable[bytes | None]) -> list[WriteRow]:
    """Return the writes in the fields of one checkpoint."""
    found: list[WriteRow] = []
    for group in (group for field in fields for group in groups_in(field)):
        if len(group) > 1:
            task, path = from_packed_id(group[0]), from_bytes(group[1])
            for at in range(2, len(group) - 3, 4):
                idx, channel, value, check = group[at : at + 4]
                number = idx if isinstance(idx, int) else 0
                found.append(
                    WriteRow(*key, task, number, path, from_bytes(channel), _bytes_of(value), _bytes_of(check))
                )
    return found


def grouped(rows: Sequence[WriteRow]) -> list[tuple[bytes, bytes, bytes, list[Any], list[WriteRow]]]:
    """Return writes by checkpoint, task and path: reference, task, path, the columns of each, and the rows."""
    groups: dict[tuple[str, str, str, str], list[WriteRow]] = {}
    for row in rows:
        groups.setdefault((row.ns, row.checkpoint_id, row.task_id, row.task_path), []).append(row)
    found = []
    for (ns, checkpoint_id, task, path), some in groups.items():
        columns: list[Any] = []
        for row in some:
            columns += (row.idx, to_bytes(row.channel), row.value, row.check)
        found.append((reference_to((ns, checkpoint_id)), packed_id(task), to_bytes(path), columns, some))
    return found


class Merged(NamedTuple):
    """The fields of a task's writes after more were added, None for one that is as before, and what was replaced."""

    main: bytes | None
    own: bytes | None
    replaced: list[WriteRow]


def merge_group(main: bytes | None, own: bytes | None, task: bytes, path: bytes, rows: Sequence[WriteRow]) -> Merged:
    """Add writes of one task to its fields: what `add_group` in lua/groups.lua does."""
    there = {
        group[at]: group[at + 2]
        for field in (main, own)
        for group in groups_in(field)
        if group[0] == task
        for at in range(2, len(group), 4)
    }
    fresh: Group = [task, path]
    replaced: list[WriteRow] = []
    for row in rows:
        if row.idx in there and row.idx >= 0:
            continue
        if row.idx in there:
            replaced.append(row._replace(value=there[row.idx]))
        there[row.idx] = row.value
        fresh += (row.idx, to_bytes(row.channel), row.value, row.check)
    if len(fresh) == 2:  # noqa: PLR2004 - the task and its path, and no write
        return Merged(None, None, [])
    doomed = {row.idx for row in replaced}
    main = _without(main or _SINGLE, task, doomed)
    packed = pack(fresh)
    if own is not None:
        return Merged(main, _without(own, task, doomed) + packed, replaced)
    if len(main) + len(packed) <= INLINE:
        return Merged(main + packed, None, replaced)
    return Merged(_SEVERAL + main[1:] + pack([task]), _SINGLE + packed, replaced)


def _without(field: bytes, task: bytes, doomed: set[int]) -> bytes:
    if not doomed:
        return field
    left = [field[:1]]
    for group in groups_in(field):
        kept = group
        if group[0] == task and len(group) > 1:
            kept = group[:2]
            for at in range(2, len(group), 4):
                if group[at] not in doomed:
                    kept += group[at : at + 4]
        if len(kept) != 2:  # noqa: PLR2004 - the task and its path, and no write
            left.append(pack(kept))
    return b"".join(left)


# A change.


def change_columns(change: Change) -> bytes:
    """Return a change as lua/add.lua takes it."""
    about = change.beginning
    return pack(
        (
            change.epoch,
            change.now,
            -1 if change.token == ANYONE else change.token,
            change.only_owner,
            None if change.continues is None else to_bytes(change.continues),
            None if change.expects is None else to_bytes(change.expects),
            change.sorts_last,
            change.touches,
            None if about.owner is None else to_bytes(about.owner),
            None if about.expires_at is None else b"%d" % about.expires_at,  # maybe more than Lua's numbers hold
            about.check,
            to_bytes(change.thread_id),
            [part for item in change.segments.items() for part in item],
            [_added_columns(row) for row in change.checkpoints],
            [group[:4] for group in grouped(change.writes)],
            needs_column(change),
            _keys_of_writes(change),
        )
    )


def needs_column(change: Change) -> bytes:
    """Return the keys of the segments that the only checkpoint of a change needs, one behind the other."""
    return b"".join(change.needs()) if len(change.checkpoints) == 1 else b""


def _keys_of_writes(change: Change) -> bytes:
    """Return the keys of the segments that writes name. Those of sealed rows, which have no check, nobody can see."""
    bodies = [row.value for row in change.writes if row.check and row.value]
    return b"".join(body[1 : 1 + KEY_SIZE * body[0]] for body in bodies)


def _added_columns(row: CheckpointRow) -> tuple[Any, ...]:
    _, ns, checkpoint_id, rank, _, created_at, _ = row.outline
    return to_bytes(ns), to_bytes(rank), to_bytes(checkpoint_id), checkpoint_value(row), created_at


# Threads.


def head_field(ns: str) -> bytes:
    """Return the head's field for a namespace."""
    return b"n" + to_bytes(ns)


def namespaces_in(head: Head) -> dict[str, tuple[int, str]]:
    """Return how many checkpoints each namespace has, and the greatest rank, as recorded."""
    found = {}
    for field, value in head.items():
        if field[:1] == b"n":
            columns = unpack(value)
            if not isinstance(columns, list) or len(columns) != 2 or not isinstance(columns[0], int):  # noqa: PLR2004 - the count and the rank
                columns = [-1, b""]
            found[from_bytes(field[1:])] = (columns[0], from_bytes(columns[1]))
    return found


def is_live(head: Head) -> bool:
    """Whether the thread is there: it was begun, and not deleted since."""
    return head.get(b"v") == b"1"


def thread_outline(thread_id: str, head: Head) -> ThreadOutline:
    """Return a live thread from its head."""
    row = ThreadRow(
        thread_id,
        int_or_none(head.get(b"a")) or 0,
        text_or_none(head.get(b"o")),
        text_or_none(head.get(b"j")),
        text_or_none(head.get(b"m")),
        int_or_none(head.get(b"x")),
        head.get(b"q") or b"",
    )
    return ThreadOutline(row, int_or_none(head.get(b"u")) or 0)


OUTLINE_FIELDS = (b"v", b"a", b"o", b"j", b"m", b"x", b"q", b"u")
"""The fields that `thread_outline` and `is_live` look at."""


def thread_fields(row: ThreadRow) -> dict[bytes, bytes | None]:
    """Return the fields of a head that are set of a thread, None for one that is not there."""
    return {
        b"o": None if row.owner is None else to_bytes(row.owner),
        b"j": None if row.title is None else to_bytes(row.title),
        b"m": None if row.metadata is None else to_bytes(row.metadata),
        b"x": None if row.expires_at is None else b"%d" % row.expires_at,
        b"q": row.check or None,
    }


def lease_row(head: Head, moment: int) -> LeaseRow:
    """Return the last lease of a thread, at this time of the server's clock."""
    ends = int_or_none(head.get(b"z")) or 0
    return LeaseRow(
        int_or_none(head.get(b"t")) or 0,
        max(0, ends - moment),
        text_or_none(head.get(b"g")) or "",
        text_or_none(head.get(b"b")),
    )


def as_head(reply: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the fields of a head from a flat reply."""
    return dict(zip(reply[::2], reply[1::2], strict=True))
