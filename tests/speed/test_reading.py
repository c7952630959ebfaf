"""What is compiled of reading: checks, rows from columns, proven writes and plain values are those of the reference."""

import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from threadmark.digests import check_in_python, check_of
from threadmark.errors import CorruptDataError
from threadmark.saver.proving.batches import batch_record
from threadmark.saver.proving.checks import checkpoint_row, is_sound, write_rows
from threadmark.saver.proving.writes import Write, proven_by_reference, proven_writes
from threadmark.serde import Serde
from threadmark.serde.wire import NeedsSlowWayError, unpack_fast
from threadmark.store import Outline, WriteRow
from threadmark.stored import Stored
from threadmark_speed import checks, columns, plain, proving
from threadmark_sqlite import columns as reference

TEXT = some.text(some.characters(codec=None, exclude_categories=[]), max_size=300)
NUMBERS = some.integers(-(2**63), 2**63 - 1) | some.sampled_from([0, 31, 127, 128, -32, -33, 255, 256, 65535, 65536])
FIELDS = some.none() | NUMBERS | TEXT | some.binary(max_size=600)
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**64 - 1,
    -(2**63),
    0.1,
    "",
    "text",
    "ä\0",
    b"\xc0",
    [],
    [1, [2]],
    {"a": {"b": []}},
]


@given(some.lists(FIELDS, max_size=15))
def test_a_check_is_that_of_the_reference(fields: list[Any]) -> None:
    assert checks.check_of(fields) in (None, check_in_python(fields))
    assert check_of(fields) == check_in_python(fields)


@pytest.mark.parametrize("fields", [["\ud800"], [2**63], [True], [0.5], [[]], [None] * 16])
def test_other_fields_are_left_to_the_reference(fields: list[Any]) -> None:
    assert checks.check_of(fields) is None


@given(TEXT, some.none() | TEXT, some.binary(max_size=600), some.integers(0, 2**53))
def test_a_checkpoint_is_sound_until_something_of_it_changes(
    text: str, parent: str | None, header: bytes, now: int
) -> None:
    row = checkpoint_row(Outline("thread", text, "id", "rank", parent, now, "{}"), header, None)
    assert is_sound(row)
    assert not is_sound(row._replace(header=header + b"\0"))
    assert not is_sound(row._replace(outline=row.outline._replace(ns=text + "x")))
    assert not checks.is_sound(row.outline, row.header, row.check[:-1])


def _batch(chance: random.Random, task: str) -> list[WriteRow]:
    """Rows of what a task wrote, with their record."""
    indexes = chance.sample(range(-4, 200), chance.randint(1, 5))
    tags = ["m", "t", "n", "", "ä", "\ud800"]
    bodies = [Stored(chance.choice(tags), chance.randbytes(chance.randint(0, 90)), b"").body for _ in indexes]
    bodies[0] = (
        Stored("m", b"\1" + chance.randbytes(90), chance.randbytes(16)).body if chance.random() < 0.2 else bodies[0]
    )
    path, channel = chance.choice(["", "~path", "ä"]), chance.choice(["channel", "__error__"])
    written = [(index, path, channel, body) for index, body in zip(indexes, bodies, strict=True)]
    return write_rows("thread", "ns", "checkpoint", task, [*written, batch_record(tuple(indexes))])


@pytest.mark.parametrize("seed", range(50))
def test_sound_writes_are_those_of_the_reference_in_its_order(seed: int) -> None:
    chance = random.Random(seed)
    batches = [_batch(chance, f"task {number}") for number in range(chance.randint(1, 5))]
    rows = [row for batch in batches for row in batch]
    for _ in range(5):
        found = proving.proven_writes("thread", rows, Write)
        assert found is not None
        assert found == proven_by_reference("thread", rows)
        assert {type(write) for write in found} == {Write}
        assert {type(write.value) for write in found} == {Stored}
        chance.shuffle(rows)


def _changed(chance: random.Random, value: Any) -> Any:
    if isinstance(value, bytes):
        at = chance.randrange(len(value) + 1)
        return value[:at] + chance.randbytes(1) + value[at + chance.randrange(2) :]
    return chance.choice([None, 1.5, -1, 2**70, b"", "", "\ud800", f"{value}x"])


@pytest.mark.parametrize("seed", range(200))
def test_what_is_damaged_or_missing_is_left_to_the_reference(seed: int) -> None:
    chance = random.Random(seed)
    rows = [row for task in ("one", "other") for row in _batch(chance, task)]
    at, field = chance.randrange(len(rows)), chance.randrange(len(WriteRow._fields))
    damaged = [*rows[:at], *rows[at + 1 :]]
    if chance.random() < 0.8:
        fields: list[Any] = list(rows[at])
        fields[field] = _changed(chance, fields[field])
        damaged.append(WriteRow(*fields))
    try:
        expected: Any = proven_by_reference("thread", damaged)
    except (CorruptDataError, TypeError, OverflowError) as error:
        expected = error
    found = proving.proven_writes("thread", damaged, Write)
    assert found is None or found == expected
    if isinstance(expected, CorruptDataError):
        with pytest.raises(CorruptDataError, match=r"missing|is not what|cannot be read|is sealed|cut off"):
            proven_writes("thread", damaged)


def test_rows_of_the_first_format_are_left_to_the_reference() -> None:
    rows = [row for row in _batch(random.Random(1), "task") if row.idx < 200]
    assert proving.proven_writes("thread", rows, Write) is None


def _outcome(read: Callable[[bytes], Any], encoded: bytes) -> Any:
    """A value with the types in it, or None where it is not read."""
    try:
        return repr(read(encoded))
    except (plain.NeedsReferenceError, NeedsSlowWayError):
        return None


@given(
    some.recursive(
        some.none() | some.booleans() | some.integers(-(2**63), 2**64 - 1) | some.floats() | TEXT | some.binary(),
        lambda inner: some.lists(inner) | some.dictionaries(TEXT | some.integers(), inner),
    )
)
def test_a_plain_value_is_that_of_the_reference(value: Any) -> None:
    tag, encoded = Serde().dumps_typed(value)
    found = _outcome(plain.unpack, encoded) if tag == "m" else None
    assert found in (None, repr(Serde().loads_typed((tag, encoded))))


@given(some.binary(max_size=40))
@settings(max_examples=1000)
def test_bytes_that_are_no_value_are_left_to_the_reference(encoded: bytes) -> None:
    found = _outcome(plain.unpack, encoded)
    assert found is None or found == _outcome(unpack_fast, encoded)


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"\x01\x02",
        b"\xa2x",
        b"\x92\x01",
        b"\xc1",
        b"\xa1\xff",
        b"\xdd\xff\xff\xff\xff\x01",
        b"\xdf\x7f\xff\xff\xff\xa1x\x01",
        b"\xdb\xff\xff\xff\xffx",
        b"\xc6\xff\xff\xff\xffx",
        b"\xcf\x01",
        b"\x81\x90\x01",
        b"\x91" * 33 + b"\x01",
        b"\xd4\x54\x01",
    ],
)
def test_damage_marks_and_depth_are_left_to_the_reference(encoded: bytes) -> None:
    with pytest.raises(plain.NeedsReferenceError):
        plain.unpack(encoded)


def test_values_are_read_at_once_and_others_by_the_function() -> None:
    serde = Serde()
    stored = {str(number): Stored(*serde.dumps_typed(value), b"") for number, value in enumerate(VALUES)}
    others = {
        "typed": Stored("t", b"\x01", b""),
        "damaged": Stored("m", b"\x92", b""),
        "long": Stored("m", b"\0", b"d" * 16),
    }
    found = plain.values({**stored, **others}, lambda channel, value: (channel, value))
    expected = {str(number): value for number, value in enumerate(VALUES) if value is not None}
    assert {key: value for key, value in found.items() if key in expected} == expected
    assert {key: found[key] for key in others} == {key: (key, value) for key, value in others.items()}
    writes = [
        Write(WriteRow("", "id", "task", 0, "", "channel", value.body, b""), value)
        for value in [*stored.values(), *others.values()]
    ]
    written = plain.pending_writes(writes, lambda write: (write.row.task_id, write.row.channel, write.value))
    assert [value for _, _, value in written[-3:]] == list(others.values())
    assert written[1:4] == [("task", "channel", value) for value in VALUES[1:4]]


COLUMNS = some.none() | some.integers() | TEXT | some.binary(max_size=20) | some.binary(min_size=16, max_size=16)


@given(some.lists(some.tuples(*[COLUMNS] * 8), max_size=5))
def test_rows_of_columns_are_those_of_the_reference(rows: list[tuple[Any, ...]]) -> None:
    every = [*rows, *rows]  # the second time, ids are known
    assert columns.write_rows(every, reference.any_write) == [reference.any_write(row) for row in every]
    for some_columns in ([row[1:] for row in every], [(*row[1:], None) for row in every]):
        found = columns.writes_of("ns", "id", some_columns, reference.any_write_of)
        assert found == [reference.any_write_of("ns", "id", row[2:]) for row in every]
    for row in rows:
        outline = reference.any_outline("thread", row[:6])
        assert columns.outline("thread", row[:6], reference.any_outline) == outline
        found_row = columns.checkpoint_row("thread", row, reference.any_outline)
        assert found_row.outline == outline
        assert [found_row.header, found_row.check] == [reference.from_blob_column(column) for column in row[6:]]


@given(some.lists(some.tuples(*[COLUMNS] * 13), min_size=1, max_size=4))
def test_what_is_found_is_what_the_reference_finds(rows: list[tuple[Any, ...]]) -> None:
    functions = reference.any_outline, reference.any_write_of, reference.from_text_column
    for with_head in (True, False):
        found = columns.found_of("thread", "ns", rows, with_head, *functions)
        with mock.patch.object(reference, "IN_USE", new=False):
            expected = reference.found_of("thread", "ns", rows, with_head=with_head)
        assert [(type(each), each) for each in found] == [(type(each), each) for each in expected]
