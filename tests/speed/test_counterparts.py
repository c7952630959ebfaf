"""Every compiled function equals its reference: the same results and the same errors, on generated inputs."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

import threadmark_langgraph
import threadmark_sqlite
from threadmark.config import ParsedConfig
from threadmark.format.digests import pack_plain
from threadmark.format.header import Header, split_fields
from threadmark.format.stored import LITERAL_LIMIT, Stored
from threadmark.model import SPECIAL_WRITES
from threadmark.runtime.compiled import COUNTERPARTS
from threadmark.saver.batches import rows_of_batch, separate_rows
from threadmark.saver.proving import write_row
from threadmark.saver.storing import Draft, encode_writes, lay_out, rows_of_scalars
from threadmark.serde import Serde
from threadmark.store.contract import CheckpointRow, Outline, WriteRow
from threadmark_speed import plain
from threadmark_speed.packing import CannotPackError
from threadmark_speed.plain import NeedsReferenceError

PACKAGES = (threadmark_langgraph, threadmark_sqlite)
"""Imported, so that their counterparts are in use, too."""


class Text(str):
    """A text that is no plain one."""

    __slots__ = ()


class Own(Serde):
    """A serializer of the user's."""


TEXTS = st.text(max_size=40) | st.sampled_from(["", "\ud800", "ż" * 20, "a" * 31, "a" * 32, "a" * 256, "a" * 70_000])
INTS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0, 127, 128, 255, 256, 65535, 65536, 2**32, -32, -33, -129])
BODIES = st.binary(max_size=300) | st.just(70_000).map(bytes)
STORED = st.tuples(st.sampled_from(["m", "t"]), BODIES, st.sampled_from([b"", bytes(16)])).map(
    lambda each: Stored(*each)
)
NAMES = (
    st.none()
    | st.text(max_size=3)
    | st.sampled_from(["__messages__", "x" * 42, "x" * 43, "x" * 600, "\ud800", Text("x"), 7, True, b"x"])
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([Text("x"), "\ud800", "a\0b", "null", b"x", object, (1, 2), "x" * 97, b"x" * 97]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just(1), inner, max_size=3),
    max_leaves=6,
)
CONFIGURABLE = st.fixed_dictionaries(
    {},
    optional={
        "thread_id": NAMES,
        "checkpoint_ns": NAMES,
        "checkpoint_id": NAMES,
        "lease_token": st.none() | st.integers(-1, 3),
        "other": st.sampled_from([1, 2.5, "x", None, Text("x"), [], object]),
        "__pregel_task_id": st.just(object),
    },
)
CONFIGS: Any = st.sampled_from([None, {}, [], {"configurable": 3}]) | st.fixed_dictionaries(
    {"configurable": CONFIGURABLE},
    optional={"metadata": st.none() | st.just("text") | CONFIGURABLE | st.just({1: 2}) | st.just({"f": math.nan})},
)
METADATA: Any = st.dictionaries(st.sampled_from(["other", "a", "b", Text("c")]), VALUES) | st.just([])
PAIRS = st.tuples(st.sampled_from(["a", "b", *SPECIAL_WRITES, Text("c"), 3]), VALUES)
WRITES: Any = st.lists(PAIRS, max_size=5) | st.tuples(PAIRS) | st.just([("a",)]) | st.just("ab") | st.just([["a", 1]])
NEW = st.none() | st.dictionaries(st.sampled_from(["a", "b", Text("c"), 3]), st.integers(1, 3))
USUAL_CHECKPOINTS = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=3),
        "v": st.just(4),
        "ts": st.just("now"),
        "channel_values": st.dictionaries(st.sampled_from("abc"), st.integers()),
        "channel_versions": st.dictionaries(st.sampled_from("abc"), st.sampled_from([1, "2"])),
    },
    optional={"versions_seen": st.just({"a": {"b": 1}}), "updated_channels": st.none() | st.just(["a"])},
)
ANY_CHECKPOINTS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "id": NAMES,
        "v": st.sampled_from([1, True, "1"]),
        "ts": st.just("now"),
        "versions_seen": st.just({"a": {"b": 1}}) | st.just((1, 2)),
        "channel_values": st.none() | st.dictionaries(st.sampled_from(["a", "b", Text("c")]), st.integers()),
        "channel_versions": st.none() | st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([1, "2", 3.0])),
        "more": st.just(1),
    },
)
CHECKPOINTS: Any = USUAL_CHECKPOINTS | ANY_CHECKPOINTS
FEW, SOME = st.sampled_from("abcd"), st.sampled_from([1, 2, 1.0, "1", "2"])
OUTLINES: Any = st.builds(Outline, TEXTS, TEXTS, TEXTS, TEXTS, st.none() | TEXTS, INTS, TEXTS) | st.just((1, 2))

UUIDS = st.uuids().map(str) | st.uuids().map(lambda each: str(each).upper()) | st.uuids().map(lambda each: each.hex)
COLUMNS = st.none() | st.integers() | TEXTS | st.binary(max_size=20) | st.binary(min_size=16, max_size=16)
ROWS = st.builds(
    CheckpointRow,
    st.builds(Outline, TEXTS, TEXTS, TEXTS | UUIDS, TEXTS, st.none() | TEXTS, st.integers(0, 2**62), TEXTS),
    BODIES,
    BODIES,
    st.none(),
)
WRITE_ROWS = st.builds(WriteRow, TEXTS, TEXTS | UUIDS, UUIDS, st.integers(-4, 2**31), TEXTS, TEXTS, BODIES, BODIES)


@st.composite
def layouts(draw: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The arguments of `lay_out`: channels in any order, or all in that of the parent."""
    if draw(st.booleans()):
        values, stored = draw(st.dictionaries(FEW, st.integers())), draw(st.dictionaries(FEW, STORED))
        versions, held = draw(st.dictionaries(FEW, SOME)), draw(st.dictionaries(FEW, SOME))
        new = draw(st.lists(FEW, unique=True))
    else:
        channels = draw(st.lists(st.tuples(FEW, STORED, SOME, SOME, st.booleans()), unique_by=lambda each: each[0]))
        more = {"of no value": 1} if draw(st.booleans()) else {}
        values = {channel: position for position, (channel, *_) in enumerate(channels)}
        versions = {**more, **{channel: version for channel, _, version, _, _ in channels}}
        held = {**more, **{channel: version for channel, _, _, version, _ in channels}}
        stored = {channel: each for channel, each, *_ in channels}
        new = [channel for channel, *_, is_new in channels if is_new]
    reads = [channel for channel in new if channel in values]
    rest = draw(st.none() | st.just(("t", b"rest")))
    parent = Header(held, stored, b"", None)
    return values, reads, dict.fromkeys(new).keys(), versions, parent, draw(st.booleans()), b"\x80", rest, False


def batch(task: str, found: dict[int, tuple[str, bytes]], longest: int | None = None) -> list[WriteRow]:
    """The rows of a task's writes."""
    return rows_of_batch(
        "thread", "ns", "id", task, "path", [(index, *found[index]) for index in sorted(found)], longest
    )


MANIFESTS = st.lists(st.binary(min_size=12, max_size=12), min_size=1, max_size=48).map(
    lambda keys: Stored("m", bytes([len(keys)]) + b"".join(keys) + b"\5", bytes(16)).body
)
WRITTEN = st.dictionaries(
    st.integers(-4, 300),
    st.tuples(TEXTS, BODIES.map(lambda data: Stored("m", data, b"").body) | MANIFESTS),
    min_size=1,
    max_size=5,
)
WRONG: Any = st.sampled_from([None, 1.5, -1, 2**70, b"", "", "\ud800", "x"]) | st.binary(max_size=3)


@st.composite
def rows_of_tasks(draw: Callable[[Any], Any]) -> tuple[str, list[Any]]:
    """The arguments of `proven_writes`: rows in any order, all as they were written, or with one that is damaged."""
    rows: list[Any] = []
    for number in range(draw(st.integers(0, 3))):
        found = draw(WRITTEN)
        rows += batch(f"task {number}", found, draw(st.sampled_from([None, None, 130])))
        if draw(st.integers(0, 3)) == 0:
            own = [(index, *found[index]) for index in sorted(found)][:2]
            rows += separate_rows("thread", "ns", "id", f"task {number}", "path", own)
    if rows and draw(st.booleans()):
        row = rows.pop(draw(st.integers(0, len(rows) - 1)))
        rows += draw(st.just([]) | st.tuples(st.just(row).flatmap(damaged)))
    return "thread", draw(st.permutations(rows))


def damaged(row: WriteRow) -> Any:
    """The row with a field that is wrong, or with other bytes of its value and a check that is right."""
    crafted = _replaced(row.value).map(lambda value: write_row("thread", *row._replace(value=value)[:-1]))
    wrong = st.tuples(st.sampled_from(WriteRow._fields), WRONG).map(lambda one: row._replace(**dict([one])))
    return wrong | crafted | _replaced(row.check).map(lambda check: row._replace(check=check))


def _replaced(encoded: bytes) -> Any:
    """The bytes with up to two of them replaced by up to two others, or without their end."""
    edits = st.tuples(st.integers(0, len(encoded)), st.integers(0, 2), st.binary(max_size=2))
    return edits.map(lambda edit: encoded[: edit[0]] + edit[2] + encoded[edit[0] + edit[1] :]) | st.integers(
        0, len(encoded)
    ).map(lambda end: encoded[:end])


SCALARS = st.none() | INTS | st.floats() | st.booleans() | TEXTS | BODIES
KEYS = TEXTS | SCALARS | st.sampled_from(["type", "id", "content", "epyt", "typf", "a", "aa", "k" * 31, "k" * 32, "kä"])
PACKED = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=20) | st.dictionaries(KEYS, inner, max_size=20), max_leaves=20
).map(lambda value: msgpack.packb(value, unicode_errors="surrogatepass"))

ARGUMENTS: dict[str, Any] = {
    "threadmark.format.digests.check_of": st.tuples(
        st.lists(st.none() | INTS | TEXTS | BODIES | st.booleans() | st.just(0.5), max_size=16)
    ),
    "threadmark.format.digests.pack_plain": st.tuples(
        st.lists(st.none() | INTS | TEXTS | BODIES | st.booleans() | st.just(["list"]), max_size=40)
        | st.dictionaries(TEXTS, INTS, max_size=2)
        | st.integers(0, 70_000).map(lambda count: [1] * count)
    ),
    "threadmark.saver.arguments.checked_config": st.tuples(CONFIGS),
    "threadmark.saver.storing.draft_of": st.tuples(CHECKPOINTS, NEW),
    "threadmark.saver.arguments.checked_writes": st.tuples(WRITES),
    "threadmark.metadata.checked_metadata": st.tuples(CONFIGS, METADATA),
    "threadmark_langgraph.shapes.stored_metadata": st.tuples(CONFIGS, METADATA),
    "threadmark.saver.storing.encode_writes": st.tuples(st.sampled_from([Serde(), Own()]), WRITES),
    "threadmark.saver.storing.lay_out": layouts(),
    "threadmark.saver.batches.proven_writes": rows_of_tasks(),
    "threadmark.serde.wire.unpack_plain": st.tuples(PACKED | PACKED.flatmap(_replaced) | st.binary(max_size=40)),
    "threadmark_sqlite.columns.id_column": st.tuples(TEXTS | UUIDS),
    "threadmark_sqlite.columns.checkpoint_columns": st.tuples(st.just(7), ROWS),
    "threadmark_sqlite.columns.write_columns": st.tuples(st.just(7), st.lists(WRITE_ROWS, max_size=5)),
    "threadmark_sqlite.columns.checkpoint_row": st.tuples(st.just("thread"), st.tuples(*[COLUMNS] * 8)),
    "threadmark_sqlite.columns.write_rows": st.tuples(st.lists(st.tuples(*[COLUMNS] * 8), max_size=4)),
    "threadmark_sqlite.columns.found_of": st.tuples(
        st.just("thread"), st.just("ns"), st.lists(st.tuples(*[COLUMNS] * 13), min_size=1, max_size=4), st.booleans()
    ),
}
"""The arguments of each function."""

ELSEWHERE = {
    "threadmark.format.rope.deduplicating.deduplicate": "test_rope.py",
    "threadmark.format.rope.deduplicating.patch": "test_rope.py",
    "threadmark.format.rope.packed.join": "test_rope.py",
    "threadmark.format.rope.packed.keys_in": "test_rope.py",
    "threadmark.format.rope.packed.layout": "test_rope.py",
    "threadmark.saver.decoding._whole": "test_reading.py",
    "threadmark.saver.storing._rows_of_scalars": "test_counterparts.py",
    "threadmark.serde.attributes.object_reader": "test_objects.py",
    "threadmark.serde.attributes.object_writer": "test_objects.py",
    "threadmark.serde.decoder._hooks": "test_objects.py",
    "threadmark.serde.encoder.encode": "test_objects.py",
    "threadmark_sqlite.driver.database_files.Looks": "test_files.py",
}
"""Those whose inputs or results need more to be compared, and the module that compares them."""

UNREADABLE_PACKS = [
    *[b"", b"\0", b"\1" + b"k" * 11, b"\1" + b"k" * 12, b"\0\xc1", b"\0\x90", b"\0\xc0", b"\0\x80"],
    *[
        b"\0\xdd\xff\xff\xff\xff\0",
        b"\0\x93\0\xa1a\xc6\xff\xff\xff\xff",
        b"\0\x93\0\xa1\xff\xc4\0",
        b"\0" + b"\x91" * 2000,
    ],
    b"\0" + pack_plain([0, "a", b"\0\0"]) + b"\0",
    b"\0" + pack_plain([0, "a", b"\0\0"])[:-1],
    *[
        b"\0" + pack_plain(fields)
        for fields in (
            *([0, "a"], [0, "a", b"\0\0", 1], [True, "a", b"\0\0"], [-1, "a", b"\0\0"], ["0", "a", b"\0\0"]),
            *([0, b"a", b"\0\0"], [0, "a", "b"], [0, "a", None]),
            *([1, "a", b"\0\0", 1, "a", b"\0\0"], [1, "a", b"\0\0", 0, "a", b"\0\0"]),
        )
    ],
]
UNREADABLE_VALUES = [
    *[b"", b"\x01\x02", b"\xa2x", b"\x92\x01", b"\xc1", b"\xa1\xff", b"\xcf\x01", b"\x81\x90\x01", b"\xd4\x54\x01"],
    *[
        b"\xdd\xff\xff\xff\xff\x01",
        b"\xdf\x7f\xff\xff\xff\xa1x\x01",
        b"\xdb\xff\xff\xff\xffx",
        b"\xc6\xff\xff\xff\xffx",
    ],
    *[b"\x91" * 33 + b"\x01", b"\x91" * 100_000],
]


def _with_pack(body: bytes) -> tuple[str, list[WriteRow]]:
    """The rows of a task whose pack holds other bytes, as an attacker who knows the checks would make them."""
    pack, record = batch("task", {0: ("a", b"\0\1m1")})
    return "thread", [write_row("thread", *pack._replace(value=body)[:-1]), record]


OTHER_FIELDS: list[list[Any]] = [["\ud800"], [2**63], [True], [0.5], [[]], [None] * 65_536]

ALWAYS: dict[str, list[tuple[Any, ...]]] = {
    "threadmark.format.digests.check_of": [(fields,) for fields in OTHER_FIELDS],
    "threadmark.saver.batches.proven_writes": [_with_pack(body) for body in UNREADABLE_PACKS],
    "threadmark.serde.wire.unpack_plain": [(encoded,) for encoded in UNREADABLE_VALUES],
}
"""Arguments that are tried each time."""

NO_PARENT = Header({}, {}, b"", None)

USUAL: dict[str, tuple[Any, ...]] = {
    "threadmark.format.digests.check_of": (["text", 1, b"bytes", None],),
    "threadmark.format.digests.pack_plain": (["text", 1, b"bytes", None] * 9,),
    "threadmark.saver.arguments.checked_config": ({"configurable": {"thread_id": "1", "checkpoint_ns": ""}},),
    "threadmark.saver.storing.draft_of": (
        {"id": "1", "v": 4, "ts": "now", "channel_values": {"a": 1}, "channel_versions": {"a": 1}},
        {"a": 1},
    ),
    "threadmark.saver.arguments.checked_writes": ([("a", 1)],),
    "threadmark.metadata.checked_metadata": ({"configurable": {"thread_id": "1"}}, {"source": "loop", "step": 1}),
    "threadmark_langgraph.shapes.stored_metadata": ({"configurable": {}, "metadata": {"run": 1.5}}, {"step": 1}),
    "threadmark.saver.storing.encode_writes": (Serde(), [("a", 1), ("__error__", "text"), ("b", [1])]),
    "threadmark.saver.storing.lay_out": (
        {"a": 1},
        ["a"],
        ["a"],
        {"a": 1},
        Header({}, {}, b"", None),
        False,
        b"",
        None,
        True,
    ),
    "threadmark.saver.storing._rows_of_scalars": (*["id"] * 5, [("a", 1), ("b", "x" * (LITERAL_LIMIT - 2))]),
    "threadmark.saver.batches.proven_writes": (
        "thread",
        [*batch("one", {-1: ("__error__", b"\0\1m0"), 0: ("a", b"\0\1m1")}), *batch("other", {0: ("b", b"\0\1m2")})],
    ),
    "threadmark.serde.wire.unpack_plain": (msgpack.packb({"a": [1, "text", None, {"b": 0.5}], "c": b"bytes"}),),
    "threadmark_sqlite.columns.found_of": (
        "thread",
        "ns",
        [("2", None, 1, None, None, "ns", "2", None, None, 12, "{}", b"header", b"check")],
        True,
    ),
}
"""The arguments that must not be left to the references."""


def _told(found: Any) -> str:
    """A value in words, with the types of all that is in it; a list and a tuple are the same."""
    if isinstance(found, dict):
        items = ", ".join(f"{_told(key)}: {_told(value)}" for key, value in found.items())
        return f"{type(found).__name__} {{{items}}} {getattr(found, 'text', '')}"
    if isinstance(found, (list, tuple)):
        kind = "sequence" if type(found) in (list, tuple) else type(found).__name__
        return f"{kind} [{', '.join(map(_told, found))}]"
    return f"{type(found).__name__} {found!r}"


def test_each_counterpart_is_compared() -> None:
    assert set(COUNTERPARTS) == {*ARGUMENTS, *ELSEWHERE}
    assert [module for module in ELSEWHERE.values() if not Path(__file__).with_name(module).is_file()] == []


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
@given(data=st.data())
def test_results_and_errors_are_those_of_the_reference(name: str, data: st.DataObject) -> None:
    _compare(name, data.draw(ARGUMENTS[name]))


@pytest.mark.parametrize("name", sorted(ALWAYS))
def test_results_and_errors_for_what_is_tried_each_time(name: str) -> None:
    for arguments in ALWAYS[name]:
        _compare(name, arguments)


def _compare(name: str, arguments: tuple[Any, ...]) -> None:
    compiled, reference, is_whole = COUNTERPARTS[name]
    found = _outcome(compiled, arguments)
    if isinstance(found, (CannotPackError, NeedsReferenceError)) or (found is None and not is_whole):
        return  # the reference is asked
    expected = _outcome(reference, arguments)
    if name.endswith("lay_out"):  # it packs the header, too, if that can be done at once
        found, expected = _without_header(found, arguments), expected[:3]
    if isinstance(found, Draft):  # whose fields are packed, too, if they are usual ones
        assert found.plain == split_fields(found.fields, Serde().dumps_typed)[0]
        found = found._replace(plain=None)
    assert _told(found) == _told(expected)


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
        return error


def _without_header(found: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The result of `lay_out` without the packed header, which is the one that the header itself makes."""
    values, changed, has_manifests, packed = found
    if packed is not None:
        _, _, _, versions, _, _, plain, rest, _ = arguments
        assert packed == Header(versions, values, plain, rest).to_bytes()
    return values, changed, has_manifests


@pytest.mark.parametrize("name", sorted(USUAL))
def test_what_is_usual_is_not_left_to_the_reference(name: str) -> None:
    assert COUNTERPARTS[name].compiled(*USUAL[name]) is not None


@pytest.mark.parametrize("value", [0, -1, 2**64 - 1, 1.5, True, "text", "ä" * 40, b"bytes", "x" * 94])
def test_short_values_are_laid_out_as_the_serializer_encodes_them(value: Any) -> None:
    values, changed, _, packed = lay_out({"a": value}, ["a"], ["a"], {"a": 1}, NO_PARENT, False, b"\x80", None, True)
    assert (changed, values) == ([], {"a": Stored(*Serde().dumps_typed(value), b"")})
    assert packed == Header({"a": 1}, values, b"\x80", None).to_bytes()


@pytest.mark.parametrize("value", ["x" * 95, b"x" * 95, 2**64, None, [1], Text("x")])
def test_other_values_are_left_to_the_serializer(value: Any) -> None:
    values, changed, _, packed = lay_out({"a": value}, ["a"], ["a"], {"a": 1}, NO_PARENT, False, b"\x80", None, True)
    assert (changed, values["a"], packed) == (["a"], value, None)


WHERE = ParsedConfig("thread", "ns", "checkpoint", None)


@given(WRITES | st.lists(st.tuples(TEXTS, SCALARS), max_size=20))
def test_scalars_have_the_rows_of_their_literals(writes: Any) -> None:
    rows = rows_of_scalars(Serde(), WHERE, "task", "path", writes, None)
    if rows is not None:
        encoded, _ = encode_writes(Serde(), writes)
        literals = [(index, channel, Stored(*both, b"").body) for index, (channel, both) in encoded.items()]
        assert _told(rows) == _told(rows_of_batch("thread", "ns", "checkpoint", "task", "path", literals, None))


@pytest.mark.parametrize("writes", [[], [("__resume__", 1)], [["a", 1]], [("a", 1, 2)], iter([("a", 1)]), None])
def test_other_writes_are_no_scalars(writes: Any) -> None:
    assert rows_of_scalars(Serde(), WHERE, "task", "path", writes, None) is None
    assert rows_of_scalars(Own(), WHERE, "task", "path", [("a", 1)], None) is None


def test_text_is_the_same_wherever_its_other_letters_are() -> None:
    for length in (*range(70), 255, 256, 65535, 65536):
        for letter in ("", "ä", "漢", "\U0001f642"):
            for text in ("x" * length + letter, letter + "x" * length, "x" * (length // 2) + letter + "x" * length):
                found = plain.unpack(msgpack.packb([text, {text: 1}]))
                assert found == [text, {text: 1}]
                assert found[0].isascii() is text.isascii()


def test_keys_that_were_read_before_are_the_same_text() -> None:
    """One place of those that are known serves many keys, in turn."""
    many = {f"{letter}{number}": number for number in range(1000) for letter in "abä"}
    for _ in range(3):
        assert plain.unpack(msgpack.packb(many)) == many
    once, again = (next(iter(plain.unpack(b"\x81\xa4type\x01"))) for _ in range(2))
    assert once is again
