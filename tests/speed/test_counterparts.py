"""Every compiled function equals its reference: the same results and the same errors, on generated inputs."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import threadmark_langgraph
import threadmark_sqlite
from threadmark.format.header import Header, split_fields
from threadmark.format.stored import Stored
from threadmark.model import SPECIAL_WRITES
from threadmark.runtime.compiled import COUNTERPARTS
from threadmark.saver.batches import rows_of_batch
from threadmark.saver.storing import Draft, lay_out
from threadmark.serde import Serde
from threadmark.store.contract import CheckpointRow, Outline, WriteRow
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


def batch(found: dict[int, tuple[str, bytes]]) -> tuple[str, list[Any]]:
    """The arguments of `proven_writes`."""
    written = [(index, channel, Stored("m", body, b"").body) for index, (channel, body) in sorted(found.items())]
    return "thread", rows_of_batch("thread", "ns", "id", "task", "path", written, None) if written else []


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
    "threadmark.saver.batches.proven_writes": st.dictionaries(
        st.integers(-4, 300), st.tuples(TEXTS, st.binary(max_size=90))
    ).map(batch),
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
    "threadmark.saver.storing._rows_of_scalars": "test_packs.py",
    "threadmark.serde.attributes.object_reader": "test_objects.py",
    "threadmark.serde.attributes.object_writer": "test_objects.py",
    "threadmark.serde.decoder._hooks": "test_objects.py",
    "threadmark.serde.encoder.encode": "test_objects.py",
    "threadmark.serde.wire.unpack_plain": "test_reading.py",
    "threadmark_sqlite.driver.database_files.Looks": "test_files.py",
}
"""Those whose inputs or results need more to be compared, and the module that compares them."""

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
    "threadmark.saver.batches.proven_writes": batch({0: ("a", b"1"), 1: ("b", b"2")}),
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
    compiled, reference, is_whole = COUNTERPARTS[name]
    arguments = data.draw(ARGUMENTS[name])
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
