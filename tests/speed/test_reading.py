"""The compiled parts of reading: checks, proven writes and plain values are those of the reference."""

import gc
import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from threadmark.errors import CorruptDataError, LocatedError
from threadmark.format.digests import check_of
from threadmark.format.header import Header
from threadmark.format.rope import Source
from threadmark.format.stored import Encoded, Stored
from threadmark.memory.store import MemoryStore
from threadmark.model import CheckpointTuple
from threadmark.runtime.compiled import only_references
from threadmark.saver.batches import Write, batch_record, proven_writes
from threadmark.saver.context import SaverContext, context_of
from threadmark.saver.decoding import decoded
from threadmark.saver.loading import LoadedCheckpoint
from threadmark.saver.proving import checkpoint_row, is_sound, write_rows
from threadmark.serde import Serde
from threadmark.serde.wire import NotPlainError, new_pack, unpack_plain
from threadmark.store.contract import Outline, WriteRow
from threadmark_speed import plain

TEXT = some.text(some.characters(codec=None, exclude_categories=[]), max_size=300)
NUMBERS = some.integers(-(2**63), 2**63 - 1) | some.sampled_from([0, 31, 127, 128, -32, -33, 255, 256, 65535, 65536])
FIELDS = some.none() | NUMBERS | TEXT | some.binary(max_size=600)
KEYS = ["type", "id", "content", "epyt", "typf", "a", "aa", "k" * 31, "k" * 32, "kä"]
CHECK: Any = check_of
WRITES: Any = proven_writes
UNPACK: Any = unpack_plain
"""The stand-in for the references while compiled parts are in use, as here."""

PACK = new_pack(lambda _: None)

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


@pytest.mark.parametrize("fields", [["\ud800"], [2**63], [True], [0.5], [[]], [None] * 65_536])
def test_other_fields_are_left_to_the_reference(fields: list[Any]) -> None:
    assert CHECK.compiled(fields) is None


@given(TEXT, some.none() | TEXT, some.binary(max_size=600), some.integers(0, 2**53))
def test_a_checkpoint_is_sound_until_something_of_it_changes(
    text: str, parent: str | None, header: bytes, now: int
) -> None:
    row = checkpoint_row(Outline("thread", text, "id", "rank", parent, now, "{}"), header, None)
    assert is_sound(row)
    assert not is_sound(row._replace(header=header + b"\0"))
    assert not is_sound(row._replace(outline=row.outline._replace(ns=text + "x")))
    assert not is_sound(row._replace(check=row.check[:-1]))


def _batch(chance: random.Random, task: str) -> list[WriteRow]:
    """Rows of a task's writes, with their record."""
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
        found = WRITES.compiled("thread", rows)
        assert found is not None
        assert found == WRITES.reference("thread", rows)
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
        expected: Any = WRITES.reference("thread", damaged)
    except (CorruptDataError, TypeError, OverflowError) as error:
        expected = error
    found = WRITES.compiled("thread", damaged)
    assert found is None or found == expected
    if isinstance(expected, CorruptDataError):
        with pytest.raises(CorruptDataError, match=r"missing|is not as|cannot be read|is sealed|cut off"):
            proven_writes("thread", damaged)


def test_rows_of_the_first_format_are_left_to_the_reference() -> None:
    rows = [row for row in _batch(random.Random(1), "task") if row.idx < 200]
    assert WRITES.compiled("thread", rows) is None


def _outcome(read: Callable[[bytes], Any], encoded: bytes) -> Any:
    """A value with the types in it, or None if it is not read."""
    try:
        return repr(read(encoded))
    except (plain.NeedsReferenceError, NotPlainError):
        return None


@given(
    some.recursive(
        some.none() | some.booleans() | some.integers(-(2**63), 2**64 - 1) | some.floats() | TEXT | some.binary(),
        lambda inner: some.lists(inner) | some.dictionaries(TEXT | some.integers() | some.sampled_from(KEYS), inner),
    )
)
def test_a_plain_value_is_that_of_the_reference(value: Any) -> None:
    tag, encoded = Serde().dumps_typed(value)
    found = _outcome(plain.unpack, encoded) if tag == "m" else None
    assert found in (None, repr(Serde().loads_typed((tag, encoded))))


@pytest.mark.parametrize("length", [*range(70), 255, 256, 65535, 65536])
@pytest.mark.parametrize("letter", ["", "ä", "漢", "\U0001f642"])
def test_text_is_that_of_the_reference_wherever_its_other_letters_are(length: int, letter: str) -> None:
    for text in ("x" * length + letter, letter + "x" * length, "x" * (length // 2) + letter + "x" * (length // 3)):
        encoded = PACK([text, {text: 1}])
        assert plain.unpack(encoded) == [text, {text: 1}]
        assert plain.unpack(encoded)[0].isascii() is text.isascii()


def test_keys_that_were_read_before_are_the_same_text() -> None:
    """One place of those that are known serves many keys, in turn."""
    many = {f"{letter}{number}": number for number in range(1000) for letter in "abä"}
    for _ in range(3):
        assert plain.unpack(PACK(many)) == many
    once, again = (next(iter(plain.unpack(b"\x81\xa4type\x01"))) for _ in range(2))
    assert once is again


@pytest.mark.parametrize("key", [1, -1, 2**60, 1.5, True, None, b"bytes"])
def test_keys_of_other_types_are_those_of_the_reference(key: Any) -> None:
    encoded = msgpack.packb({key: 1, "other": {key: 2}})
    assert repr(plain.unpack(encoded)) == repr({key: 1, "other": {key: 2}})


@given(some.binary(max_size=40))
@settings(max_examples=1000)
def test_bytes_that_are_no_value_are_left_to_the_reference(encoded: bytes) -> None:
    found = _outcome(plain.unpack, encoded)
    assert found is None or found == _outcome(UNPACK.reference, encoded)


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


def _loaded(chance: random.Random, serde: Serde) -> LoadedCheckpoint:
    """A checkpoint as it was read, with values of all sorts and damage here and there."""

    def stored(value: Any) -> Stored:
        tag, encoded = serde.dumps_typed(value)
        if chance.random() < 0.1:
            encoded = encoded[:-1]
        if chance.random() < 0.5:
            return Stored(tag, encoded, b"")
        data[digest := chance.randbytes(16)] = encoded
        return Stored(tag, b"\0", digest)

    data: dict[bytes, bytes] = {}
    objects = [*VALUES, (1, 2), {"a": UUID(int=1)}, {1: 2}, "\ud800", "x" * 500, [{"type": "ai"}] * 40]
    values = {f"channel {number}": stored(value) for number, value in enumerate(chance.sample(objects, 3))}
    plain_fields = {"v": 4, "ts": "now", "versions_seen": {"node": {"channel 0": 1}}, "updated_channels": None}
    rest = Encoded(*serde.dumps_typed({"more": (1,)})) if chance.random() < 0.2 else None
    packed = msgpack.packb(plain_fields)
    header = Header(dict.fromkeys(values, 1), values, packed[:-1] if chance.random() < 0.1 else packed, rest)
    metadata = chance.choice(['{"step":1,"x":[null,1.5,"ä"]}', "{}", '{"n":NaN}', "[]", "{", "{} ", '{"a":1}{}', "x"])
    parent = chance.choice([None, "", "parent"])
    outline = Outline("thread", "ns", "id", "rank", parent, 1, metadata if chance.random() < 0.3 else '{"step":2}')
    rows = [WriteRow("ns", "id", "task", number, "", f"c{number}", b"", b"") for number in range(chance.randint(0, 3))]
    writes = [Write(row, stored(chance.choice(objects))) for row in rows]
    return LoadedCheckpoint(1, outline, header, b"", Source(b""), writes, data)


@pytest.mark.parametrize("seed", range(300))
def test_what_the_user_sees_is_that_of_the_reference(seed: int) -> None:
    chance = random.Random(seed)
    context = context_of(MemoryStore(), {"pause_gc": seed % 3 == 0})
    loaded = _loaded(chance, Serde())
    found, expected = (_outcome_of(read, context, loaded) for read in (decoded, _in_python))
    assert found == expected
    if isinstance(found, CheckpointTuple):
        assert type(found) is CheckpointTuple
        assert gc.is_tracked(found)
        assert found.checkpoint["channel_versions"] is not loaded.header.versions


def _in_python(context: SaverContext, loaded: LoadedCheckpoint) -> CheckpointTuple:
    with only_references():
        return decoded(context, loaded)


def _outcome_of(
    read: Callable[[SaverContext, LoadedCheckpoint], CheckpointTuple], context: SaverContext, loaded: LoadedCheckpoint
) -> str | CheckpointTuple:
    """A checkpoint, compared by its text if it has a number that is none, or the text of the error."""
    try:
        found = read(context, loaded)
    except LocatedError as error:
        return f"{type(error)} {error} {error.location}"
    return repr(found) if "nan" in repr(found) else found
