"""A header made of its parent's encoding, beside the one that is packed anew."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serde.packers import in_python
from threadmark.header import Header
from threadmark.stored import Stored
from threadmark_speed import putting

VERSIONS = (
    st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([0, 127, 128, 255, 256, 65535, 65536, 2**32, -32, -33, -129, -32769, -(2**31) - 1])
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.sampled_from(["a" * 31, "a" * 32, "a" * 256, "a" * 70_000, "ż"])
)
VALUES = st.integers() | st.text(max_size=60)
BODIES = st.binary(max_size=300) | st.just(70_000).map(bytes)
PLAIN = st.binary(max_size=300)
LONG = "a name that makes the header longer than those that are packed anew " * 36


def _laid_out(parent: Header, before: bytes, given_values: Any, versions: Any, plain: bytes) -> tuple[Any, ...]:
    changed = [channel for channel, version in versions.items() if version is not parent.versions.get(channel)]
    new = dict.fromkeys(changed, 1).keys()
    reads = [channel for channel in new if channel in given_values]
    return putting.lay_out(Stored, given_values, reads, new, versions, parent, True, plain, None, True, before)


@given(
    st.lists(st.tuples(VERSIONS, BODIES, st.none() | VERSIONS, VALUES), min_size=1, max_size=40),
    st.integers(0, 3),
    PLAIN,
    PLAIN,
)
def test_a_spliced_header_has_the_bytes_of_a_packed_one(
    channels: list[tuple[Any, bytes, Any, Any]], without_value: int, before: bytes, after: bytes
) -> None:
    names = [LONG, *(f"channel {number}" for number in range(1, len(channels)))]
    held = {name: version for name, (version, *_) in zip(names, channels, strict=True)}
    valued = names[without_value:]
    stored = {name: Stored("m", body, b"") for name, (_, body, *_) in zip(names, channels, strict=True)}
    parent = Header(held, {name: stored[name] for name in valued}, before, None)
    of_each = dict(zip(names, channels, strict=True))
    versions = {name: old if new is None else new for name, (old, _, new, _) in of_each.items()}
    given_values = {name: of_each[name][3] for name in valued}

    values, others, _, packed = _laid_out(parent, parent.to_bytes(), given_values, versions, after)

    if others:  # numbers of more than 64 bits, and texts that are no literals
        assert packed is None
        return
    header = Header(versions, values, after, None)
    assert packed == header.to_bytes()
    with in_python():
        assert packed == header.to_bytes()
        assert Header.from_bytes(packed) == header


def _many() -> Header:
    names = [f"channel {number}" for number in range(100)]
    return Header(dict.fromkeys(names, 1), {name: Stored("m", b"\xa3" + b"abc", b"") for name in names}, b"\x80", None)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 300, 70_000])
def test_headers_of_many_channels_are_the_same_bytes(count: int) -> None:
    names = (
        [f"{LONG}{number}" for number in range(count)] if count < 20 else [f"name {number}" for number in range(count)]
    )
    parent = Header(dict.fromkeys(names, 1), dict.fromkeys(names, Stored("m", b"\x01", b"")), b"\x80", None)
    versions = {**parent.versions, names[-1]: 2}
    values, _, _, packed = _laid_out(parent, parent.to_bytes(), dict.fromkeys(names, 7), versions, b"\x81\x01\x01")
    assert packed == Header(versions, values, b"\x81\x01\x01", None).to_bytes()
    assert values[names[-1]] == Stored("m", b"\x07", b"")


def test_channels_that_come_go_and_change_places_are_packed_anew() -> None:
    parent = _many()
    names = list(parent.versions)
    for order in ([*names, "one more"], names[:-1], names[1:], [*names[1:], names[0]], names[::-1]):
        versions = {name: parent.versions.get(name, 1) for name in order}
        values, _, _, packed = _laid_out(parent, parent.to_bytes(), dict.fromkeys(order, "x"), versions, b"\x80")
        assert packed == Header(versions, values, b"\x80", None).to_bytes()


def test_a_parent_with_further_fields_is_not_copied_from() -> None:
    parent = _many()
    whole = parent.to_bytes()
    versions, given_values = {**parent.versions, "channel 3": 2}, dict.fromkeys(parent.values, "x")
    with_rest = whole[:-1] + b"\x92\xa1m\xc4\x01\x01"
    values, _, _, packed = _laid_out(parent, with_rest, given_values, versions, b"\x80")
    assert packed == Header(versions, values, b"\x80", None).to_bytes()


@pytest.mark.parametrize("byte", [0x00, 0x80, 0x90, 0xA5, 0xC0, 0xC1, 0xC4, 0xC6, 0xD9, 0xDB, 0xDE, 0xFF])
def test_nothing_beyond_a_damaged_encoding_is_read(byte: int) -> None:
    parent = _many()
    whole = parent.to_bytes()
    versions, given_values = {**parent.versions, "channel 3": 2}, dict.fromkeys(parent.values, "x")
    for place in range(len(whole)):
        damaged = whole[:place] + bytes([byte]) + whole[place + 1 :]
        *_, packed = _laid_out(parent, damaged, given_values, versions, b"\x80")
        assert len(packed) < 2 * len(whole)
        if len(whole) - place < 300:  # all that are long enough to be copied from
            values, _, _, packed = _laid_out(parent, whole[:place], given_values, versions, b"\x80")
            assert packed == Header(versions, values, b"\x80", None).to_bytes()


def test_a_version_that_cannot_be_packed_is_left_to_the_reference() -> None:
    parent = _many()
    versions = {**parent.versions, "channel 3": 2**70}
    *_, packed = _laid_out(parent, parent.to_bytes(), dict.fromkeys(parent.values, "x"), versions, b"\x80")
    assert packed is None
