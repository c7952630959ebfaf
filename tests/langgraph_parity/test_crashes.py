"""A run that is killed at a random moment is resumed without loss, and no acknowledged work is done again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from langgraph_parity.backends import cluster
from length import times

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "crash_rounds.py"
ROUNDS = times(10, at_length=1000)
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder is made in it
"""A killed process leaves its files in the page cache, so nothing needs to reach a disk."""


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_killed_runs_are_resumed_without_loss_or_repetition(backend: str) -> None:
    database = cluster().url if backend == "postgres" else backend
    # A separate process, because the rounds fork, which a process with threads must not.
    command = [sys.executable, str(SCRIPT), database, "--rounds", str(ROUNDS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if MEMORY.is_dir():
        environment["TMPDIR"] = str(MEMORY)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["killed"] == ROUNDS
    assert result["lost"] == result["repeated"] == 0
