"""The checker of chaos rounds finds nothing in sound databases, and objects to each fault."""

import math
import random

import pytest

from replication.actor import Actor, Newest, config_of, put_arguments, take_step
from replication.checker import Expectations, Failover, Failovers, Found, Mode, altered, blamed, missing, returned
from replication.journal import Call, Journal, calls_of
from replication.look import Look, unequal
from threadmark import MemorySaver, TransientStoreError
from threadmark.store.contract import Key

STEPS = 120


class Played:
    """One worker's journal, and a saver that has done all of it."""

    def __init__(self, seed: int) -> None:
        self.saver = MemorySaver()
        self.look = Look("one", self.saver)
        self.lines: list[str] = []
        actor = Actor(str(seed), Journal("worker", self.lines.append), ("shared",))
        for _ in range(STEPS):
            take_step(actor, self.saver)

    @property
    def expectations(self) -> Expectations:
        return Expectations(calls_of(self.lines), "sync")

    def objections(self) -> list[str]:
        """The objections of all rules."""
        expectations = self.expectations
        seen = {thread_id: self.look.thread(thread_id) for thread_id in expectations.threads()}
        found = Found("one", {thread_id: thread for thread_id, (thread, _) in seen.items()})
        orphans = [
            f"{key} is there without its parent"
            for thread_id in seen
            for key, parent in self.look.orphans(thread_id)
            if not expectations.may_lack_parent((thread_id, *key, ""), parent)
        ]
        rules = missing(found, expectations) + returned(found, expectations) + altered(found, expectations)
        wrong = [each for _, some in seen.values() for each in some]
        return rules + wrong + orphans + self.look.problems() + blamed(expectations.calls, calm=True)

    def some(self, *, with_parent: bool = False) -> tuple[str, Key, Call]:
        """A checkpoint that must be there."""
        required = self.expectations.with_fate("required").items()
        chosen = [
            (thread, (ns, checkpoint), each.call)
            for (thread, ns, checkpoint, task), each in required
            if not task and (each.call.parent or not with_parent)
        ]
        return random.Random(1).choice(chosen)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_wrong_where_a_saver_has_done_everything(seed: int) -> None:
    played = Played(seed)
    assert played.objections() == []
    assert {call.did for call in played.expectations.calls} == {
        "put",
        "put_writes",
        "get",
        "delete",
        "delete_checkpoint",
        "prune",
        "mistake",
    }
    assert played.expectations.with_fate("gone")
    assert unequal(played.look, played.look) == []


def test_a_checkpoint_that_was_acknowledged_and_is_not_there_is_missed() -> None:
    played = Played(0)
    thread, (ns, checkpoint), _ = played.some()
    played.saver.delete_thread(thread)
    assert any(
        f"{thread}: checkpoint {checkpoint} of {ns!r}: it was acknowledged" in each for each in played.objections()
    )


def test_what_nobody_was_told_may_be_missing() -> None:
    played = Played(0)
    thread, _, call = played.some()
    played.saver.delete_thread(thread)
    played.lines = [line for line in played.lines if call.thread not in line and '"end"' not in line]
    assert played.objections() == []


def test_what_was_deleted_must_not_return() -> None:
    played = Played(0)
    (thread, ns, checkpoint, _), expected = next(
        each for each in played.expectations.with_fate("gone").items() if not each[0][3]
    )
    played.saver.put(*put_arguments(thread, ns, Newest(checkpoint, expected.call.seeds), ""))
    assert any(f"one still has {thread}: checkpoint {checkpoint}" in each for each in played.objections())


def test_other_values_than_were_put_are_noticed() -> None:
    played = Played(0)
    thread, (ns, checkpoint), call = played.some()
    other = Newest(checkpoint, (*call.seeds, 1))
    played.saver.put(*put_arguments(thread, ns, other, call.parent))
    assert any(f"nobody put {checkpoint} with these values" in each for each in played.objections())
    played.saver.put(*put_arguments(thread, ns, other, call.parent, {"messages": []}))
    assert any("has other values than were put" in each for each in played.objections())


def test_a_checkpoint_without_its_parent_is_noticed_unless_a_failover_was_between() -> None:
    played = Played(0)
    thread, key, call = played.some(with_parent=True)
    lacking = (thread, *key, "")
    assert not played.expectations.may_lack_parent(lacking, call.parent)
    moved = Failover(call.began, call.ended)
    assert Expectations(calls_of(played.lines), "async", [moved]).may_lack_parent(lacking, call.parent)
    config = config_of("another", "", "never put")
    played.saver.put(config, *put_arguments("another", "", Newest("child", ()), "")[1:])
    assert [parent for _, parent in played.look.orphans("another")] == ["never put"]


def test_a_pruning_that_missed_its_deadline_may_be_carried_out_later() -> None:
    put = Played(0).expectations.calls[0]._replace(did="put", thread="t", ns="", checkpoint="1", told="acknowledged")
    pruned = put._replace(did="prune", checkpoint="", began=put.ended + 1, ended=put.ended + 2)
    child = put._replace(checkpoint="2", parent="1", began=put.ended + 3, ended=put.ended + 4)
    thing = ("t", "", "2", "")
    for told, fate in (("acknowledged", "required"), ("raised", "either")):
        expectations = Expectations([put, pruned._replace(told=told), child], "sync")  # type: ignore[arg-type]  # as in Call
        assert expectations.things[thing].fate == fate
        assert expectations.may_lack_parent(thing, "1") == (told == "raised")


def test_sides_that_differ_are_named() -> None:
    played, other = Played(0), Played(1)
    thread, _, _ = played.some()
    assert any(each.startswith(f"{thread}: one has Summary") for each in unequal(played.look, other.look))


def test_refusals_are_objected_to_where_both_sides_were_well() -> None:
    call = Played(0).expectations.calls[0]._replace(did="put", told="raised")
    refused = call._replace(answer=f"{TransientStoreError.__name__}: away")
    assert blamed([refused], calm=False) == []
    assert len(blamed([refused], calm=True)) == 1
    assert len(blamed([refused._replace(did="mistake")], calm=True)) == 1
    assert blamed([call._replace(did="mistake", answer="SerializationError: no")], calm=True) == []
    assert len(blamed([call._replace(told="broken", answer="KeyError: 1")], calm=False)) == 1


def test_what_follows_a_deletion_that_the_other_side_had_not_seen_may_be_lost_with_it() -> None:
    put = Played(0).expectations.calls[0]._replace(did="put", thread="t", ns="", checkpoint="1", told="acknowledged")
    deleted = put._replace(did="delete", checkpoint="", answer="True", began=put.ended + 1, ended=put.ended + 2)
    anew = put._replace(checkpoint="2", began=put.ended + 5, ended=put.ended + 6)
    moved = Failover(put.ended + 3, put.ended + 4)
    calls = [put, deleted, anew]
    thing = ("t", "", "2", "")
    assert Expectations(calls, "sync", [moved]).things[thing].fate == "required"
    assert Expectations(calls, "async", []).things[thing].fate == "required"
    assert Expectations(calls, "async", [moved]).things[thing].fate == "either"
    assert Expectations(calls, "async", [moved]).things["t", "", "1", ""].fate == "gone"


def test_what_was_put_before_both_sides_knew_of_the_other_deletion_may_stay() -> None:
    put = Played(0).expectations.calls[0]._replace(did="put", thread="t", ns="", checkpoint="1", told="acknowledged")
    here = put._replace(did="delete", checkpoint="", answer="True", began=put.ended + 1, ended=put.ended + 2)
    anew = put._replace(checkpoint="2", began=put.ended + 3, ended=put.ended + 4)
    there = here._replace(began=put.ended + 7, ended=put.ended + 8)
    moved = Failover(put.ended + 5, put.ended + 6)
    calls = [put, here, anew, there]
    thing = ("t", "", "2", "")
    assert Expectations(calls, "sync", [moved]).things[thing].fate == "gone"
    assert Expectations(calls, "async", []).things[thing].fate == "gone"
    assert Expectations(calls, "async", [moved]).things[thing].fate == "either"
    assert Expectations([put, anew, there], "async", [moved]).things[thing].fate == "gone"
    assert Expectations(calls, "async", [moved]).things["t", "", "1", ""].fate == "gone"


def test_a_failover_is_over_when_nobody_is_told_anything_by_the_old_side() -> None:
    modes: list[tuple[Mode, int]] = [("sync", 1), ("async", 0)]
    for mode, while_apart in modes:
        failovers = Failovers(mode, 1)
        for terms, noted, ended in (((1, 1), 0, 0), ((1, 2), 1, while_apart), ((None, 2), 1, while_apart)):
            failovers.note(terms)
            assert (len(failovers.noted), sum(each.ended < math.inf for each in failovers.noted)) == (noted, ended)
        failovers.note((3, 2))
        failovers.note((3, 3))
        assert [each.ended < math.inf for each in failovers.noted] == [True, True]
        assert all(each.began <= each.ended for each in failovers.noted)
