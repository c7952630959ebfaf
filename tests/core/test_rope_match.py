"""Matches between byte strings: true, in order, complete where it matters, and bounded in their cost."""

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from threadmark.format.rope.match import Budget, Gap, Match, abreast, matches

AMPLE = 1 << 30


def found(data: bytes, source: bytes, budget: Budget | None = None) -> list[Match]:
    return matches(data, Gap(0, len(data)), source, budget or Budget(AMPLE))


def shared(data: bytes, source: bytes) -> int:
    return sum(match.length for match in found(data, source))


texts = st.lists(st.sampled_from([b"a", b"ab", b"template " * 6, bytes(50), bytes(range(200))]), max_size=40).map(
    b"".join
)


@settings(deadline=None)
@given(texts, texts, st.integers(0, 500), st.integers(0, 500))
@example(b"a" * 200, b"a" * 100, 0, 0)
@example(b"ab" * 100, b"ba" * 100, 0, 0)
def test_matches_are_equal_bytes_in_ascending_order_inside_the_gap(
    data: bytes, source: bytes, one: int, other: int
) -> None:
    begin, end = sorted((min(one, len(data)), min(other, len(data))))
    at, start = begin, 0
    for match in matches(data, Gap(begin, end), source, Budget(AMPLE)):
        assert match.length > 0
        assert match.at >= at
        assert match.start >= start
        at, start = match.at + match.length, match.start + match.length
        assert data[match.at : at] == source[match.start : start]
    assert at <= end
    assert start <= len(source)


@settings(deadline=None)
@given(st.integers(1, 300_000), st.integers(0, 2), st.integers(0, 2**32))
def test_the_first_difference_is_found_to_the_byte(length: int, position: int, seed: int) -> None:
    source = random.Random(seed).randbytes(length)
    at = (0, length // 2, length - 1)[position]
    data = source[:at] + bytes([source[at] ^ 1]) + source[at + 1 :]
    covered = {edge for match in found(data, source) for edge in (match.at, match.at + match.length)}
    long_enough = {edge for edge, room in ((at, at), (at + 1, length - at - 1)) if room >= 32}
    assert long_enough <= covered


def test_thirty_edits_of_any_kind_leave_the_rest_shared() -> None:
    chance = random.Random(30)
    source = chance.randbytes(300_000)
    pieces = []
    for number in range(30):
        piece = source[number * 10_000 : (number + 1) * 10_000]
        at = chance.randrange(1000, 9000)
        removed = chance.choice([0, 20, 400])
        pieces.append(piece[:at] + chance.randbytes(chance.choice([0, 20, 400])) + piece[at + removed :])
    assert shared(b"".join(pieces), source) >= len(source) - 30 * 400


def test_records_of_one_shape_are_matched_with_themselves_after_the_oldest_were_trimmed() -> None:
    chance = random.Random(1)
    shape = b'{"type": "human", "content": "%060d", "extra": {"tokens": null, "model": "the same in all"}}'
    records = [shape % chance.getrandbits(190) for _ in range(900)]
    source, data = b"[" + b", ".join(records[:800]) + b"]", b"[" + b", ".join(records[100:])
    assert shared(data, source) >= sum(map(len, records[100:800]))
    assert len(found(data, source)) <= 3


def test_large_blocks_that_came_and_went_are_passed_over() -> None:
    chance = random.Random(5)
    first, second, third, gone, come = (chance.randbytes(60_000) for _ in range(5))
    source, data = first + second + gone + third + b"old end", first + come + second + third + b"another"
    assert shared(data, source) >= 3 * 60_000


def test_a_block_is_found_in_the_middle_of_a_longer_source() -> None:
    chance = random.Random(2)
    block = chance.randbytes(20_000)
    source = chance.randbytes(30_000) + block + chance.randbytes(30_000)
    assert shared(chance.randbytes(40) + block + chance.randbytes(40), source) == len(block)


def test_an_edited_part_of_a_much_longer_source_is_found_wherever_it_stands() -> None:
    source = random.Random(5).randbytes(400_000)
    for location in (0, 100_000, 390_000):
        part = source[location : location + 10_000]
        for edit in (100, 5000, 9900):
            assert shared(part[:edit] + b"new" + part[edit + 7 :], source) > 9_850


def test_a_search_ends_when_its_budget_is_spent() -> None:
    chance = random.Random(3)
    source, data = chance.randbytes(500_000), chance.randbytes(500_000)
    budget = Budget(100_000)
    assert found(data, source, budget) == []
    assert not budget
    # The last anchors of a budget may look at the whole value, and no further ones are taken.
    assert budget._scan > -500_001


def test_bytes_that_match_everywhere_cost_no_more_distances_than_the_budget_has() -> None:
    chance = random.Random(4)
    noise = bytearray(b"0123456789abcdef" * 40_000)
    other = bytearray(noise)
    for bytes_ in (noise, other):
        for _ in range(20_000):
            bytes_[chance.randrange(len(bytes_))] = chance.randrange(256)
    budget = Budget(AMPLE)
    assert len(found(bytes(noise), bytes(other), budget)) <= 3001
    assert budget._distances >= 0


@settings(deadline=None)
@given(st.integers(0, 20_000), st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 40)), max_size=6))
def test_strings_of_one_length_share_all_but_the_bytes_that_differ(length: int, edits: list[tuple[int, int]]) -> None:
    source = random.Random(length).randbytes(length)
    changed = bytearray(source)
    for at, size in edits:
        changed[at : at + size] = bytes(byte ^ 1 for byte in changed[at : at + size])
    data = bytes(changed)
    end = 0
    for match in abreast(data, source):
        assert match.at == match.start >= end
        end = match.at + match.length
        assert data[match.at : end] == source[match.at : end]
    differing = sum(mine != other for mine, other in zip(data, source, strict=True))
    crumbs = 15 * (2 * len(edits) + 1)  # the bytes too short for a match, between two edits or around them
    assert sum(match.length for match in abreast(data, source)) >= length - differing - crumbs
