"""Rounds in which every transaction of every client comes at a moment that the seed says."""

from pathlib import Path

import pytest

from length import times
from replication.checker import Mode
from replication.schedules import ScheduledWorld
from replication.simulated import first_objections
from replication.simulation import Fault, Plan

FAULTS: tuple[Fault, ...] = ("none", "move", "active", "standby", "split", "deaf", "late")
MODES: tuple[Mode, ...] = ("sync", "async")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mode", MODES)
def test_pairs_keep_their_promises_in_any_order(mode: Mode, fault: Fault, tmp_path: Path) -> None:
    plans = [Plan(mode, fault, "manual", deletions=6), Plan(mode, fault, "automatic")]
    assert first_objections(plans, tmp_path, rounds=times(2, at_length=100), make_world=ScheduledWorld) == []
