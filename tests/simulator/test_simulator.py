"""Simulated worlds keep their promises, each fault is met, and a seed gives the same run in every process"""

import os
import subprocess
import sys

import pytest

from length import times
from simulator.plan import Plan
from simulator.play import play
from simulator.playing import ENOUGH, quiet, run
from simulator.shrinking import shrunk

SEEDS = times(ENOUGH, at_length=20 * ENOUGH)


def test_worlds_keep_their_promises_and_every_fault_is_met() -> None:
    report = run(range(SEEDS), shrinks=False)
    assert not report.failures
    assert report.never == []


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_seed_gives_the_same_run_in_every_process(seed: int) -> None:
    with quiet():
        trace = play(Plan.of(seed)).trace
    program = f"from simulator.plan import Plan\nfrom simulator.play import play\nprint(play(Plan.of({seed})).trace)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == trace


def test_a_plan_is_made_again_from_its_text() -> None:
    plan = Plan.of(7)
    smaller = plan._replace(operations=plan.operations[3:6], faults=plan.faults[:1])
    assert Plan.from_text(str(smaller)) == smaller
    assert Plan.from_text("7") == plan


def test_a_plan_that_fails_is_cut_down_to_what_is_needed() -> None:
    plan = Plan.of(10)
    first, *_, last = (each.number for each in plan.operations)

    def fails(smaller: Plan) -> bool:
        return {first, last} <= {each.number for each in smaller.operations}

    smallest = shrunk(plan, fails)
    assert [each.number for each in smallest.operations] == [first, last]
    assert smallest.faults == ()


@pytest.mark.parametrize(
    "text",
    [
        # A fork whose answer was lost was placed again, after the checkpoints that followed it by then.
        "3605 operations=0,2,4,7,8,17,20 faults=2",
    ],
)
def test_a_plan_that_failed_once_does_not_fail_again(text: str) -> None:
    with quiet():
        assert play(Plan.from_text(text)).objections == []
