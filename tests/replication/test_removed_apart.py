"""A checkpoint that is removed on one side, while the other one cannot be reached: it stays away when both meet."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from replication.actor import config_of, text_of
from replication.apart import FIRST, KINDS, LONG, THREAD, Meeting, Sides, open_sides


@pytest.fixture(params=KINDS, ids="-".join)
def kinds(request: Any) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


@pytest.fixture(params=["blocking", "asyncio"])
def api(request: Any) -> str:
    found: str = request.param
    return found


@pytest.fixture(params=["reconcile", "thread"])
def meeting(request: Any, kinds: tuple[str, str], api: str, tmp_path: Path) -> Iterator[Meeting]:
    """The two meet by a `reconcile`, which begins with the active side, or by the pair's own thread, which does not."""
    with ExitStack() as closing:
        sides = Sides(open_sides(kinds, tmp_path, closing))
        sides.pair.setup()
        yield Meeting(sides, api, request.param)


def test_one_that_was_not_copied_and_was_found_just_before_the_old_side_was_lost(meeting: Meeting) -> None:
    meeting.both_have(FIRST)
    meeting.sides.put("2", FIRST)
    meeting.sides.ways[0].fails = "at the commit"
    assert meeting.delete("2") is True
    assert meeting.sides.found() == [[FIRST, "2"], [FIRST]]
    assert meeting.found_when_they_meet() == [[FIRST]] * 2
    assert meeting.kinds_of_problems() == []


def test_one_that_was_not_copied_and_is_not_found(meeting: Meeting) -> None:
    meeting.both_have(FIRST)
    meeting.sides.put("2", FIRST)
    meeting.sides.lose_active()
    assert meeting.delete("2") is False
    meeting.sides.put("3", FIRST)
    assert meeting.found_when_they_meet() == [[FIRST, "3"]] * 2


def test_one_that_both_had_though_the_old_side_has_more(meeting: Meeting) -> None:
    meeting.both_have(FIRST, "2")
    meeting.sides.put("3", "2")
    meeting.sides.lose_active()
    assert meeting.delete(FIRST) is True
    assert meeting.found_when_they_meet() == [["2", "3"]] * 2


def test_one_that_was_removed_on_the_old_side_just_before_that_was_lost(meeting: Meeting) -> None:
    """Now the other side has the uncopied rows."""
    meeting.both_have(FIRST, "2")
    assert meeting.delete(FIRST) is True
    meeting.sides.lose_active()
    meeting.sides.put("3", "2")
    assert meeting.sides.found() == [["2"], [FIRST, "2", "3"]]
    assert meeting.found_when_they_meet() == [["2", "3"]] * 2


@pytest.mark.parametrize("others", [[], ["3"]])
def test_a_thread_of_which_the_new_side_has_nothing(others: list[str], meeting: Meeting) -> None:
    for each in ("2", *others):
        meeting.sides.put(each)
    meeting.sides.lose_active()
    assert meeting.delete("2") is False
    assert meeting.found_when_they_meet() == [others] * 2
    assert [THREAD in look.summaries() for look in meeting.sides.looks] == [bool(others)] * 2


def test_one_that_another_one_follows_comes_back_with_it(meeting: Meeting) -> None:
    """The new side cannot know whether that is read from it."""
    meeting.both_have(FIRST)
    for each, parent in (("2", FIRST), ("3", "2"), ("4", "3"), ("5", "")):
        meeting.sides.put(each, parent)
    meeting.sides.lose_active()
    assert [meeting.delete(each) for each in ("2", "3", "5")] == [False] * 3
    assert meeting.found_when_they_meet() == [[FIRST, "2", "3", "4"]] * 2
    assert [meeting.delete(each) for each in ("2", "3")] == [True] * 2
    assert meeting.found_when_they_meet() == [[FIRST, "4"]] * 2


def test_those_that_follow_it_go_when_they_are_deleted_as_well(meeting: Meeting) -> None:
    meeting.both_have(FIRST)
    meeting.sides.put("2", FIRST)
    meeting.sides.put("3", "2")
    meeting.sides.lose_active()
    assert [meeting.delete(each) for each in ("2", "3")] == [False] * 2
    assert meeting.found_when_they_meet() == [[FIRST]] * 2


def test_one_that_is_put_again_after_it_stays_with_what_was_put_then(meeting: Meeting) -> None:
    meeting.both_have(FIRST)
    meeting.sides.put("2", FIRST)
    written = config_of(THREAD, "", "2")
    meeting.call("put_writes", written, [("written 5", text_of(5))], "of the old side")
    meeting.sides.lose_active()
    assert meeting.delete("2") is False
    meeting.sides.put("2", FIRST, seed=7)
    meeting.call("put_writes", written, [("written 6", text_of(6))], "of the new side")
    assert meeting.found_when_they_meet() == [[FIRST, "2"]] * 2
    for look in meeting.sides.looks:
        seen, _ = look.thread(THREAD)
        assert seen.seeds["", "2"] == (7,)
        assert seen.tasks == {"of the new side"}


def test_what_was_written_for_it_apart_goes_with_it(meeting: Meeting) -> None:
    meeting.both_have(FIRST, "2")
    meeting.call("put_writes", config_of(THREAD, "", "2"), [("written 5", text_of(5))], "of the old side")
    meeting.sides.lose_active()
    assert meeting.delete("2") is True
    assert meeting.found_when_they_meet() == [[FIRST]] * 2
    assert [look.thread(THREAD)[0].tasks for look in meeting.sides.looks] == [frozenset()] * 2


def test_what_only_the_other_side_has_stays_whole(meeting: Meeting) -> None:
    """Though the side that removed something has writes for it, which came when it was not there."""
    meeting.both_have(FIRST, "2")
    meeting.sides.put("3", "2", seed=LONG)
    meeting.sides.lose_active()
    assert meeting.delete(FIRST) is True
    meeting.call("put_writes", config_of(THREAD, "", "3"), [("written 5", text_of(5))], "of the new side")
    assert meeting.found_when_they_meet() == [["2", "3"]] * 2
    for look in meeting.sides.looks:
        seen, wrong = look.thread(THREAD)
        assert (seen.seeds["", "3"], wrong) == ((LONG,), [])


def test_one_that_is_deleted_while_the_writes_move_there_and_back(meeting: Meeting) -> None:
    """The old side takes the writes again before it has heard of the deletion."""
    meeting.both_have(FIRST)
    meeting.sides.put("2", FIRST)
    meeting.sides.lose_active()
    assert meeting.delete("2") is False
    meeting.sides.ways[0].way = "open"
    meeting.sides.look_at_both()
    meeting.sides.ways[1].way = "closed"
    meeting.sides.put("3", FIRST)
    assert meeting.sides.found() == [[FIRST, "2", "3"], [FIRST]]
    assert meeting.found_when_they_meet() == [[FIRST, "3"]] * 2
