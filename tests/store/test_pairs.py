"""Items of replicated pairs: both databases end up with the same, and nothing acknowledged is lost."""

import json

import pytest

import threadmark_store.pairs.items
import threadmark_store.store
from length import ALL
from store.apart import Plan, World, lost
from threadmark_store.shapes import ItemRow

_ROUNDS = 400 if ALL else 12
_TURNS = 1500

_PLANS = [
    Plan(),
    Plan(failover="automatic"),
    Plan(on_secondary_failure="continue", ways=("closed", "deaf", "late")),
    Plan("async"),
    Plan("async", failover="automatic", ways=("closed", "deaf", "late")),
    Plan("async", skew=10**7),
]


@pytest.mark.parametrize("plan", _PLANS, ids=lambda plan: "-".join(map(str, plan[:3])))
def test_both_sides_are_equal_in_the_end(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(_ROUNDS):
        world = World(plan, seed)
        with monkeypatch.context() as patched:
            patched.setattr(threadmark_store.store, "now", world.now)
            patched.setattr(threadmark_store.pairs.items, "now", world.now)
            world.go_on(_TURNS)
            world.settle()
        one, other = world.rows()
        assert one == other, seed
        assert any(each.outcome == ["done"] for each in world.written)
        if not plan.skew:
            assert lost(world, _number) == [], seed
        world.close()


def _number(row: ItemRow) -> int:
    number: int = json.loads(row.value)["n"]
    return number
