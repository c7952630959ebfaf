"""The compiled rope and the one in Python: the same answers if one is right, and the same limits.

The tests of the rope itself (`tests/core/test_rope_*.py`) are run with each of them, as the whole suite is.
"""

import random
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from length import times
from speed.ropes import (
    COMPILED,
    PYTHON,
    Rope,
    damaged,
    history,
    in_turns,
    outcome,
    packed_manifest,
    read,
)
from threadmark.format.digests import segment_key
from threadmark.format.rope import Slice, Source, pack

ROPES = (PYTHON, COMPILED)
BOTH = pytest.mark.parametrize("of", [pytest.param(PYTHON, id="python"), pytest.param(COMPILED, id="compiled")])


def test_a_manifest_is_read_in_the_same_way_whole_and_damaged() -> None:
    chance = random.Random(1)
    refused = 0
    for _ in range(times(500, at_length=20_000)):
        packed = packed_manifest(chance)
        assert read(COMPILED, packed) == read(PYTHON, packed)
        for _ in range(15):
            wrong = damaged(packed, chance)
            found = read(PYTHON, wrong)
            assert read(COMPILED, wrong) == found
            refused += isinstance(found[0], tuple) and isinstance(found[0][0], type)
    assert refused > times(3500, at_length=140_000)


@given(st.binary(max_size=120))
def test_arbitrary_bytes_are_read_in_the_same_way(junk: bytes) -> None:
    for packed in (junk, b"\x01" + junk):
        assert read(COMPILED, packed) == read(PYTHON, packed)


def test_the_longest_number_is_the_same() -> None:
    for length in range(1, 12):
        for last in (b"\x00", b"\x01", b"\x7f"):
            packed = b"\x01" + bytes(12) + b"\xff" * length + last + b"\x1f"
            assert read(COMPILED, packed) == read(PYTHON, packed)


def test_a_value_is_joined_in_the_same_way_or_refused_in_the_same_words() -> None:
    chance = random.Random(2)
    segments = {segment_key(b"%d" % number): chance.randbytes(size) for number, size in enumerate([1, 5, 130, 1000])}
    sized = [Slice(key, len(segment), 0, len(segment)) for key, segment in segments.items()]
    for _ in range(300):
        parts: list[Slice | bytes] = [_some_of(chance.choice(sized), chance) for _ in range(chance.randint(1, 6))]
        if chance.random() < 0.5:
            parts.append(chance.randbytes(chance.randint(1, 9)))
        packed = pack(tuple(parts))
        held = {key: segment for key, segment in segments.items() if chance.random() < 0.9}
        held = {key: segment if chance.random() < 0.95 else segment + b"x" for key, segment in held.items()}
        joined = {repr(outcome(one.join, other.layout(packed), held)) for one in ROPES for other in ROPES}
        assert len(joined) == 1


def _some_of(whole: Slice, chance: random.Random) -> Slice:
    start = chance.choice([0, chance.randrange(whole.size)])
    return whole._replace(start=start, length=chance.randint(1, whole.size - start))


def test_a_value_that_is_one_whole_segment_is_not_copied() -> None:
    segment = bytes(range(256))
    packed = pack((Slice(segment_key(segment), 256, 0, 256),))
    assert COMPILED.join(COMPILED.layout(packed), {segment_key(segment): segment}) is segment


def test_any_history_is_stored_within_the_limits_by_both_and_by_the_two_in_turns() -> None:
    totals = [0, 0, 0]
    for seed in range(times(40, at_length=1000)):
        stored = history(random.Random(seed), 30, PYTHON, COMPILED, in_turns(random.Random(seed)))
        totals = [total + more for total, more in zip(totals, stored, strict=True)]
    python, compiled, _ = totals
    assert compiled <= 1.02 * python


MUCH = 2_000_000


@cache
def _noise(seed: int) -> bytes:
    return random.Random(seed).randbytes(MUCH)


def _few_letters(seed: int, weights: list[int]) -> bytes:
    return bytes(random.Random(seed).choices(b"ab", weights, k=MUCH))


@pytest.mark.parametrize(
    ("data", "source"),
    [
        pytest.param(lambda: bytes(MUCH), lambda: bytes(MUCH // 2), id="zeros"),
        pytest.param(lambda: (b"abcdefg" * MUCH)[:MUCH], lambda: (b"abcdefg" * MUCH)[3 : MUCH - 1], id="one period"),
        pytest.param(lambda: (b"abcdefg" * MUCH)[:MUCH], lambda: (b"abcdefgh" * MUCH)[: MUCH - 1], id="two periods"),
        pytest.param(lambda: _noise(1), lambda: _noise(2)[1:], id="noise"),
        pytest.param(lambda: _noise(1), lambda: _noise(1)[::-1][1:], id="reversed"),
        pytest.param(lambda: _noise(1)[MUCH // 2 :] + _noise(1)[: MUCH // 2], lambda: _noise(1)[1:], id="turned"),
        pytest.param(lambda: _few_letters(1, [1, 1]), lambda: _few_letters(2, [1, 1])[1:], id="two letters"),
        pytest.param(lambda: _few_letters(1, [30, 1]), lambda: _few_letters(2, [30, 1])[1:], id="nearly one letter"),
        pytest.param(lambda: (_noise(1)[:60] + b"-") * 9000, lambda: (_noise(1)[:60] + b"+") * 9001, id="records"),
        pytest.param(
            lambda: b"".join(_noise(1)[at : at + 100] for at in random.Random(3).sample(range(0, MUCH, 100), 9000)),
            lambda: _noise(1),
            id="shuffled",
        ),
    ],
)
def test_no_bytes_make_the_search_long(data: Callable[[], bytes], source: Callable[[], bytes]) -> None:
    """A search of two million squared steps does not end within a test."""
    before, value = source(), data()
    segments = COMPILED.deduplicate(before, []).fresh
    found = COMPILED.deduplicate(value, [Source(before, COMPILED.deduplicate(before, []).packed)])
    assert COMPILED.join(COMPILED.layout(found.packed), segments | found.fresh) == value


@BOTH
def test_a_source_whose_manifest_is_of_other_bytes_is_refused(of: Rope) -> None:
    data = random.Random(3).randbytes(500)
    packed = of.deduplicate(data, []).packed
    with pytest.raises(ValueError, match="a source of 300 bytes has a manifest of 500"):
        of.deduplicate(data[:290] + bytes(200), [Source(data[:300], packed)])


@BOTH
def test_what_the_function_that_names_segments_raises_is_raised(of: Rope) -> None:
    def key(segment: bytes) -> bytes:
        raise RuntimeError(f"no name for {len(segment)} bytes")

    with pytest.raises(RuntimeError, match="no name for 100 bytes"):
        of.deduplicate(bytes(100), [], key)


def test_arguments_of_other_types_are_refused_before_they_are_read() -> None:
    with pytest.raises(TypeError):
        COMPILED.deduplicate("text", [])
    with pytest.raises(TypeError):
        COMPILED.layout(None)
    with pytest.raises(TypeError):
        COMPILED.layout(bytearray(b"\x00"))
    with pytest.raises(TypeError):
        COMPILED.keys_in(None)
    for wrong in (None, "text" * 30, bytearray(100)):
        with pytest.raises(TypeError):
            COMPILED.deduplicate(wrong, [])
        with pytest.raises(TypeError):
            COMPILED.deduplicate(bytes(100), [Source(bytes(100)), Source(wrong)])  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            COMPILED.deduplicate(bytes(100), [], lambda _, wrong=wrong: wrong)
    with pytest.raises(ValueError, match="has 3 bytes, not 12"):
        COMPILED.deduplicate(bytes(100), [], lambda _: b"abc")


def test_what_is_new_and_equals_a_segment_is_named_once() -> None:
    chance = random.Random(4)
    first, second = chance.randbytes(3000), chance.randbytes(3000)
    one = Source(first, COMPILED.deduplicate(first, []).packed)
    # `second` is stored by another writer, and not among the sources.
    both = COMPILED.deduplicate(first + second, [one])
    again = COMPILED.deduplicate(first + second, [one], lambda _: COMPILED.keys_in(one.packed)[0])
    assert len(COMPILED.keys_in(both.packed)) == 2
    assert len(COMPILED.keys_in(again.packed)) == 1


@pytest.mark.parametrize("piece", [250, 300, 5_000])
def test_a_part_of_a_much_longer_source_is_found(piece: int) -> None:
    chance = random.Random(piece)
    whole = chance.randbytes(300_000)
    starts = [chance.randrange(len(whole) - piece) for _ in range(10_000 // piece + 1)]
    data = chance.randbytes(20).join(whole[start : start + piece] for start in starts)
    stored = pack((Slice(segment_key(whole), len(whole), 0, len(whole)),))
    found = COMPILED.deduplicate(data, [Source(whole, stored)], beside=[segment_key(whole)])
    assert sum(map(len, found.fresh.values())) <= 20 * len(starts) + len(data) // 10
