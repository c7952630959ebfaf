"""Manifests: joining, the packed form, and damaged ones."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmark.errors import CorruptDataError
from threadmark.format.digests import KEY_SIZE, segment_key
from threadmark.format.rope import Manifest, Slice, join, layout, pack, segment_keys, unpack

SEGMENTS = {segment_key(bytes([n]) * n): bytes([n]) * n for n in (1, 20, 130, 255)}
ONE, TWENTY, MANY, MOST = (Slice(key, len(segment), 0, len(segment)) for key, segment in SEGMENTS.items())


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    sizes = draw(st.lists(st.integers(1, 1 << 40), max_size=48))
    keys = [segment_key(str(number).encode()) for number in range(len(sizes))]

    def a_slice(number: int) -> st.SearchStrategy[Slice]:
        size, key = sizes[number], keys[number]
        bounds = st.tuples(st.integers(0, size), st.integers(0, size)).filter(lambda pair: pair[0] != pair[1])
        part = bounds.map(lambda pair: Slice(key, size, min(pair), max(pair) - min(pair)))
        return st.just(Slice(key, size, 0, size)) | part

    literal = st.binary(min_size=1, max_size=200)
    part = literal | st.integers(0, len(sizes) - 1).flatmap(a_slice) if sizes else literal
    return tuple(draw(st.lists(part, max_size=60)))


@settings(deadline=None)
@given(manifests())
def test_a_manifest_comes_back_equal_from_its_packed_form(manifest: Manifest) -> None:
    packed = pack(manifest)
    assert unpack(packed) == manifest
    assert pack(unpack(packed)) == packed


@settings(deadline=None)
@given(manifests())
def test_the_packed_form_begins_with_the_keys(manifest: Manifest) -> None:
    packed = pack(manifest)
    keys = segment_keys(manifest)
    assert packed[0] == len(keys) == len(set(keys))
    assert packed[1 : 1 + len(keys) * KEY_SIZE] == b"".join(keys)


def test_a_run_of_whole_segments_costs_their_keys_and_sizes() -> None:
    assert len(pack((ONE, TWENTY))) == 1 + 2 * (KEY_SIZE + 1) + 1


def test_replaced_bytes_cost_two_bytes_of_manifest_and_themselves() -> None:
    before, after = Slice(MOST.key, 255, 0, 7), Slice(MOST.key, 255, 10, 7)
    assert len(pack((before, b"new", after))) - len(pack((before,))) == len(b"new") + 2


def test_an_edited_segment_and_the_one_that_holds_its_edits_cost_a_byte_or_two_for_each_slice() -> None:
    edited: list[Slice] = []
    for number in range(12):
        edited += Slice(MOST.key, 255, number * 20, 15), Slice(MANY.key, 130, number * 5, 5)
    assert len(pack(tuple(edited))) - len(pack(tuple(edited[:4]))) == 10 * (2 + 1)


def test_joining_yields_slices_and_literals_in_order() -> None:
    manifest = (b"<", Slice(TWENTY.key, 20, 5, 3), b"|", ONE, Slice(TWENTY.key, 20, 19, 1))
    assert join(layout(pack(manifest)), SEGMENTS) == b"<" + b"\x14" * 3 + b"|" + b"\x01" + b"\x14"


@pytest.mark.parametrize(
    ("segments", "problem"),
    [({}, "is missing"), ({TWENTY.key: b"short"}, "has 5 bytes where 20 were stored")],
)
def test_joining_names_the_segment_that_is_not_what_was_stored(segments: Mapping[bytes, bytes], problem: str) -> None:
    with pytest.raises(CorruptDataError, match=f"{TWENTY.key.hex()} {problem}"):
        join(layout(pack((TWENTY,))), segments)


SAMPLE: Manifest = (
    b"head",
    MOST,
    ONE,
    Slice(MANY.key, 130, 3, 100),
    b"x",
    Slice(MANY.key, 130, 104, 20),
    Slice(TWENTY.key, 20, 0, 7),
    Slice(MANY.key, 130, 0, 1),
)


def test_damaged_manifests_are_refused_or_still_name_slices_inside_segments() -> None:
    chance = random.Random(3)
    packed = pack(SAMPLE)
    refused = 0
    for _ in range(20_000):
        damaged = bytearray(packed)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)) :]
        if chance.random() < 0.3:
            damaged += chance.randbytes(chance.randint(1, 9))
        try:
            parts = unpack(bytes(damaged))
        except CorruptDataError:
            refused += 1
            continue
        slices = [part for part in parts if isinstance(part, Slice)]
        assert all(0 <= part.start < part.start + part.length <= part.size for part in slices)
        assert all(len(part.key) == KEY_SIZE for part in slices)
        assert sum(len(part) for part in parts if isinstance(part, bytes)) <= len(damaged)
    assert refused > 10_000


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_a_manifest_or_refused(junk: bytes) -> None:
    try:
        manifest = unpack(junk)
    except CorruptDataError:
        return
    assert unpack(pack(manifest)) == manifest


def test_a_truncated_manifest_is_refused_or_a_beginning_of_the_whole_one() -> None:
    packed = pack((TWENTY, *SAMPLE, b"the end"))
    refused = 0
    for length in range(len(packed)):
        try:
            parts = unpack(packed[:length])
        except CorruptDataError:
            refused += 1
        else:
            assert parts == unpack(packed)[: len(parts)]
            assert len(parts) < len(SAMPLE) + 2
    assert refused > packed[0] * KEY_SIZE


KEYS = pack((ONE, TWENTY))[1:25]


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        (b"", "cut short"),
        (b"\x01" + KEYS[:12], "cut short"),
        (b"\x01" + KEYS[:12] + b"\x05", "does not use"),
        (b"\x02" + KEYS[:12] * 2 + b"\x05\x05\x2f", "one twice"),
        (b"\x01" + KEYS[:12] + b"\x05\x2f", "names segments that it does not list"),
        (b"\x01" + KEYS[:12] + b"\x05\x1f\x1f", "names segments that it does not list"),
        (b"\x01" + KEYS[:12] + b"\x05\x13\x01", "names a segment that it does not list"),
        (b"\x02" + KEYS + b"\x05\x05\x13\x01", "names a segment that it does not list"),
        (b"\x01" + KEYS[:12] + b"\x05\x11", "names a segment that it does not list"),
        (b"\x01" + KEYS[:12] + b"\x05\x63\x00", "not inside its segment"),
        (b"\x01" + KEYS[:12] + b"\x05\x1b\x00\x01", "not inside its segment"),
        (b"\x01" + KEYS[:12] + b"\x00\x1f", "an empty one"),
        (b"\x00\x00", "empty part"),
        (b"\x00\x20a", "literal is damaged"),
        (b"\x00\x14a", "literal is damaged"),
        (b"\x00" + b"\xff" * 12 + b"\x01", "too large"),
    ],
)
def test_each_way_to_be_wrong_is_refused(packed: bytes, problem: str) -> None:
    with pytest.raises(CorruptDataError, match=problem):
        unpack(packed)
