"""A deletion that was begun on one side and done again on the other one, because the writes had moved between."""

from collections.abc import Iterator

import pytest

from replication.actor import Newest, put_arguments
from replication.look import Look, unequal
from threadmark import MemorySaver, Saver
from threadmark.replication import ReplicatedSaver, replicated
from threadmark.replication.entries import Touched

THREAD = "thread"


@pytest.fixture
def sides() -> Iterator[list[Look]]:
    with MemorySaver() as one, MemorySaver() as other:
        yield [Look("one", one), Look("other", other)]


def _opened(sides: list[Look]) -> ReplicatedSaver:
    one, other = (Saver(look.saver._store, look.saver._driver) for look in sides)
    return replicated(one, other, mode="sync", health_interval=60.0)


def test_what_is_begun_after_it_stays(sides: list[Look]) -> None:
    pair = _opened(sides)
    pair.put(*put_arguments(THREAD, "", Newest("1", (1,)), ""))
    pair.promote("secondary")
    # The state of the old side when the new one refused the copy of it.
    old = sides[0]
    old.saver.delete_thread(THREAD)
    old._run(lambda: old._store.record(THREAD, Touched(dropped=True).to_bytes(), 99), writes=True)
    pair.delete_thread(THREAD)
    assert old.waiting().entries == 0
    pair.put(*put_arguments(THREAD, "", Newest("2", (2,)), ""))
    assert [item.checkpoint["id"] for item in pair.list({"configurable": {"thread_id": THREAD}})] == ["2"]
    assert unequal(*sides) == []
    pair.close()
