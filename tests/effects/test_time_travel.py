"""Each cell of the table in docs/how-to/effects.md: which calls are made again, and which return a stored result."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.checkpoint.base import id as checkpoint_ids
from langgraph.types import RetryPolicy

from effects.graphs import CrashError, Shop
from effects.places import opened
from threadmark import ConfigError
from threadmark.effects import line
from threadmark_langgraph import Checkpointer

THREAD: Any = {"configurable": {"thread_id": "order"}}


def retried(shop: Shop) -> None:
    """A crash after the call, and a resume of the same checkpoint."""
    shop.crashes = ["charge"]
    with pytest.raises(CrashError):
        shop.run(THREAD)
    shop.go_on(THREAD)


def retried_in_the_process(shop: Shop) -> None:
    """A crash after the call, and another attempt by a retry policy."""
    shop.crashes = ["charge"]
    shop.graph.nodes["charge"].retry_policy = [RetryPolicy(initial_interval=0, retry_on=CrashError)]
    shop.run(THREAD)
    assert shop.crashes == []


def crashed_later(shop: Shop) -> None:
    """A crash in the next step, and a resume."""
    shop.crashes = ["ship"]
    with pytest.raises(CrashError):
        shop.run(THREAD)
    shop.go_on(THREAD)


def replayed(shop: Shop) -> None:
    """A replay from the checkpoint before the call."""
    shop.run(THREAD)
    shop.go_on(shop.before("charge", THREAD))


def replayed_with_other_inputs(shop: Shop) -> None:
    """The same with other inputs."""
    shop.run(THREAD)
    shop.go_on(shop.graph.update_state(shop.before("charge", THREAD), {"amount": 7}))


def updated(shop: Shop) -> None:
    """An update of the state before the call, which leaves its inputs."""
    shop.run(THREAD)
    shop.go_on(shop.graph.update_state(shop.before("charge", THREAD), {"rounds": 0}))


def looped(shop: Shop) -> None:
    """A loop that comes to the call again."""
    shop.run(THREAD, rounds=2)


def run_again(shop: Shop) -> None:
    """A new turn of the thread with the same inputs."""
    shop.run(THREAD)
    shop.run(THREAD)


def given_new_input_in_the_past(shop: Shop) -> None:
    """New input with the same values, from the checkpoint before the first one."""
    shop.run(THREAD)
    first = [*shop.graph.get_state_history(THREAD)][-1].config
    shop.graph.invoke({"amount": 5, "rounds": 1}, first)


def forked_to_a_thread(shop: Shop) -> None:
    """A fork to another thread, from the checkpoint before the call."""
    shop.run(THREAD)
    shop.go_on(shop.effects._saver.fork(shop.before("charge", THREAD), as_thread="other"))


def copied_to_a_thread(shop: Shop) -> None:
    """A copy with all checkpoints, and a replay of it from the checkpoint before the call."""
    shop.run(THREAD)
    shop.effects._saver.copy_thread("order", "other")
    shop.go_on(shop.before("charge", {"configurable": {"thread_id": "other"}}))


CELLS: list[tuple[Callable[[Shop], None], dict[str, int]]] = [
    (retried, {"thread": 1, "branch": 1, "run": 1}),
    (retried_in_the_process, {"thread": 1, "branch": 1, "run": 1}),
    (crashed_later, {"thread": 1, "branch": 1, "run": 1}),
    (replayed, {"thread": 1, "branch": 2, "run": 1}),
    (replayed_with_other_inputs, {"thread": 2, "branch": 2, "run": 2}),
    (updated, {"thread": 1, "branch": 2, "run": 1}),
    (looped, {"thread": 2, "branch": 2, "run": 2}),
    (run_again, {"thread": 2, "branch": 2, "run": 2}),
    (given_new_input_in_the_past, {"thread": 1, "branch": 2, "run": 2}),
    (forked_to_a_thread, {"thread": 2, "branch": 2, "run": 2}),
    (copied_to_a_thread, {"thread": 2, "branch": 2, "run": 2}),
]
WITH_KEY: list[tuple[Callable[[Shop], None], dict[str, int]]] = [
    (retried, {"thread": 1, "branch": 1, "run": 1}),
    (replayed, {"thread": 1, "branch": 2, "run": 1}),
    (looped, {"thread": 1, "branch": 1, "run": 1}),
    (run_again, {"thread": 1, "branch": 1, "run": 2}),
    (forked_to_a_thread, {"thread": 2, "branch": 2, "run": 2}),
]


@pytest.mark.parametrize("per", ["thread", "branch", "run"])
@pytest.mark.parametrize(("happens", "calls"), CELLS)
def test_the_same_call(happens: Callable[[Shop], None], calls: dict[str, int], per: Any, tmp_path: Path) -> None:
    with opened("memory", tmp_path) as saver:
        shop = Shop(saver, per=per)
        happens(shop)
        assert len(shop.receiver.calls) == calls[per]
        assert len(set(shop.receiver.keys)) == calls[per]
        assert not saver.verify().problems


@pytest.mark.parametrize("per", ["thread", "branch", "run"])
@pytest.mark.parametrize(("happens", "calls"), WITH_KEY)
def test_the_same_key(happens: Callable[[Shop], None], calls: dict[str, int], per: Any, tmp_path: Path) -> None:
    with opened("memory", tmp_path) as saver:
        shop = Shop(saver, per=per, key="welcome")
        happens(shop)
        assert len(shop.receiver.calls) == calls[per]


def test_a_replay_of_a_loop_gets_each_result_in_its_place(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as saver:
        shop = Shop(saver)
        assert shop.run(THREAD, rounds=3) == [1, 2, 3]
        assert shop.go_on(shop.before("charge", THREAD)) == [1, 2, 3]
        assert shop.run(THREAD) == [1, 2, 3, 4]
        second = [each.config for each in shop.graph.get_state_history(THREAD) if each.next == ("charge",)][-2]
        assert shop.go_on(second) == [1, 2, 3]
        assert len(shop.effects.list(THREAD)) == 4


def test_a_long_thread_whose_past_is_pruned_goes_on(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path, keep_last=2) as saver:
        shop = Shop(saver)
        for turn in range(1, 12):
            shop.run(THREAD, rounds=1)
            assert len(shop.receiver.calls) == turn
            shop.crashes = ["ship"]
            with pytest.raises(CrashError):
                shop.run(THREAD, amount=6)
            shop.go_on(THREAD)
            shop.receiver.calls.remove(6)
        assert len(set(shop.receiver.keys)) == 22
        assert not saver.verify().problems


@pytest.mark.parametrize("kept", [2, 3, 6])
def test_the_oldest_call_that_a_prune_has_left_stays_the_same(kept: int, tmp_path: Path) -> None:
    with opened("memory", tmp_path) as saver:
        shop = Shop(saver)
        for _ in range(4):
            shop.run(THREAD)
        saver.prune(["order"], keep_last=1 + kept)
        calls = [each for each in shop.graph.get_state_history(THREAD) if each.next == ("charge",)]
        for call in calls:
            made = len(call.values["receipts"])
            assert shop.go_on(call.config) == [*range(1, made + 2)]
        shop.go_on(calls[0].config)
        assert shop.run(THREAD) == [1, 2, 3, 4, 5]
        assert len(shop.receiver.calls) == 5


def test_a_call_of_a_worker_whose_clock_is_ahead_is_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened("memory", tmp_path) as saver:
        shop = Shop(saver)
        with monkeypatch.context() as ahead:
            ahead.setattr(checkpoint_ids, "time", SimpleNamespace(time_ns=lambda: time.time_ns() + 60 * 10**9))
            shop.run(THREAD)
        monkeypatch.setattr(checkpoint_ids, "_last_v6_timestamp", None)
        assert shop.run(THREAD) == [1, 2]
        assert shop.run(THREAD, rounds=2) == [1, 2, 3, 4]


def test_effects_are_pruned_with_their_checkpoints_and_kept_with_them(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as saver:
        shop = Shop(saver)
        shop.run(THREAD)
        before = shop.before("charge", THREAD)
        saver.prune(["order"], keep_last=3)
        assert shop.go_on(before) == [1]
        saver.prune(["order"], keep_last=1)
        assert shop.effects.list("order") == []
        assert {entry.ns for entry in saver.history("order", ns=None).entries} == {""}
        assert not saver.verify().problems


class Forgetful(Checkpointer):
    """A checkpointer that loses a step, as a process that ends before the background has stored it."""

    loses: int | None = None

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if metadata["step"] != self.loses:
            return super().put(config, checkpoint, metadata, new_versions)
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if self.loses is None:
            super().put_writes(config, writes, task_id, task_path)


def test_a_ledger_stays_while_one_of_its_checkpoints_stays(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as saver:
        shop = Shop(saver)
        shop.run(THREAD, rounds=3)
        last, _, first = (each.config for each in shop.graph.get_state_history(THREAD) if each.next == ("charge",))
        assert saver.delete_checkpoint(last)
        assert shop.go_on(first) == [1, 2, 3]


def test_claims_without_a_checkpoint_that_may_ask_for_them_go(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as saver:
        shop = Shop(saver)
        for turn in range(1, 8):
            shop.run(THREAD)
            if turn == 4:
                saver.prune(["order"], keep_last=2)
        kept = [claim for claim in shop.effects.list(THREAD) if claim.name == "charge"]
        assert len(kept) < 7
        assert len(set(shop.receiver.keys)) == len(shop.receiver.calls) == 7
        assert shop.go_on(shop.before("charge", THREAD)) == [1, 2, 3, 4, 5]
        assert not saver.verify().problems


def test_a_call_at_a_checkpoint_that_was_lost_is_found_again(tmp_path: Path) -> None:
    with opened("memory", tmp_path) as saver:
        shop = Shop(saver)
        checkpointer = shop.graph.checkpointer = Forgetful(saver)
        shop.crashes, checkpointer.loses = ["charge"], 0
        with pytest.raises(CrashError):
            shop.run(THREAD)
        checkpointer.loses = None
        assert shop.go_on(THREAD) == [1]
        assert shop.run(THREAD) == [1, 2]


def test_a_branch_makes_no_call_before_its_checkpoint_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "_PAUSES", (0.01, 0.01))
    with opened("memory", tmp_path) as saver:
        shop = Shop(saver, per="branch")
        checkpointer = shop.graph.checkpointer = Forgetful(saver)
        checkpointer.loses = 0
        with pytest.raises(ConfigError, match=r"has not been stored within ten seconds.*give each effect a key="):
            shop.run(THREAD)
        assert shop.receiver.calls == []


def test_a_run_that_stores_no_checkpoints_needs_keys(tmp_path: Path) -> None:
    with opened("memory", tmp_path) as saver:
        shop = Shop(saver)
        with pytest.raises(ConfigError, match=r"durability='exit'.*give key="):
            shop.graph.invoke({"amount": 5, "rounds": 1}, THREAD, durability="exit")
        shop.options = {"key": "charge"}
        shop.graph.invoke({"amount": 5, "rounds": 1}, THREAD, durability="exit")


def test_a_step_back_lists_the_effects_to_undo(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as saver:
        shop = Shop(saver, undo_with=refund)
        shop.run(THREAD, amount=4)
        middle = shop.graph.get_state(THREAD).config
        shop.run(THREAD, amount=5, rounds=2)
        restored = shop.effects.restore(middle)
        assert [undo.effect.key for undo in restored.to_undo] == [*reversed(shop.receiver.keys[1:])]
        assert {(undo.function, *undo.args) for undo in restored.to_undo} == {(f"{__name__}.refund", 5)}
        assert (
            shop.graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
            == (restored.config["configurable"]["checkpoint_id"])
        )
        assert shop.effects.to_undo(restored.config) == []
        assert len(shop.receiver.calls) == 3


def refund(amount: int) -> None:
    """Take a charge back."""
