"""Conversion of a change to the arguments of lua/add.lua."""

from contextlib import suppress
from typing import Any

from threadmark.backends import (
    ANYONE,
    KEY_SIZE,
    MOST_KEYS,
    Change,
    CheckpointRow,
    CorruptDataError,
    WriteRow,
    is_pack_index,
    unpack_writes,
)
from threadmark_redis.columns import checkpoint_value, pack, to_bytes
from threadmark_redis.writes import grouped


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
            None if about.expires_at is None else b"%d" % about.expires_at,  # this may exceed Lua's numbers
            about.check,
            to_bytes(change.thread_id),
            [part for item in change.segments.items() for part in item],
            [_added_columns(row) for row in change.checkpoints],
            [group[:4] for group in grouped(change.writes)],
            needs_column(change),
            _keys_of_writes(change),
            *(_for_replication(change) if is_replicated(change) else ()),
        )
    )


def is_replicated(change: Change) -> bool:
    """Return whether a change needs anything of replication."""
    return change.term is not None or change.entry is not None or change.copied is not None


def _for_replication(change: Change) -> tuple[Any, ...]:
    return change.term, change.entry, None if change.copied is None else tuple(change.copied)


def needs_column(change: Change) -> bytes:
    """Return the keys of the segments that the only checkpoint of a change needs, joined."""
    return b"".join(change.needs()) if len(change.checkpoints) == 1 else b""


def needed_segments(change: Change) -> list[bytes]:
    """Return the keys of the segments that a change needs: its rows name them, and it does not bring them."""
    named = needs_column(change) + _keys_of_writes(change)
    keys = dict.fromkeys(named[start : start + KEY_SIZE] for start in range(0, len(named), KEY_SIZE))
    return [key for key in keys if key not in change.segments]


def _keys_of_writes(change: Change) -> bytes:
    """Return the keys of the segments that writes name. In sealed rows, which have no check, they are hidden."""
    return b"".join(_keys_of(row) for row in change.writes if row.check and row.value)


def _keys_of(row: WriteRow) -> bytes:
    bodies = [row.value]
    if is_pack_index(row.idx) and row.value[0] == MOST_KEYS:  # this one may need others
        with suppress(CorruptDataError):  # it is copied unchanged
            bodies = [value for _, _, value in unpack_writes(row.value)]
    return b"".join(body[1 : 1 + KEY_SIZE * body[0]] for body in bodies if body)


def _added_columns(row: CheckpointRow) -> tuple[Any, ...]:
    _, ns, checkpoint_id, rank, _, created_at, _ = row.outline
    return to_bytes(ns), to_bytes(rank), to_bytes(checkpoint_id), checkpoint_value(row), created_at
