"""On each backend, effects stay as long as a checkpoint that may ask for them, and go with the last one."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from effects.graphs import CrashError, Shop
from effects.places import PLACES, opened
from threadmark import Saver

THREAD: Any = {"configurable": {"thread_id": "order"}}


@pytest.fixture(params=PLACES)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Saver]:
    with opened(request.param, tmp_path) as saver:
        yield saver


def namespaces(saver: Saver) -> set[str]:
    return {entry.ns for entry in saver.history("order", ns=None, limit=100).entries}


def test_the_numbers_of_a_thread_include_its_ledgers(saver: Saver) -> None:
    shop = Shop(saver)
    shop.run(THREAD)
    thread = saver.get_thread("order")
    assert thread is not None
    own = len(saver.history("order").entries)
    assert (thread.checkpoints, thread.namespaces) == (own + 2, 2)


def test_prune_and_retention_keep_what_a_checkpoint_may_ask_for(saver: Saver) -> None:
    shop = Shop(saver)
    shop.run(THREAD)
    before = shop.before("charge", THREAD)
    saver.prune(["order"], keep_last=3)
    assert shop.go_on(before) == [1]
    assert len(shop.effects.list("order")) == 1
    saver.apply_retention(keep_last=1)
    assert shop.effects.list("order") == []
    assert namespaces(saver) == {""}
    assert not saver.verify().problems


def test_a_pruned_thread_keeps_a_call_whose_step_has_crashed(saver: Saver) -> None:
    shop = Shop(saver)
    shop.run(THREAD)
    shop.crashes = ["charge"]
    with pytest.raises(CrashError):
        shop.run(THREAD, amount=6)
    saver.prune(["order"], keep_last=1)
    assert [effect.state for effect in shop.effects.list("order")] == ["done"]
    assert shop.go_on(THREAD) == [1, 2]
    assert shop.receiver.calls == [5, 6]
    assert not saver.verify().problems


def test_an_effect_stays_with_the_first_of_two_checkpoints_that_asked_for_it(saver: Saver) -> None:
    shop = Shop(saver, per="thread")
    shop.run(THREAD)
    again = saver.fork(shop.before("charge", THREAD))
    assert shop.go_on(again) == [1]
    assert saver.delete_checkpoint(again)
    assert len(shop.effects.list("order")) == 1


def test_the_erasure_of_runs_and_threads_leaves_no_effect(saver: Saver) -> None:
    shop = Shop(saver)
    config = {**THREAD, "metadata": {"run_id": "a run"}}
    shop.run(config)
    saver.delete_for_runs(["a run"])
    assert shop.effects.list("order") == []
    assert namespaces(saver) == set()
    shop.run(THREAD)
    saver.update_thread("order", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    saver.apply_retention()
    assert shop.effects.list() == []
    assert namespaces(saver) == set()
    assert not saver.verify().problems
