"""Ranks keep a child behind its parent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.store.contract import rank_after
from threadmark_conformance.engine import early_id

IDS = st.one_of(st.integers(0, 1 << 20).map(early_id), st.text(max_size=5), st.text("ab\x02.01f", max_size=8))


@given(st.lists(IDS, min_size=1, max_size=12))
def test_a_rank_is_greater_than_its_parents(ids: list[str]) -> None:
    rank: str | None = None
    for each in ids:
        after = rank_after(rank, each)
        assert rank is None or after > rank
        rank = after


@given(IDS, st.lists(IDS, min_size=2, max_size=6, unique=True))
def test_siblings_have_different_ranks(parent: str, ids: list[str]) -> None:
    ranks = {rank_after(parent, each) for each in ids if each != parent}
    assert len(ranks) == len([each for each in ids if each != parent])


@pytest.mark.parametrize("parent", ["x\x0200000007.y", "x\x02ffffffff.y", "\x02", "x\x02zzzzzzzz.", "x\x0200000001"])
def test_an_id_that_looks_like_a_rank_is_a_parent_like_any_other(parent: str) -> None:
    first = rank_after(parent, "a")
    assert parent < first < rank_after(first, "0")


@given(st.lists(st.text("ab\x02f.0", max_size=24), min_size=1, max_size=30))
def test_a_rank_does_not_grow_from_generation_to_generation(ids: list[str]) -> None:
    rank: str | None = None
    for each in ids:
        rank = rank_after(rank, each)
        assert len(rank) <= 2 * 24 + 10


def test_a_rank_of_the_last_count_grows_once() -> None:
    rank = rank_after("x\x02ffffffff.y", "a")
    for _ in range(5):
        rank = rank_after(rank, "a\x02ffffffff.")
    assert rank == "x\x02ffffffff.y\x0200000006.a\x02ffffffff."


def test_a_rank_is_the_id_unless_the_clock_stepped_back() -> None:
    assert rank_after(None, early_id(5)) == early_id(5)
    assert rank_after(early_id(4), early_id(5)) == early_id(5)
    stepped_back = rank_after(early_id(9), early_id(5))
    assert early_id(9) < stepped_back < early_id(10)
    assert early_id(9) < stepped_back < rank_after(stepped_back, early_id(2)) < early_id(10)
    assert rank_after(stepped_back, early_id(10)) == early_id(10)
