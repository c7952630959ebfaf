"""Which writes a task has stored: a record beside them, so that a write that is lost or hidden is missed.

A write is found by its key, so damage to its key hides it. Each `put_writes` therefore adds one more row, the record
of the batch: under an index of its own, it lists the indexes of the batch. What a record lists must be there, and what
is there must be listed.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from zlib import crc32

import msgpack

from threadmark.digests import pack_plain
from threadmark.errors import CorruptDataError
from threadmark.saver.proving.checks import prove_write, task_location, write_location
from threadmark.store import FIRST_RECORD, WriteRow
from threadmark.stored import Stored

_WriteKey = tuple[str, str, str, int]


@lru_cache(64)  # most tasks write as much as another one
def batch_record(written: tuple[int, ...]) -> tuple[int, str, str, bytes]:
    """The record of a batch of one task's writes with these indexes, as `checks.write_rows` takes it.

    Its index is made of what it lists, so that two batches of one task that list the same share a record, and others
    have one each.
    """
    listed = pack_plain(sorted(written))
    return FIRST_RECORD | (crc32(listed) & (FIRST_RECORD - 1)), "", "", Stored("", listed, b"").body


def is_record(row: WriteRow) -> bool:
    """Whether the row is the record of a batch, and no write."""
    return isinstance(row.idx, int) and row.idx >= FIRST_RECORD  # a damaged file may hold anything


def without_records(rows: Iterable[WriteRow]) -> list[WriteRow]:
    """The writes among these rows."""
    return [row for row in rows if not is_record(row)]


def proven_batches(thread_id: str, rows: Sequence[WriteRow]) -> list[WriteRow]:
    """Verify all write rows of some checkpoints. Returns the writes.

    Raises CorruptDataError if a row is damaged or missing.
    """
    writes: list[WriteRow] = []
    recorded: list[WriteRow] = []
    listed: dict[_WriteKey, WriteRow] = {}
    for row in rows:
        has_record = prove_write(thread_id, row)
        if row.idx >= FIRST_RECORD:  # a number, since the row is proven
            ns, checkpoint_id, task_id, *_ = row
            listed.update([((ns, checkpoint_id, task_id, idx), row) for idx in _listed(thread_id, row)])
            continue
        writes.append(row)
        if has_record:
            recorded.append(row)
    there = {row[:4] for row in writes}
    for key, row in listed.items():
        if key not in there:
            raise CorruptDataError(f"the write with index {key[3]} is missing", task_location(thread_id, row))
    for row in recorded:
        if row[:4] not in listed:
            raise CorruptDataError("the record of its batch is missing", write_location(thread_id, row))
    return writes


def _listed(thread_id: str, record: WriteRow) -> tuple[int, ...]:
    """The indexes of the writes that a record lists."""
    try:
        return _indexes(record.value)
    except (ValueError, TypeError, CorruptDataError) as error:
        raise CorruptDataError("the record of its batch cannot be read", task_location(thread_id, record)) from error


@lru_cache(64)  # as `batch_record`
def _indexes(body: bytes) -> tuple[int, ...]:
    indexes: list[int] = msgpack.unpackb(Stored.from_bytes(body).packed)
    if not {int}.issuperset(map(type, indexes)):
        raise TypeError
    return tuple(indexes)
