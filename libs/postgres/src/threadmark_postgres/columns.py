"""Python values as columns and back.

Reading never raises: of a damaged column comes some value, and the row's check says that it is the wrong one,
with its place.
"""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any
from uuid import UUID

from threadmark.store import CheckpointRow, Outline, WriteRow
from threadmark.text import from_column, to_column

_UUID_LENGTH = 36
_UUID_BYTES = 16
_TEXT, _LONGER_TEXT = b"\x01", b"\x02\x00"
"""What an id that is no UUID starts with: the second where the first would make it as long as a UUID."""


def id_column(text: str) -> bytes:
    """An id that is only compared for equality: 16 bytes where it is a UUID as it is usually written."""
    if len(text) == _UUID_LENGTH and text[8] == "-":
        try:
            packed = UUID(text)
        except ValueError:
            pass
        else:
            if str(packed) == text:
                return packed.bytes
    encoded = text.encode("utf-8", "surrogatepass")
    return (_LONGER_TEXT if len(encoded) == _UUID_BYTES - 1 else _TEXT) + encoded


def from_id_column(column: bytes) -> str:
    """The id that `id_column` was given."""
    if len(column) == _UUID_BYTES:
        return str(UUID(bytes=column))
    for start in (_TEXT, _LONGER_TEXT):
        if column.startswith(start):
            return _as_text(column.removeprefix(start))
    return f"\ufffd{column.hex()}"


def outline(thread_id: str, columns: Sequence[Any]) -> Outline:
    """A checkpoint's outline from the columns of `sql._OUTLINE`."""
    ns, checkpoint_id, rank, parent, created_at, metadata = columns
    return Outline(
        thread_id,
        from_column(ns),
        from_column(checkpoint_id),
        from_column(rank),
        None if parent is None else from_column(parent),
        created_at,
        from_column(metadata),
    )


def checkpoint_row(thread_id: str, columns: Sequence[Any]) -> CheckpointRow:
    """A checkpoint from the columns of `sql._ROW`."""
    *outline_columns, header, check = columns
    return CheckpointRow(outline(thread_id, outline_columns), header, check)


def checkpoint_columns(rows: Sequence[CheckpointRow]) -> list[list[Any]]:
    """The rows as arrays, one for each column of `sql.ADD_CHECKPOINTS`, in the order of their keys."""
    items = [
        (
            to_column(row.outline.ns),
            None if row.outline.id == row.outline.rank else to_column(row.outline.id),
            to_column(row.outline.rank),
            None if row.outline.parent is None else to_column(row.outline.parent),
            row.outline.created_at,
            to_column(row.outline.metadata),
            row.header,
            row.check,
            run_of(row.outline.metadata),
        )
        for row in sorted(rows, key=lambda row: (row.outline.ns, row.outline.rank))
    ]
    return [list(column) for column in zip(*items, strict=True)]


def write_row(columns: Sequence[Any]) -> WriteRow:
    """A pending write from the columns of `sql._WRITE`."""
    ns, checkpoint_id, task_id, idx, task_path, channel, value, check = columns
    return WriteRow(
        from_column(ns),
        from_column(checkpoint_id),
        from_id_column(task_id),
        idx,
        from_column(task_path),
        from_column(channel),
        value,
        check,
    )


def write_columns(rows: Sequence[WriteRow]) -> list[list[Any]]:
    """The rows as arrays, one for each column of `sql.ADD_WRITES`, in the order of their keys."""
    items = [
        (
            to_column(row.ns),
            to_column(row.checkpoint_id),
            id_column(row.task_id),
            row.idx,
            to_column(row.task_path),
            to_column(row.channel),
            row.value,
            row.check,
        )
        for row in sorted(rows, key=lambda row: row[:4])
    ]
    return [list(column) for column in zip(*items, strict=True)] if items else [[] for _ in WriteRow._fields]


def run_of(metadata: str) -> int | None:
    """A number for the `run_id` in a checkpoint's metadata, by which an index finds the checkpoints of a run.

    It only has to differ for most: the saver compares the metadata itself.
    """
    if '"run_id"' not in metadata:
        return None
    run_id = json.loads(metadata).get("run_id")
    return run_number(run_id) if isinstance(run_id, str) else None


def run_number(run_id: str) -> int:
    """The number that `run_of` gives for this run."""
    digest = blake2b(run_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _as_text(encoded: bytes) -> str:
    try:
        return encoded.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return f"\ufffd{encoded.hex()}"
