"""Packs: the row of all that a task wrote to ordinary channels at once."""

import pytest

from threadmark.errors import CorruptDataError
from threadmark.format.digests import check_of
from threadmark.format.packs import MOST_KEYS, PACK, unpack_writes
from threadmark.saver.batches import batch_record, proven_batches, proven_writes, rows_of_batch, separate_rows
from threadmark.saver.proving import PACKED, RECORDED, write_row, write_rows


def test_the_check_of_a_pack_is_none_of_another_row() -> None:
    written = [(-1, "__error__", b"\0\1m0"), (0, "a", b"\0\1m1"), (1, "b", b"\0\1m2")]
    for some in (written, written[1:]):
        rows = rows_of_batch("thread", "ns", "checkpoint", "task", "path", some, None)
        (pack,) = [row for row in rows if row.idx == PACK]
        for row in (pack, write_row("thread", *pack[:-1])):
            assert row.check == pack.check
            assert row.check == check_of([PACKED, "thread", *row[:-1]])
        for row in rows:
            assert row is pack or row.check == check_of([RECORDED, "thread", *row[:-1]])


@pytest.mark.parametrize(
    ("longest", "packs"), [(None, [5]), (1000, [5]), (130, [2, 2, 1]), (70, [1] * 5), (1, [1] * 5)]
)
def test_long_batches_are_several_packs(longest: int | None, packs: list[int]) -> None:
    written = [(index, "channel", b"\0\1m" + bytes(40)) for index in range(5)]
    *rows, record = rows_of_batch("thread", "ns", "checkpoint", "task", "path", written, longest)
    assert [row.idx for row in rows] == [PACK + number for number in range(len(packs))]
    assert [len(unpack_writes(row.value)) for row in rows] == packs
    assert [each for row in rows for each in unpack_writes(row.value)] == written
    found = proven_writes("thread", [*reversed(rows), record])
    assert [(each.row.idx, each.row.channel, each.row.value) for each in found] == written


def test_of_two_packs_with_the_same_write_the_first_counts() -> None:
    """A task wrote a short batch, and then a long one, of which one pack was new."""
    short = [(index, "channel", b"\0\1m" + bytes(4)) for index in range(4)]
    long = [(index, "channel", b"\0\1m" + bytes(90)) for index in range(6)]
    at = "thread", "ns", "checkpoint", "task", "path"
    first, second = rows_of_batch(*at, short, 300), rows_of_batch(*at, long, 300)
    assert [row.idx - PACK for row in second[:-1]] == [0, 1, 2]
    stored = {row[:4]: row for row in (*second, *first)}
    values = {each.row.idx: each.row.value for each in proven_writes("thread", list(stored.values()))}
    assert values == {index: value for index, _, value in (*long, *short)}
    with pytest.raises(CorruptDataError, match="the row of its writes is missing"):
        proven_writes("thread", [*second[:1], *second[2:]])


def test_the_row_of_a_write_counts_more_than_a_pack() -> None:
    at = "thread", "ns", "checkpoint", "task", "path"
    packed, own = [(index, "a", b"\0\1mP") for index in (0, 1, 3)], [(1, "b", b"\0\1mX"), (2, "c", b"\0\1mY")]
    rows = [*rows_of_batch(*at, packed, None), *separate_rows(*at, own)]
    values = [(write.row.idx, write.value.packed) for write in proven_writes("thread", rows)]
    assert values == [(0, b"P"), (1, b"X"), (2, b"Y"), (3, b"P")]


def test_a_pack_begins_with_the_keys_of_its_segments() -> None:
    bodies = [b"\1" + index.to_bytes(12, "big") + b"\5" + b"d" * 16 + b"m\1" for index in range(MOST_KEYS + 2)]
    for some in (bodies[:1] * 2, bodies):
        keys = list(dict.fromkeys(body[1:13] for body in some))[:MOST_KEYS]
        written = [(index, "a", body) for index, body in enumerate(some)]
        pack, _ = rows_of_batch("thread", "ns", "checkpoint", "task", "path", written, None)
        assert pack.value.startswith(bytes([len(keys)]) + b"".join(keys))
        assert unpack_writes(pack.value) == written


def test_a_pack_that_cannot_be_read_names_its_task() -> None:
    rows = [(PACK, "path", "", b"\0\x90"), batch_record((PACK,))]
    with pytest.raises(CorruptDataError, match="pending writes of task 'task': the row of its writes cannot be read"):
        proven_writes("thread", write_rows("thread", "ns", "checkpoint", "task", rows))


def test_a_write_that_no_record_lists_is_damage() -> None:
    rows = rows_of_batch("thread", "", "id", "task", "", [(0, "a", b"\0\1m1")], None)
    assert [each.channel for each in proven_batches("thread", rows)] == ["a"]
    with pytest.raises(CorruptDataError, match="the record of its batch is missing"):
        proven_batches("thread", rows[:-1])
    with pytest.raises(CorruptDataError, match="row of its writes is missing"):
        proven_batches("thread", rows[-1:])
