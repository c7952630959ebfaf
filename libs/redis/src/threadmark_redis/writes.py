"""Pending writes as fields of a hash: short ones of a checkpoint share a field (docs/reference/format.md)."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgpack

from threadmark.backends import PACK, Key, Program, WriteRow
from threadmark_redis.columns import (
    WRITTEN,
    cut,
    from_bytes,
    from_packed_id,
    measured,
    pack,
    packed_id,
    to_bytes,
)
from threadmark_redis.reading import Reader

INLINE = 1024
"""Up to this many bytes, the writes of a checkpoint are in one field; as in lua/groups.lua."""

_SINGLE, _SEVERAL, _LOST = b"\x00", b"\x01", b"\x02"
"""The first byte of a field; the last of these means that something is missing."""

Group = list[Any]
"""The writes of one task: the task, its path, then number, channel, value and check of each."""


def reference_to(key: Key) -> bytes:
    """Return the field of a checkpoint's writes."""
    ns, checkpoint_id = key
    return measured(to_bytes(ns)) + measured(to_bytes(checkpoint_id))


def referred(field: bytes) -> tuple[Key, bytes]:
    """Return the checkpoint whose writes a field holds, and the task, b"" if the field is not of one task alone."""
    ns, rest = cut(field)
    checkpoint_id, task = cut(rest)
    return (from_bytes(ns), from_bytes(checkpoint_id)), task


class Groups(NamedTuple):
    """The content of a field."""

    found: list[Group]
    is_whole: bool
    """Whether these are all, and nothing was damaged."""


def groups_in(field: bytes) -> Groups:
    """Return the groups of writes in a field, or the readable ones if it is damaged, as lua/groups.lua does."""
    unpacker = msgpack.Unpacker(raw=True, strict_map_key=False, max_buffer_size=0)
    unpacker.feed(field[1:])
    found: list[Group] = []
    is_whole = field[:1] in (_SINGLE, _SEVERAL)
    read = 1
    try:
        for group in unpacker:
            read = 1 + unpacker.tell()
            if _is_group(group):
                found.append(group)
            else:
                is_whole = False
    except (ValueError, TypeError):
        is_whole = False
    return Groups(found, is_whole and read == len(field))


def _is_group(group: object) -> bool:
    """Return whether an unpacked value is one that `merge_group` packs."""
    if not isinstance(group, list) or not group or not isinstance(group[0], bytes):
        return False
    if len(group) == 1:
        return True
    kinds = (int, bytes, bytes, bytes)
    columns = group[2:]
    return (
        isinstance(group[1], bytes)
        and len(columns) > 0
        and len(columns) % len(kinds) == 0
        and all(type(each) is kinds[at % len(kinds)] for at, each in enumerate(columns))
    )


def own_fields(reference: bytes, field: bytes | None) -> list[bytes]:
    """Return the fields of the tasks that have their own."""
    return [reference + group[0] for group in groups_in(field).found if len(group) == 1] if field else []


def write_rows(key: Key, fields: Iterable[bytes | None]) -> list[WriteRow]:
    """Return the writes in the fields of one checkpoint, and a damaged one for each incomplete field."""
    found: list[WriteRow] = []
    for field in fields:
        if field is None:
            continue
        groups, is_whole = groups_in(field)
        for task, path, *columns in (group for group in groups if len(group) > 1):
            of_task = from_packed_id(task), from_bytes(path)
            for at in range(0, len(columns), 4):
                idx, channel, value, check = columns[at : at + 4]
                found.append(WriteRow(*key, of_task[0], idx, of_task[1], from_bytes(channel), value, check))
        if not is_whole:
            found.append(lost_write(key))
    return found


def lost_write(key: Key) -> WriteRow:
    """Return a row in place of a checkpoint's missing writes. It proves to be damaged."""
    return WriteRow(*key, "\ufffdlost", 0, "", "", b"", b"damaged")


def writes_of_thread(reader: Reader) -> Program[list[WriteRow]]:
    """Return all writes of a thread, and a damaged one for each checkpoint whose writes are missing."""
    names = yield from reader.write_names()
    values = yield from reader.writes(names)
    there = set(names)
    noted = {name[len(WRITTEN) :] for name in (yield from reader.checkpoint_names()) if name.startswith(WRITTEN)}
    found: list[WriteRow] = []
    lost = noted - there
    for name, value in zip(names, values, strict=True):
        key, task = referred(name)
        found += write_rows(key, [value])
        if not task and (name not in noted or not there.issuperset(own_fields(name, value))):
            lost.add(name)
    return [*found, *(lost_write(referred(reference)[0]) for reference in sorted(lost))]


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
    """The fields of a task's writes after more were added, None for an unchanged one, and the outcome of those."""

    main: bytes | None
    own: bytes | None
    replaced: list[WriteRow]
    pack_left_out: bool


def merge_group(main: bytes | None, own: bytes | None, task: bytes, path: bytes, rows: Sequence[WriteRow]) -> Merged:
    """Add writes of one task to its fields, as `add_group` in lua/groups.lua does. An empty field was lost."""
    main = _SINGLE if main is None else main or _LOST
    fields = [groups_in(field) for field in (main, own) if field is not None]
    groups = [group for field in fields for group in field.found if group[0] == task]
    there = {group[at]: group[at + 2] for group in groups for at in range(2, len(group), 4)}
    is_whole = all(field.is_whole for field in fields)
    has_own = any(len(group) == 1 for group in groups)
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
    doomed = {row.idx for row in replaced} if is_whole else set()
    main = _without(main, task, doomed)
    packed = pack(fresh)
    if own is not None:
        return Merged(main, _without(own, task, doomed) + packed, replaced, pack_left_out)
    if has_own or len(main) + len(packed) <= INLINE:
        return Merged(main + packed, None, replaced, pack_left_out)
    return Merged(max(main[:1], _SEVERAL) + main[1:] + pack([task]), _SINGLE + packed, replaced, pack_left_out)


def _without(field: bytes, task: bytes, doomed: set[int]) -> bytes:
    if not doomed:
        return field
    left = [field[:1]]
    for group in groups_in(field).found:
        kept = group
        if group[0] == task and len(group) > 1:
            kept = group[:2]
            for at in range(2, len(group), 4):
                if group[at] not in doomed:
                    kept += group[at : at + 4]
        if len(kept) != 2:  # noqa: PLR2004 - the task and its path, and no write
            left.append(pack(kept))
    return b"".join(left)
