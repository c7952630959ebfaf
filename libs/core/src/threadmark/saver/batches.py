"""The rows of a task's writes, with a record of each batch, so that a lost or hidden row is detected.

A row is found by its key, so damage to its key hides it. Each `put_writes` therefore adds one more row, the record of
the batch. It has a separate index and lists the indexes of the batch's rows. Every row that a record lists must be
there, and every row that is there must be listed. A task that writes again gets rows for the writes that are new.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple
from zlib import crc32

import msgpack

from threadmark.errors import CorruptDataError, located
from threadmark.format.digests import pack_plain
from threadmark.format.packs import FIRST_RECORD, PACK, Written, divided, is_pack_index, pack_writes, unpack_writes
from threadmark.format.stored import Stored
from threadmark.program import Program
from threadmark.runtime.compiled import counterpart
from threadmark.saver.proving import prove_write, task_location, write_location, write_rows
from threadmark.store.contract import Added, Change, Store, WriteRow

_WriteKey = tuple[str, str, str, int]
_INDEX = attrgetter("idx")


def rows_of_batch(
    thread_id: str,
    ns: str,
    checkpoint_id: str,
    task_id: str,
    task_path: str,
    written: list[Written],
    longest: int | None,
) -> list[WriteRow]:
    """Return the rows of a task's writes, which are in ascending order: one for the ordinary writes.

    If it would have more bytes than `longest`, there are several.
    """
    rows = [(index, task_path, channel, value) for index, channel, value in written if index < 0]
    ordinary = [each for each in written if each[0] >= 0] if rows else written
    if ordinary:
        parts = divided(ordinary, longest)
        rows += [(PACK + number, task_path, "", pack_writes(part)) for number, part in enumerate(parts)]
    rows.append(batch_record(tuple([index for index, *_ in rows])))
    return write_rows(thread_id, ns, checkpoint_id, task_id, rows)


def separate_rows(
    thread_id: str, ns: str, checkpoint_id: str, task_id: str, task_path: str, written: Sequence[Written]
) -> list[WriteRow]:
    """Return a row for each of these writes of a task, which has a pack already."""
    rows = [(index, task_path, channel, value) for index, channel, value in written]
    rows.append(batch_record(tuple([index for index, *_ in rows])))
    return write_rows(thread_id, ns, checkpoint_id, task_id, rows)


def has_more(rows: Sequence[WriteRow]) -> bool:
    """Whether a batch has a pack, and more rows than that one and its record: special writes, or another pack.

    A store adds these even if it leaves the first pack out, so such a batch is added by `add_whole`.
    """
    return len(rows) > 2 and rows[-2].idx >= PACK  # noqa: PLR2004 - the pack and its record


def add_whole(store: Store, written: Sequence[Written], change: Change) -> Program[Added]:
    """Add the writes of one task in one transaction, also if it has written before.

    Returns the result of the change, with every new write added. The task's first writes stay. If the change has other
    values for them, those count as replaced.
    """
    yield from store.lock(change.thread_id)
    added = yield from store.add(change)
    if not added.pack_left_out:
        return added
    thread_id, (ns, checkpoint_id, task_id, _, task_path, *_) = change.thread_id, change.writes[0]
    found = yield from store.writes(thread_id, [(ns, checkpoint_id)])
    of_task = proven_batches(thread_id, [row for row in found if row.task_id == task_id])
    there = {row.idx: row.value for row in of_task}
    ordinary = [each for each in written if each[0] >= 0]
    rest = [each for each in ordinary if each[0] not in there]
    if rest:
        rows = separate_rows(thread_id, ns, checkpoint_id, task_id, task_path, rest)
        yield from store.add(change._replace(epoch=added.epoch, segments={}, writes=rows))
    left_out = [
        WriteRow(ns, checkpoint_id, task_id, index, task_path, channel, value, b"")
        for index, channel, value in ordinary
        if there.get(index, value) != value
    ]
    return added._replace(pack_left_out=False, replaced_writes=[*added.replaced_writes, *left_out])


@lru_cache(64)  # most batches are a pack, and list only that
def batch_record(written: tuple[int, ...]) -> tuple[int, str, str, bytes]:
    """The record of a batch of one task's writes with these indexes, as `proving.write_rows` takes it.

    Its index is made of its list, so that two batches of one task with the same list share a record, and others
    have one each.
    """
    listed = pack_plain(sorted(written))
    return FIRST_RECORD | (crc32(listed) & (FIRST_RECORD - 1)), "", "", Stored("", listed, b"").body


RECORD_OF_PACK = batch_record((PACK,))
"""The form of most batches: their writes are a pack, and nothing else."""


def is_record(row: WriteRow) -> bool:
    """Whether the row is the record of a batch, and no write."""
    return isinstance(row.idx, int) and row.idx >= FIRST_RECORD  # a damaged file may hold anything


def is_pack(row: WriteRow) -> bool:
    """Whether the row holds several writes of a task to ordinary channels."""
    return is_pack_index(row.idx)


def without_records(rows: Iterable[WriteRow]) -> list[WriteRow]:
    """Return these rows but records: those of writes."""
    return [row for row in rows if not is_record(row)]


def count_writes(thread_id: str, rows: Iterable[WriteRow]) -> int:
    """Return how many writes these rows hold, whether they are sound or not. A pack that cannot be read is one."""
    return len({each[:4] for row in without_records(rows) for each in members_or_itself(thread_id, row)})


def proven_batches(thread_id: str, rows: Sequence[WriteRow]) -> list[WriteRow]:
    """Verify all write rows of some checkpoints. Returns the writes, those of a pack as separate rows.

    Raises CorruptDataError if a row is damaged or missing.
    """
    writes: list[WriteRow] = []
    listed: dict[_WriteKey, WriteRow] = {}
    for row in rows:
        prove_write(thread_id, row)
        if row.idx >= FIRST_RECORD:  # a number, since the row is proven
            ns, checkpoint_id, task_id, *_ = row
            listed.update([((ns, checkpoint_id, task_id, idx), row) for idx in _listed(thread_id, row)])
            continue
        writes.append(row)
    there = {row[:4] for row in writes}
    for key, row in listed.items():
        if key not in there:
            missing = "row of its writes" if is_pack_index(key[3]) else f"write with index {key[3]}"
            raise CorruptDataError(f"the {missing} is missing", task_location(thread_id, row))
    for row in writes:
        if row[:4] not in listed:
            raise CorruptDataError("the record of its batch is missing", write_location(thread_id, row))
    return unpacked(thread_id, writes)


def unpacked(thread_id: str, rows: list[WriteRow]) -> list[WriteRow]:
    """Return a row for each write that these rows hold, which are no records. Those out of a pack have no check.

    Raises CorruptDataError if a pack cannot be read.
    """
    several = sorted([row for row in rows if is_pack(row)], key=_INDEX)
    if not several:
        return rows
    # A write may have a separate row as well: it was stored before the pack, or in the other database of a pair.
    writes = {row[:4]: row for row in rows if not is_pack(row)}
    for pack in several:
        for each in members(thread_id, pack):
            writes.setdefault(each[:4], each)
    return list(writes.values())


def members(thread_id: str, pack: WriteRow) -> list[WriteRow]:
    """Return a row for each write in a pack. Raises CorruptDataError if the pack cannot be read."""
    ns, checkpoint_id, task_id, _, task_path, _, body, _ = pack
    with located(task_location(thread_id, pack)):
        written = unpack_writes(body)
    return [
        WriteRow(ns, checkpoint_id, task_id, index, task_path, channel, value, b"") for index, channel, value in written
    ]


def members_or_itself(thread_id: str, row: WriteRow) -> list[WriteRow]:
    """Return the rows of the writes in a pack; any other row, and a pack that cannot be read, as it is."""
    try:
        return members(thread_id, row) if is_pack(row) else [row]
    except CorruptDataError:
        return [row]


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


_ORDER = attrgetter("task_path", "task_id", "idx")


class Write(NamedTuple):
    """A pending write whose row has been proven."""

    row: WriteRow
    value: Stored


@counterpart("proving.proven_writes", Write)
def proven_writes(thread_id: str, rows: Sequence[WriteRow]) -> list[Write]:
    """Verify all write rows of some checkpoints. Returns the writes in the order in which a step applies them."""
    # Proven before they are sorted: damaged rows may not even compare.
    return [opened_write(thread_id, row) for row in sorted(proven_batches(thread_id, rows), key=_ORDER)]


def opened_write(thread_id: str, row: WriteRow) -> Write:
    """A write whose row has been proven."""
    try:
        return Write(row, Stored.from_bytes(row.value))
    except CorruptDataError as error:
        raise error.at(write_location(thread_id, row)) from error
