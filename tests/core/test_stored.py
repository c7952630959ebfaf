"""The stored form of values and headers: exact, and strict about anything that is not it."""

from functools import partial
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serde.packers import in_python
from threadmark.errors import ConfigError, CorruptDataError, SerializationError
from threadmark.format.digests import proof, row_check
from threadmark.format.header import Header, joined_fields, split_fields
from threadmark.format.rope import deduplicate
from threadmark.format.stored import LITERAL_LIMIT, Encoded, Stored
from threadmark.memory import MemorySaver
from threadmark.saver.storing import encode
from threadmark.serde import Serde

TAGS = st.text(max_size=20)
LITERALS = st.binary(max_size=LITERAL_LIMIT)


def _large(data: bytes) -> tuple[Stored, dict[bytes, bytes]]:
    deduplicated = deduplicate(data, [])
    return Stored("m", deduplicated.packed, proof(data).digest), {
        key: b"\x00" + part for key, part in deduplicated.fresh.items()
    }


@given(TAGS, LITERALS)
def test_a_literal_comes_back(tag: str, data: bytes) -> None:
    stored = Stored(tag, data, b"")
    again = Stored.from_bytes(stored.body)
    assert again == stored
    assert (again.digest, again.data({}), again.segment_keys(), again.size()) == (b"", data, (), len(data))


@given(st.binary(min_size=LITERAL_LIMIT + 1, max_size=2000))
def test_a_value_in_segments_comes_back(data: bytes) -> None:
    stored, segments = _large(data)
    again = Stored.from_bytes(stored.body)
    assert again == stored
    assert again.digest != b""
    assert again.data(segments) == data
    assert again.size() == len(data)


def test_a_missing_segment_is_damage() -> None:
    stored, _ = _large(b"x" * 500)
    with pytest.raises(CorruptDataError):
        stored.data({})


@given(st.binary(min_size=200, max_size=300), st.integers(0, 1 << 16), st.integers(1, 255))
def test_a_changed_segment_is_damage(data: bytes, location: int, change: int) -> None:
    stored, segments = _large(data)
    key = next(iter(segments))
    body = bytearray(segments[key])
    body[location % len(body)] ^= change
    with pytest.raises(CorruptDataError):
        stored.data({**segments, key: bytes(body)})


@given(st.binary(max_size=200))
def test_any_bytes_are_a_stored_form_or_damage(body: bytes) -> None:
    try:
        stored = Stored.from_bytes(body)
    except CorruptDataError:
        return
    assert Stored.from_bytes(stored.body) == stored


@given(st.binary(max_size=300))
def test_any_bytes_are_a_header_or_damage(data: bytes) -> None:
    try:
        header = Header.from_bytes(data)
    except CorruptDataError:
        return
    assert isinstance(header, Header)


VERSIONS = st.dictionaries(
    st.text(), st.integers(0, (1 << 63) - 1) | st.floats(allow_nan=False) | st.text(), max_size=5
)


@given(VERSIONS, LITERALS)
def test_a_header_comes_back(versions: dict[str, Any], data: bytes) -> None:
    values = {channel: Stored("m", data, b"") for channel in versions}
    header = Header(versions, values, msgpack.packb({"v": 4, "ts": "x"}), Encoded("t", data))
    again = Header.from_bytes(header.to_bytes())
    assert again == header
    assert repr(again.versions) == repr(versions)


@pytest.mark.parametrize("version", [1 << 64, -(1 << 63) - 1], ids=repr)
def test_a_version_of_more_than_64_bits_is_refused(version: Any) -> None:
    with pytest.raises(ConfigError, match="channel_versions"):
        Header({"a": version}, {}, b"", None).to_bytes()


def test_fields_that_msgpack_would_change_go_through_the_serializer() -> None:
    checkpoint = {"id": "x", "channel_values": {}, "channel_versions": {}, "v": 1, "tuple": (1, [2]), "set": {1}}
    plain, rest = split_fields(checkpoint, partial(encode, Serde(), "the checkpoint"))
    assert msgpack.unpackb(plain) == {"v": 1}
    fields = joined_fields(Header({}, {}, plain, rest), Serde())
    assert fields == {"v": 1, "tuple": (1, [2]), "set": {1}}
    assert type(fields["tuple"]) is tuple


@pytest.mark.parametrize(
    "seen",
    [
        {},
        {"a": {"b": 1, "c": 1.5, "d": "\u00e9\ud800"}},
        {"a": b"bytes", "b": [None, True, -1, 1 << 63]},
        {"a": bytearray(b"buffer")},
        {"a": (1, 2)},
        {"a": 1 << 64},
        {"a": msgpack.ExtType(1, b"x")},
        {1: {None: 2}},
    ],
    ids=repr,
)
def test_fields_have_the_same_bytes_whichever_packer_writes_them(seen: Any) -> None:
    checkpoint = {"id": "x", "v": 1, "ts": "2026", "versions_seen": seen, "updated_channels": ["a"], "other": 1}
    fast = _fields(checkpoint)
    with in_python():
        assert _fields(checkpoint) == fast


def _fields(checkpoint: dict[str, Any]) -> Any:
    """The stored form of a checkpoint's fields; the error if they cannot be stored."""
    try:
        return split_fields(checkpoint, partial(encode, Serde(), "the checkpoint"))
    except SerializationError as error:
        return str(error)


FIELDS = st.lists(st.text(max_size=3) | st.binary(max_size=3) | st.none() | st.integers(0, 99), max_size=4)


@given(FIELDS, FIELDS)
def test_a_check_distinguishes_rows_whose_joined_fields_are_equal(one: list[Any], other: list[Any]) -> None:
    assert (row_check(*one) == row_check(*other)) == ([*map(repr, one)] == [*map(repr, other)])


class _Verbose(Serde):
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "tag" * 100, super().dumps_typed(obj)[1]


def test_a_tag_that_does_not_fit_is_refused_with_its_channel() -> None:
    with (
        MemorySaver(serde=_Verbose()) as saver,
        pytest.raises(SerializationError, match=r'channel "a".*longer than 255'),
    ):
        saver.put_writes({"configurable": {"thread_id": "t", "checkpoint_id": "1"}}, [("a", 1)], "task")
