"""A thread that is deleted on a side which lacks some of it, because the other one is away: it stays deleted."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest

from postgres import cluster
from replication.apart import KINDS, THREAD, Sides, open_saver, open_sides
from replication.look import unequal
from threadmark import Sessions
from threadmark.program import Program
from threadmark.types import SessionCheckpoint, SessionMetadata
from threadmark_postgres import PostgresSaver

_MOMENT = 0.3


@pytest.fixture(params=KINDS, ids="-".join)
def sides(request: Any, tmp_path: Path) -> Iterator[Sides]:
    with ExitStack() as closing:
        sides = Sides(open_sides(request.param, tmp_path, closing))
        sides.pair.setup()
        yield sides


def test_where_the_deletion_failed_on_the_side_that_had_it(sides: Sides) -> None:
    """The other side, which never had the thread, is the one that says that it is deleted."""
    sides.put("1")
    sides.ways[0].fails = "at the commit"
    assert sides.pair.delete_thread(THREAD)
    assert sides.found() == [["1"], []]
    sides.meet()
    assert sides.found() == [[], []]


def test_where_all_sessions_are_cleared_on_the_side_that_lacks_them(sides: Sides) -> None:
    sessions = Sessions(sides.pair)
    sessions.save(SessionCheckpoint(SessionMetadata(session_id="session"), {"n": 1}))
    sides.ways[0].fails = "at the commit"
    assert sessions.clear_all() == 1
    sides.meet()
    assert [look.summaries() for look in sides.looks] == [{}, {}]


def test_where_it_says_that_there_is_none(sides: Sides) -> None:
    sides.put("1")
    sides.ways[0].way = "closed"
    assert not sides.pair.delete_thread(THREAD)
    sides.meet()
    assert sides.found() == [[], []]


def test_what_is_begun_after_it_stays(sides: Sides) -> None:
    sides.put("1")
    sides.ways[0].fails = "at the commit"
    assert sides.pair.delete_thread(THREAD)
    sides.put("2")
    sides.meet()
    assert sides.found() == [["2"], ["2"]]


def test_what_comes_late_to_the_side_that_lost_the_writes_does_not_begin_it_anew(sides: Sides) -> None:
    """It is refused from when that side has learned of the deletion."""
    sides.ways[0].fails = "late"
    sides.put("1")
    assert sides.pair.delete_thread(THREAD)
    sides.ways[0].way = "open"
    assert sides.pair.drain() == 0
    sides.ways[0].come_late()
    sides.meet()
    assert sides.found() == [[], []]


def test_where_it_begins_just_when_it_is_deleted(tmp_path: Path) -> None:
    """Another process does both between two statements: it waits, and its put is not removed unnoticed."""
    with ExitStack() as closing:
        url = cluster.shared().database(f"apart_{os.getpid()}_begun")
        one, same = (closing.enter_context(PostgresSaver(url)) for _ in range(2))
        other = closing.enter_context(open_saver("sqlite", tmp_path))
        sides, others = Sides([one, other]), Sides([same, other])
        sides.pair.setup()
        putting = Thread(target=others.put_and_copy)
        drop = one._store.drop

        def drop_before_the_put(thread_id: str, now: int) -> Program[int | None]:
            found = yield from drop(thread_id, now)
            putting.start()
            putting.join(_MOMENT)
            return found

        with patch.object(one._store, "drop", drop_before_the_put):
            assert not sides.pair.delete_thread(THREAD)
        putting.join()
        assert sides.pair.drain() == 0
        assert unequal(*sides.looks) == []
