"""Pending writes as fields of a hash: those of a checkpoint in one, as long as they are short (docs/format.md)."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgpack

from threadmark.store import PACK, Key, WriteRow
from threadmark_redis.columns import (
    bytes_of,
    cut,
    from_bytes,
    from_packed_id,
    measured,
    pack,
    packed_id,
    to_bytes,
)

INLINE = 1024
"""Up to this many bytes the writes of a checkpoint stand in one field; as in lua/groups.lua."""

_SINGLE, _SEVERAL = b"\x00", b"\x01"

Group = list[Any]
"""The writes of one task: the task, its path, then number, channel, value and check of each."""


def reference_to(key: Key) -> bytes:
    """Return the field of a checkpoint's writes."""
    ns, checkpoint_id = key
    return measured(to_bytes(ns)) + measured(to_bytes(checkpoint_id))


def referred(field: bytes) -> tuple[Key, bytes]:
    """Return the checkpoint whose writes a field holds, and the task, b"" where the field is not one task's own."""
    ns, rest = cut(field)
    checkpoint_id, task = cut(rest)
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
                found.append(WriteRow(*key, task, number, path, from_bytes(channel), bytes_of(value), bytes_of(check)))
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
    """The fields of a task's writes after more were added, None for one that is as before, and what became of those."""

    main: bytes | None
    own: bytes | None
    replaced: list[WriteRow]
    pack_left_out: bool


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
    pack_left_out = False
    for row in rows:
        if row.idx in there and row.idx >= 0:
            pack_left_out = pack_left_out or row.idx == PACK
            continue
        if row.idx in there:
            replaced.append(row._replace(value=there[row.idx]))
        there[row.idx] = row.value
        fresh += (row.idx, to_bytes(row.channel), row.value, row.check)
    if len(fresh) == 2:  # noqa: PLR2004 - the task and its path, and no write
        return Merged(None, None, [], pack_left_out)
    doomed = {row.idx for row in replaced}
    main = _without(main or _SINGLE, task, doomed)
    packed = pack(fresh)
    if own is not None:
        return Merged(main, _without(own, task, doomed) + packed, replaced, pack_left_out)
    if len(main) + len(packed) <= INLINE:
        return Merged(main + packed, None, replaced, pack_left_out)
    return Merged(_SEVERAL + main[1:] + pack([task]), _SINGLE + packed, replaced, pack_left_out)


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
