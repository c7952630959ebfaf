"""Rounds in one process: acknowledged writes stay, wherever a client dies and whatever it cannot reach."""

from pathlib import Path

import pytest

from length import ALL, times
from replication.checker import Mode
from replication.simulated import first_objections
from replication.simulation import FAULTS, Fault, Kind, Plan

ROUNDS = times(1, at_length=40)
MODES: tuple[Mode, ...] = ("sync", "async")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mode", MODES)
def test_pairs_in_memory_keep_their_promises(mode: Mode, fault: Fault, tmp_path: Path) -> None:
    plans = [Plan(mode, fault, "manual"), Plan(mode, fault, "automatic")]
    assert first_objections(plans, tmp_path, rounds=ROUNDS) == []


@pytest.mark.parametrize("mode", MODES)
def test_pairs_of_files_keep_their_promises(mode: Mode, tmp_path: Path) -> None:
    kind: Kind = "sqlite"
    faults = FAULTS if ALL else FAULTS[MODES.index(mode) :: 2]
    plans = [Plan(mode, fault, "manual", kind) for fault in faults]
    assert first_objections(plans, tmp_path, rounds=times(1, at_length=10)) == []
