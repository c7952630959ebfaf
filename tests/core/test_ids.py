"""Ids that only grow, ranks that keep a child behind its parent, and UUIDs as bytes."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import uuid6

from threadmark.ids import new_id, packed_uuid, rank_after, uuid_text
from threadmark_conformance.engine import early_id

_UUID = "018f2c3e-7b5a-7c11-9d3f-2a6b4c8d0e1f"
IDS = st.one_of(st.integers(0, 1 << 20).map(early_id), st.text(max_size=5), st.text("ab\x02.01f", max_size=8))


def test_ids_grow() -> None:
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_ids_grow_though_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [new_id() for _ in range(10)]
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3_600_000_000_000)
    after = [new_id() for _ in range(10)]
    monkeypatch.undo()
    made = [*before, *after, new_id()]
    assert made == sorted(set(made))


def test_ids_from_many_threads_are_different_and_grow_in_each() -> None:
    with ThreadPoolExecutor(16) as pool:
        batches = list(pool.map(lambda _: [new_id() for _ in range(2000)], range(16)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({each for batch in batches for each in batch}) == 16 * 2000


def test_an_id_is_a_uuid_of_version_6() -> None:
    made = uuid.UUID(new_id())
    assert (made.version, made.variant) == (6, uuid.RFC_4122)
    assert str(made) == str(made).lower()


def test_langgraphs_ids_sort_among_ours() -> None:
    made = []
    for number in range(20):
        made.append(new_id() if number % 2 else str(uuid6(clock_seq=number)))
        time.sleep(0.001)
    assert made == sorted(made)


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


@given(st.uuids())
def test_a_uuid_is_sixteen_bytes_and_its_text_again(number: uuid.UUID) -> None:
    assert packed_uuid(str(number)) == number.bytes
    assert uuid_text(number.bytes) == str(number)


@pytest.mark.parametrize(
    "text",
    [
        _UUID.upper(),
        _UUID.replace("-", ""),
        f"{{{_UUID}}}",
        _UUID[:8] + "-" + _UUID[9:13] + " " + _UUID[14:],
        _UUID[:8] + "-" + " " * 27,
        _UUID[:8] + "-" * 28,
        _UUID[:8] + "-" + "0" * 27,
        _UUID[:35] + "x",
        _UUID[:35] + "\u0661",
        "sixteen letters.",
    ],
)
def test_what_is_no_uuid_as_it_is_usually_written_is_not_packed(text: str) -> None:
    assert packed_uuid(text) is None
