"""Packs are read by the compiled part as by the reference, and rows of scalars are those of their literals."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from threadmark.config import ParsedConfig
from threadmark.errors import CorruptDataError
from threadmark.format.digests import pack_plain
from threadmark.format.packs import MOST_KEYS, PACK, Written, pack_writes, unpack_writes
from threadmark.format.stored import LITERAL_LIMIT, Stored
from threadmark.model import SPECIAL_WRITES
from threadmark.saver.batches import (
    batch_record,
    proven_writes,
    rows_of_batch,
    separate_rows,
)
from threadmark.saver.proving import write_rows
from threadmark.saver.storing import encode_writes, rows_of_scalars
from threadmark.serde import Serde
from threadmark.store.contract import WriteRow

TEXT = some.text(some.characters(codec=None, exclude_categories=[]), max_size=40)
LITERALS = some.builds(lambda tag, data: Stored(tag, data, b"").body, some.sampled_from(["m", "", "ä"]), some.binary())
KEYS = some.lists(some.binary(min_size=12, max_size=12), min_size=1, max_size=48)
MANIFESTS = some.builds(
    lambda keys, rest: Stored("m", bytes([len(keys)]) + b"".join(keys) + rest, b"d" * 16).body, KEYS, some.binary()
)
WRITTEN = some.dictionaries(some.integers(-4, 300), some.tuples(TEXT, LITERALS | MANIFESTS), min_size=1).map(
    lambda found: [(index, *found[index]) for index in sorted(found)]
)
"""The writes of tasks, in ascending order of their indexes."""

COUNTERPART: Any = proven_writes
"""The stand-in for the reference while compiled parts are in use, as here."""

SMALL = [(0, "a", b"\0\1m1"), (1, "b", b"\0\1m2"), (3, "a", b"\0\1m3")]
LONG = b"\1" + b"k" * 12 + b"\5" + b"d" * 16 + b"m\1"


def _rows(written: list[Written], task: str = "task", path: str = "path") -> list[WriteRow]:
    return rows_of_batch("thread", "ns", "checkpoint", task, path, written, None)


def _with_value(body: bytes) -> list[WriteRow]:
    """The rows of a task whose pack holds other bytes, as an attacker who knows the checks would make them."""
    rows = [(PACK, "path", "", body), batch_record((PACK,))]
    return write_rows("thread", "ns", "checkpoint", "task", rows)


@given(WRITTEN)
def test_a_batch_has_one_pack_and_what_is_in_it_is_read_back(written: list[Written]) -> None:
    rows = _rows(written)
    assert {type(row) for row in rows} == {WriteRow}
    ordinary = [each for each in written if each[0] >= 0]
    assert [unpack_writes(row.value) for row in rows if row.idx == PACK] == ([ordinary] if ordinary else [])


SCALARS = some.integers(-(2**63), 2**64 - 1) | some.floats() | some.booleans() | TEXT | some.binary()
WHERE = ParsedConfig("thread", "ns", "checkpoint", None)


@given(some.lists(some.tuples(TEXT, SCALARS), min_size=1, max_size=20))
def test_scalars_have_the_rows_of_their_literals(writes: list[tuple[str, object]]) -> None:
    rows = rows_of_scalars(Serde(), WHERE, "task", "path", writes, None)
    encoded, _ = encode_writes(Serde(), writes)
    if SPECIAL_WRITES.keys() & dict(writes).keys() or any(
        len(data) > LITERAL_LIMIT for _, (_, data) in encoded.values()
    ):
        assert rows is None
        return
    literals = [(index, channel, Stored(*both, b"").body) for index, (channel, both) in encoded.items()]
    assert rows == _rows(literals)
    assert {type(row) for row in rows} == {WriteRow}
    assert rows_of_scalars(Serde(), WHERE, "task", "path", tuple(writes), None) == rows


def test_long_and_unusual_writes_are_left_to_the_reference() -> None:
    class Text(str):
        __slots__ = ()

    longest = "x" * (LITERAL_LIMIT - 2)
    assert rows_of_scalars(Serde(), WHERE, "task", "path", [("a", longest)], None)
    for value in (longest + "x", "ä" * 60, b"x" * 97, 2**64, Text("x"), [1], None, object()):
        assert rows_of_scalars(Serde(), WHERE, "task", "path", [("b", 1), ("a", value)], None) is None
    for writes in ([], [("__resume__", 1)], [(Text("a"), 1)], [["a", 1]], [("a", 1, 2)], iter([("a", 1)]), None):
        assert rows_of_scalars(Serde(), WHERE, "task", "path", writes, None) is None

    class Own(Serde):
        pass

    assert rows_of_scalars(Own(), WHERE, "task", "path", [("a", 1)], None) is None


@given(some.lists(WRITTEN, min_size=1, max_size=3), some.randoms())
def test_what_was_written_is_read_in_its_order(tasks: list[list[Written]], chance: random.Random) -> None:
    rows = [row for number, written in enumerate(tasks) for row in _rows(written, f"task {number}")]
    expected = [(f"task {number}", *each) for number, written in enumerate(tasks) for each in written]
    for _ in range(3):
        by_reference = COUNTERPART.reference("thread", rows)
        found = COUNTERPART.compiled("thread", rows)
        assert found in (by_reference, None)
        assert [
            (each.row.task_id, each.row.idx, each.row.channel, each.value.body) for each in by_reference
        ] == expected
        chance.shuffle(rows)


def test_usual_packs_are_read_by_the_compiled_part() -> None:
    rows = [*_rows(SMALL), *_rows([(-1, "__error__", b"\0\1m0"), *SMALL], "other", "another")]
    found = COUNTERPART.compiled("thread", rows)
    assert found == COUNTERPART.reference("thread", rows)
    assert found
    assert {type(write.row) for write in found} == {WriteRow}
    assert {type(write.value) for write in found} == {Stored}


def test_the_row_of_a_write_counts_more_than_a_pack() -> None:
    own = [(1, "b", b"\0\1mX"), (2, "c", b"\0\1mY")]
    rows = [*_rows(SMALL), *separate_rows("thread", "ns", "checkpoint", "task", "path", own)]
    values = [(write.row.idx, write.value.packed) for write in proven_writes("thread", rows)]
    assert values == [(0, b"1"), (1, b"X"), (2, b"Y"), (3, b"3")]
    rows = [*_rows(SMALL), *separate_rows("thread", "ns", "checkpoint", "task", "path", own[1:])]
    assert COUNTERPART.compiled("thread", rows) == COUNTERPART.reference("thread", rows)


def test_a_pack_begins_with_the_keys_of_its_segments() -> None:
    (pack, _) = _rows([(0, "a", LONG), (1, "b", LONG), *[(index, "c", b"\0\1m") for index in (2, 3)]])
    assert pack.value.startswith(b"\1" + b"k" * 12)
    bodies = [b"\1" + index.to_bytes(12, "big") + LONG[13:] for index in range(MOST_KEYS + 2)]
    (pack, _) = _rows([(index, "a", body) for index, body in enumerate(bodies)])
    assert pack.value[0] == MOST_KEYS
    assert pack.value[1 : 1 + 12 * MOST_KEYS] == b"".join(body[1:13] for body in bodies[:MOST_KEYS])
    assert [body for _, _, body in unpack_writes(pack.value)] == bodies


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        b"\1" + b"k" * 11,
        b"\1" + b"k" * 12,
        b"\0\xc1",
        b"\0\x90",
        b"\0\xc0",
        b"\0\x80",
        b"\0" + pack_plain([0, "a"]),
        b"\0" + pack_plain([0, "a", b"\0\0", 1]),
        b"\0" + pack_plain([0, "a", b"\0\0"]) + b"\0",
        b"\0" + pack_plain([0, "a", b"\0\0"])[:-1],
        b"\0" + pack_plain([True, "a", b"\0\0"]),
        b"\0" + pack_plain([-1, "a", b"\0\0"]),
        b"\0" + pack_plain(["0", "a", b"\0\0"]),
        b"\0" + pack_plain([0, b"a", b"\0\0"]),
        b"\0" + pack_plain([0, "a", "b"]),
        b"\0" + pack_plain([0, "a", None]),
        b"\0" + pack_plain([1, "a", b"\0\0", 1, "a", b"\0\0"]),
        b"\0" + pack_plain([1, "a", b"\0\0", 0, "a", b"\0\0"]),
        b"\0\xdd\xff\xff\xff\xff\0",
        b"\0\x93\0\xa1a\xc6\xff\xff\xff\xff",
        b"\0\x93\0\xa1\xff\xc4\0",
        b"\0" + b"\x91" * 2000,
    ],
)
def test_a_pack_that_cannot_be_read_names_its_task(body: bytes) -> None:
    rows = _with_value(body)
    assert COUNTERPART.compiled("thread", rows) is None
    with pytest.raises(CorruptDataError, match="pending writes of task 'task': the row of its writes cannot be read"):
        proven_writes("thread", rows)


@given(WRITTEN.filter(lambda written: written[0][0] >= 0), some.data())
def test_bytes_that_are_changed_are_read_the_same_or_left_to_the_reference(
    written: list[Written], data: some.DataObject
) -> None:
    body = bytearray(pack_writes(written))
    at = data.draw(some.integers(0, len(body) - 1))
    body[at : at + data.draw(some.integers(0, 2))] = data.draw(some.binary(max_size=2))
    rows = _with_value(bytes(body))
    try:
        expected = COUNTERPART.reference("thread", rows)
    except CorruptDataError:
        assert COUNTERPART.compiled("thread", rows) is None
    else:
        assert COUNTERPART.compiled("thread", rows) in (expected, None)
