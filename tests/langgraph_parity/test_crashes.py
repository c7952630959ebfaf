"""A run that is killed at a random moment is resumed without loss, and no acknowledged work is done again."""

import json

import pytest

from langgraph_parity.backends import cluster
from length import times
from rounds import output_of

ROUNDS = times(6, at_length=1000)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_killed_runs_are_resumed_without_loss_or_repetition(backend: str) -> None:
    database = cluster().url if backend == "postgres" else backend
    result = json.loads(output_of("crash_rounds.py", database, "--rounds", ROUNDS, in_memory=True))
    assert result["killed"] == ROUNDS
    assert result["lost"] == result["repeated"] == 0
