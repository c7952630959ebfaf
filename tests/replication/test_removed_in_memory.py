"""The fate of a checkpoint that is removed on one side of a pair in memory, in less common cases."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from replication.actor import Newest, config_of, put_arguments
from replication.apart import FIRST, KINDS, LONG, THREAD, Meeting, Sides, open_sides
from replication.histories import history, of_thread, put
from replication.sides import assert_equal, copied_both_ways, pair_in_memory, side
from replication.test_orders import in_parts
from threadmark import Conversations, Keyring, ReplicationError
from threadmark.replication import snapshots
from threadmark_conformance.engine import at


@pytest.fixture(params=["reconcile", "thread"])
def in_memory(request: Any, tmp_path: Path) -> Iterator[Meeting]:
    with ExitStack() as closing:
        sides = Sides(open_sides(KINDS[0], tmp_path, closing))
        sides.pair.setup()
        yield Meeting(sides, "blocking", request.param)


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_sealed_needs_no_key(order: int) -> None:
    keyring = Keyring({"k": bytes(32)}, "k", digest_secret=bytes(32))
    one, other = pair_in_memory(keyring=keyring)
    history(one, THREAD, 2)
    here, there = (side(one), side(other, "secondary"))[::order]
    copied_both_ways(here, there)
    for parent, number in (("0002", 3), ("0003", 4), ("0002", 5)):
        put(one, THREAD, number, parent)
    for number in (1, 3, 5):
        assert other.delete_checkpoint(at(THREAD, "", f"{number:04}")) is (number == 1)
    copied_both_ways(here, there)
    assert_equal(one, other)
    assert [each.config["configurable"]["checkpoint_id"] for each in of_thread(one, THREAD)] == ["0004", "0003", "0002"]


def test_the_next_removal_gives_back_the_bytes_that_only_it_needed(in_memory: Meeting) -> None:
    """If the other side has more rows itself, it is unknown which are needed."""
    in_memory.sides.put(FIRST, seed=LONG)
    in_memory.both_have("2")
    in_memory.sides.put("3")
    in_memory.sides.lose_active()
    assert in_memory.delete(FIRST) is True
    assert in_memory.found_when_they_meet() == [["2", "3"]] * 2
    assert in_memory.kinds_of_problems() == ["orphan"] * 2
    in_memory.call("prune", [THREAD])
    assert in_memory.found_when_they_meet() == [["3"]] * 2
    assert in_memory.kinds_of_problems() == []


def test_one_that_both_deleted_and_one_put_again_stays(in_memory: Meeting) -> None:
    in_memory.both_have(FIRST, "2")
    assert in_memory.delete("2") is True
    in_memory.sides.lose_active()
    assert in_memory.delete("2") is True
    in_memory.sides.put("2", FIRST, seed=7)
    assert in_memory.found_when_they_meet() == [[FIRST, "2"]] * 2


def test_the_deletion_of_its_thread_still_takes_everything(in_memory: Meeting) -> None:
    in_memory.both_have(FIRST)
    in_memory.sides.put("2", FIRST)
    in_memory.sides.lose_active()
    in_memory.delete("2")
    assert in_memory.call("delete_thread", THREAD) is True
    in_memory.delete("3")
    assert in_memory.found_when_they_meet() == [[]] * 2


REMOVALS: dict[str, Callable[[Meeting], Any]] = {
    "delete_for_runs": lambda meeting: meeting.call("delete_for_runs", ["run 1"]),
    "prune": lambda meeting: meeting.call("prune", [THREAD]),
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_what_any_removal_takes_stays_away(removal: str, in_memory: Meeting) -> None:
    """Though the old side has changed the thread as well."""
    for number, parent in ((1, ""), (2, "1")):
        config, made, metadata, versions = put_arguments(THREAD, "", Newest(str(number), (number,)), parent)
        in_memory.call("put", config, made, metadata | {"run_id": f"run {number}"}, versions)
    in_memory.sides.pair.drain()
    in_memory.sides.put("3", "2")
    in_memory.sides.lose_active()
    assert REMOVALS[removal](in_memory).checkpoints == 1
    assert in_memory.found_when_they_meet() == [["2", "3"]] * 2


def test_a_message_that_was_deleted_stays_away(in_memory: Meeting) -> None:
    talk, where = Conversations(in_memory.sides.pair), {"thread_id": THREAD}
    talk.put_messages(where, [{"id": "a", "content": "first"}])
    in_memory.sides.pair.drain()
    talk.put_messages(where, [{"id": "b", "content": "not copied"}, {"id": "c", "content": "not copied"}])
    in_memory.sides.lose_active()
    assert [talk.delete_message(where, each) for each in ("a", "b")] == [True, False]
    in_memory.sides.copy()
    in_memory.sides.meet()
    for look in in_memory.sides.looks:
        assert [each["id"] for each in Conversations(look.saver).get_messages(where)] == ["c"]


def test_one_whose_deletion_comes_after_many_changes(in_memory: Meeting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first of them are copied at once."""
    monkeypatch.setattr(snapshots, "MOST_ENTRIES", 2)
    in_memory.both_have(FIRST)
    in_memory.sides.put("2", FIRST)
    in_memory.sides.lose_active()
    for each in ("3", "4", "5", "6"):
        in_memory.sides.put(each, FIRST)
    assert in_memory.delete("2") is False
    in_memory.sides.put("7", FIRST)
    in_memory.sides.copy()
    assert in_memory.found_when_they_meet() == [[FIRST, *"34567"]] * 2


@pytest.mark.parametrize("first", ["1", "2"])
def test_a_large_thread_is_copied_without_it(first: str, in_memory: Meeting, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts, each of which looks at the rows that are there by then."""
    in_parts(monkeypatch)
    in_memory.both_have(*([FIRST] if first == "2" else []))
    for number in range(int(first), 10):
        in_memory.sides.put(str(number), str(number - 1) if number > 1 else "")
    in_memory.sides.lose_active()
    assert [in_memory.delete(each) for each in ("4", "9")] == [False] * 2
    assert in_memory.found_when_they_meet() == [[*"12345678"]] * 2


def test_in_sync_mode_it_fails_until_both_know_and_is_then_known_to_both(tmp_path: Path) -> None:
    with ExitStack() as closing:
        sides = Sides(open_sides(KINDS[0], tmp_path, closing), "sync")
        sides.pair.setup()
        sides.put(FIRST)
        sides.ways[1].way = "closed"
        for each, parent in (("2", FIRST), ("3", FIRST)):
            with pytest.raises(ReplicationError):
                sides.put(each, parent)
        sides.ways[1].way = "open"
        sides.look_at_both()
        sides.ways[0].way = "closed"
        with pytest.raises(ReplicationError, match="has what was written to 'thread'"):
            sides.pair.delete_checkpoint(config_of(THREAD, "", "2"))
        sides.ways[0].way = "open"
        sides.copy()
        assert sides.pair.delete_checkpoint(config_of(THREAD, "", "2")) is False
        assert sides.found() == [[FIRST, "3"]] * 2


def test_in_sync_mode_one_that_is_not_there_any_more_is_gone_from_both(tmp_path: Path) -> None:
    """The first call removed it from one side only, and failed."""
    with ExitStack() as closing:
        sides = Sides(open_sides(KINDS[0], tmp_path, closing), "sync")
        sides.pair.setup()
        for each in (FIRST, "2"):
            sides.put(each)
        sides.ways[1].fails = "at the commit"
        with pytest.raises(ReplicationError, match="has what was written to 'thread'"):
            sides.pair.delete_checkpoint(config_of(THREAD, "", FIRST))
        sides.ways[1].way = "open"
        sides.look_at_both()
        assert sides.pair.delete_checkpoint(config_of(THREAD, "", FIRST)) is False
        assert sides.found() == [["2"]] * 2
