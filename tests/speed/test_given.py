"""What callers give to a put or a put_writes: the compiled functions beside those in Python."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from serde.packers import in_python
from threadmark.config import NOT_METADATA, ParsedConfig, owner_in
from threadmark.metadata import CheckedMetadata, checked, from_json, merged, usual_metadata
from threadmark.model import SPECIAL_WRITES
from threadmark.saver import arguments
from threadmark.saver.arguments import GivenCheckpoint, given_checkpoint, given_config, given_writes
from threadmark.saver.storing import Draft, encode_writes
from threadmark.serde import Serde
from threadmark_speed import given as compiled


class Text(str):
    """What is no plain text."""

    __slots__ = ()


def _outcome(action: Any, *arguments: Any) -> Any:
    try:
        return action(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
        return type(error), str(error)


NAMES = (
    st.none()
    | st.text(max_size=3)
    | st.sampled_from(["__messages__", "x" * 42, "x" * 43, "x" * 600, "\ud800", Text("x"), 7, True, b"x"])
)
CONFIGURABLE = st.fixed_dictionaries(
    {},
    optional={
        "thread_id": NAMES,
        "checkpoint_ns": NAMES,
        "checkpoint_id": NAMES,
        "lease_token": st.none() | st.integers(-1, 3),
        "user_id": NAMES,
        "other": st.sampled_from([1, 2.5, "x", None, Text("x"), [], object]),
        "__pregel_task_id": st.just(object),
    },
)
CONFIGS: Any = st.sampled_from([None, {}, [], {"configurable": 3}]) | st.fixed_dictionaries(
    {"configurable": CONFIGURABLE},
    optional={"metadata": st.none() | st.just("text") | CONFIGURABLE | st.just({1: 2}) | st.just({"f": math.nan})},
)


@given(CONFIGS)
def test_configurations_are_parsed_the_same(config: Any) -> None:
    usual = arguments.usual_config(config)
    assert usual is None or (type(usual) is ParsedConfig and usual == given_config(config))


@given(CONFIGS, st.dictionaries(st.sampled_from(["user_id", "a"]), NAMES))
def test_whoever_has_no_owner_is_named_by_nobody(config: Any, metadata: dict[str, Any]) -> None:
    if compiled.names_nobody(config, metadata, "user_id"):
        assert owner_in(config, metadata, "user_id") is None
    assert not compiled.names_nobody({"configurable": {"user_id": "ada"}}, metadata, "user_id")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([Text("x"), "\ud800", "a\0b", "null", b"x", object, (1, 2)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just(1), inner, max_size=3),
    max_leaves=6,
)


@given(CONFIGS, st.dictionaries(st.sampled_from(["user_id", "other", "a", "b", Text("c")]), VALUES) | st.just([]))
def test_metadata_is_merged_and_written_the_same(config: Any, metadata: Any) -> None:
    usual = usual_metadata(config, metadata)
    if usual is None:
        return
    reference = checked(merged(config, metadata))
    assert (type(usual), dict(usual), list(usual)) == (CheckedMetadata, dict(reference), list(reference))
    assert from_json(usual.text) == from_json(reference.text)


def test_usual_metadata_is_written_at_once() -> None:
    config = {"configurable": {"thread_id": "1", "user": "ada", "__pregel": object}, "metadata": {"run": 1.5}}
    usual = usual_metadata(config, {"source": "loop", "step": 1, "parents": {"": "x"}, "none": None})
    assert usual is not None
    assert usual.text == '{"source":"loop","step":1,"parents":{"":"x"},"none":null,"run":1.5,"user":"ada"}'
    for value in (math.nan, math.inf, 2**64, "a\0b", "\ud800", b"", {1: 2}, [Text("x")], {"a": {1, 2}}):
        assert usual_metadata(config, {"key": value}) is None
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    assert usual_metadata(config, {"deep": deep}) is None
    deep.append(deep)
    cycle: list[Any] = []
    cycle.append(cycle)
    assert compiled.usual_metadata(CheckedMetadata, NOT_METADATA, bytes, config, {"cycle": cycle}) is None


PAIRS = st.tuples(st.sampled_from(["a", "b", *SPECIAL_WRITES, Text("c"), 3]), VALUES)
WRITES = st.lists(PAIRS, max_size=5) | st.tuples(PAIRS) | st.just([("a",)]) | st.just("ab") | st.just([["a", 1]])


@given(WRITES)
def test_writes_are_encoded_the_same(writes: Any) -> None:
    found = _outcome(encode_writes, Serde(), writes)
    with in_python():
        assert _outcome(encode_writes, Serde(), writes) == found
    if compiled.are_usual_writes(writes, "__error__"):
        assert given_writes(writes) == list(writes)
        assert "__error__" not in [channel for channel, _ in writes]


def test_writes_are_those_that_were_given_whatever_their_values_do() -> None:
    writes: list[Any] = []

    def meddle(_: object, where: str, __: object) -> tuple[str, bytes]:
        writes.clear()
        return "t", where.encode()

    writes += [("a", []), ("b", 1), ("c", [])]
    found = compiled.encoded_writes(writes, SPECIAL_WRITES, "m", meddle, None)
    assert found == (
        {0: ("a", ("t", b'channel "a"')), 1: ("b", ("m", b"\x01")), 2: ("c", ("t", b'channel "c"'))},
        2 * len(b'channel "a"') + 1,
    )


CHECKPOINTS = st.fixed_dictionaries(
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


def _drafted(checkpoint: GivenCheckpoint) -> Any:
    made = Draft(Serde(), checkpoint)
    return [made.id, made._values, made._versions, list(made._new), made._plain, made._rest, made.reads]


@given(
    CHECKPOINTS | st.none(),
    st.none() | st.dictionaries(st.sampled_from(["a", "b", Text("c"), 3]), st.integers(1, 3)),
)
def test_checkpoints_are_checked_the_same(checkpoint: Any, new: Any) -> None:
    usual = arguments.usual_checkpoint(checkpoint, new)
    if usual is not None:
        assert type(usual) is GivenCheckpoint
        drafted = _drafted(usual)
        with in_python():
            assert _drafted(given_checkpoint(checkpoint, new)) == drafted
