"""What a put does for each channel and each row: the compiled functions beside those in Python."""

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serde.packers import in_python
from threadmark.errors import ConfigError
from threadmark.format.header import Header, split_fields
from threadmark.format.stored import LITERAL_LIMIT, Encoded, Stored
from threadmark.saver import proving
from threadmark.saver.arguments import are_plain_in_python
from threadmark.saver.storing import encode, inherit_in_python
from threadmark.serde import Serde
from threadmark.store.contract import CheckpointRow, Outline, WriteRow
from threadmark_speed import given as given_compiled
from threadmark_speed import putting
from threadmark_speed.packing import CannotPackError

TEXTS = st.text(max_size=40) | st.sampled_from(["", "\ud800", "ż" * 20, "a" * 31, "a" * 32, "a" * 256, "a" * 70_000])
INTS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from([0, 127, 128, 255, 256, 65535, 65536, 2**32, -32, -33, -129])
FLOATS = st.floats() | st.just(math.nan)
VERSIONS = TEXTS | INTS | st.floats(allow_nan=False)
CHANNELS = st.sampled_from("abcdefgh") | TEXTS
BODIES = st.binary(max_size=300) | st.just(70_000).map(bytes)
FIELDS = st.none() | TEXTS | INTS | BODIES
STORED = st.tuples(st.sampled_from(["m", "t"]), BODIES, st.sampled_from([b"", bytes(16)])).map(
    lambda fields: Stored(*fields)
)


class Text(str):
    """What is no plain text."""

    __slots__ = ()


def _outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
        return type(error), str(error)


@given(st.dictionaries(CHANNELS, VERSIONS), st.dictionaries(CHANNELS, STORED, max_size=20), BODIES, st.booleans())
def test_headers_are_the_same_bytes(
    versions: dict[str, Any],
    values: dict[str, Stored],
    plain: bytes,
    has_rest: bool,  # noqa: FBT001 - hypothesis's
) -> None:
    header = Header(versions, values, plain, Encoded("t", b"rest") if has_rest else None)
    packed = header.to_bytes()
    with in_python():
        assert header.to_bytes() == packed


@pytest.mark.parametrize("count", [15, 16, 17, 300, 70_000])
def test_headers_of_many_channels_are_the_same_bytes(count: int) -> None:
    names = [f"channel {number}" for number in range(count)]
    header = Header(dict.fromkeys(names, 1), dict.fromkeys(names, Stored("m", b"\x01", b"")), b"\x80", None)
    packed = header.to_bytes()
    with in_python():
        assert header.to_bytes() == packed


def test_a_header_that_cannot_be_packed_is_refused_in_the_same_words() -> None:
    header = Header({"a": 2**70}, {}, b"\x80", None)
    with pytest.raises(ConfigError, match="64 bits"):
        header.to_bytes()
    with pytest.raises(CannotPackError):
        putting.pack_header({}, {"a": (1, 2, 3)}, b"\x80", None)


PLAIN = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | TEXTS | BODIES | st.just((1, 2)) | st.just(2**70) | st.just(Text("x")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["v", "ts", "versions_seen", "updated_channels", "id", "channel_values"])
        | st.sampled_from(["other", Text("v")]),
        PLAIN,
    )
)
def test_fields_are_the_same_bytes(checkpoint: dict[str, Any]) -> None:
    def split() -> Any:
        return split_fields(checkpoint, lambda rest: encode(Serde(), "the checkpoint", rest))

    found = _outcome(split)
    with in_python():
        assert _outcome(split) == found


@given(TEXTS, TEXTS, st.lists(st.tuples(INTS, TEXTS, TEXTS, BODIES), max_size=5))
def test_rows_of_writes_are_the_same(thread_id: str, task_id: str, written: list[tuple[int, str, str, bytes]]) -> None:
    rows = proving.write_rows(thread_id, "", "1", task_id, written)
    with mock.patch.object(proving, "IN_USE", new=False):
        assert proving.write_rows(thread_id, "", "1", task_id, written) == rows
    assert [type(row) for row in rows] == [WriteRow] * len(written)
    for row in rows:
        assert row.check == row[-1]
        proving.prove_write(thread_id, row)


@given(TEXTS, TEXTS, st.none() | TEXTS, INTS, BODIES)
def test_rows_of_checkpoints_are_the_same(
    thread_id: str, checkpoint_id: str, parent: str | None, moment: int, header: bytes
) -> None:
    outline = Outline(thread_id, "", checkpoint_id, checkpoint_id, parent, moment, "{}")
    row = proving.checkpoint_row(outline, header, "run")
    with mock.patch.object(proving, "IN_USE", new=False):
        assert proving.checkpoint_row(outline, header, "run") == row
    assert type(row) is CheckpointRow
    proving.prove_checkpoint(row)


SMALL = st.none() | st.booleans() | INTS | FLOATS | TEXTS | BODIES | st.just(2**70) | st.just([1]) | st.just(Text("x"))


@given(SMALL)
def test_short_values_are_stored_as_the_serializer_encodes_them(value: Any) -> None:
    data, stored = putting.scalar(value), putting.literal(Stored, value)
    if data is None:
        assert stored is None
        return
    with in_python():
        tag, reference = encode(Serde(), "it", value)
    assert (tag, reference) == ("m", data)
    assert stored == (Stored(tag, data, b"") if len(data) <= LITERAL_LIMIT else None)
    assert stored is None or type(stored) is Stored


FEW = st.sampled_from("abcd")
SOME = st.sampled_from([1, 2, 1.0, "1", "2"])


@given(
    st.dictionaries(FEW, st.integers()),
    st.lists(FEW, unique=True),
    st.dictionaries(FEW, SOME),
    st.dictionaries(FEW, STORED),
    st.dictionaries(FEW, SOME),
    st.booleans(),
)
def test_the_same_is_inherited(
    given_values: dict[str, Any],
    new: list[str],
    versions: dict[str, Any],
    values: dict[str, Stored],
    held: dict[str, Any],
    has_any: bool,  # noqa: FBT001 - hypothesis's
) -> None:
    reads = [channel for channel in new if channel in given_values]
    arguments = (given_values, reads, dict.fromkeys(new).keys(), versions, Header(held, values, b"", None), has_any)
    found, changed, has_manifests = putting.inherit(*arguments)
    assert (found, changed, has_manifests) == inherit_in_python(*arguments)
    assert list(found) == list(inherit_in_python(*arguments)[0])


@given(
    st.lists(st.tuples(FEW, STORED, SOME, SOME, st.booleans()), unique_by=lambda channel: channel[0]),
    st.booleans(),
    st.booleans(),
)
def test_the_same_is_inherited_where_channels_keep_their_order(
    channels: list[tuple[str, Stored, Any, Any, bool]],
    has_more: bool,  # noqa: FBT001 - hypothesis's
    has_any: bool,  # noqa: FBT001 - as above
) -> None:
    given_values = {channel: position for position, (channel, *_) in enumerate(channels)}
    more = {"of no value": 1} if has_more else {}
    versions = {**more, **{channel: version for channel, _, version, _, _ in channels}}
    held = {**more, **{channel: version for channel, _, _, version, _ in channels}}
    new = {channel: 1 for channel, _, _, _, is_new in channels if is_new}
    parent = Header(held, {channel: stored for channel, stored, *_ in channels}, b"", None)
    arguments = (given_values, list(new), new.keys(), versions, parent, has_any)
    found = putting.inherit(*arguments)
    assert found == inherit_in_python(*arguments)
    assert list(found[0]) == list(given_values)


@given(
    *[st.none() | st.just([("a", 1)]) | st.dictionaries(st.sampled_from(["a", Text("b"), 1]), VERSIONS | st.none())] * 3
)
def test_the_same_is_plain(values: Any, versions: Any, new: Any) -> None:
    assert given_compiled.are_plain(values, versions, new) == are_plain_in_python(values, versions, new)


def test_arguments_of_other_types_are_refused_before_they_are_read() -> None:
    parent = Header({}, {"a": "text"}, b"", None)  # type: ignore[dict-item]  # what must not be read
    with pytest.raises(TypeError):
        putting.pack_header(None, {}, b"", None)  # type: ignore[arg-type]  # as above
    with pytest.raises(TypeError):
        putting.inherit(None, [], (), {}, parent, True)  # type: ignore[arg-type]  # as above
    with pytest.raises(CannotPackError):
        putting.inherit({"a": 1}, [], (), {"a": 1}, parent._replace(versions={"a": 1}), True)
    with pytest.raises(CannotPackError):
        putting.checkpoint_row(CheckpointRow, (1, 2), b"", None)
    with pytest.raises(CannotPackError):
        putting.write_rows(WriteRow, "1", "", "1", "task", [(1, 2)])  # type: ignore[list-item]  # as above
    cls: Any
    for cls in (None, object, 3):
        with pytest.raises(TypeError):
            putting.literal(cls, "text")
