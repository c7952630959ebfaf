"""Ids that only grow, and UUIDs as bytes."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import uuid6

from threadmark.ids import new_id, packed_uuid, uuid_text

_UUID = "018f2c3e-7b5a-7c11-9d3f-2a6b4c8d0e1f"


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
