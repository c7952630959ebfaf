"""A killed process leaves no row of the user without the checkpoint and the item of the same transaction."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from length import times
from postgres.cluster import shared

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "transaction_rounds.py"
ROUNDS = times(12, at_length=1000)
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder is made in it
"""A killed process leaves its files in the page cache, so nothing needs to reach a disk."""


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_nothing_is_stored_apart_when_a_process_is_killed(backend: str) -> None:
    name = f"killed_{os.getpid()}"
    database = shared().database(name) if backend == "postgres" else backend
    # A separate process, because the rounds fork, which a process with threads must not.
    command = [sys.executable, str(SCRIPT), database, "--rounds", str(ROUNDS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if MEMORY.is_dir():
        environment["TMPDIR"] = str(MEMORY)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if backend == "postgres":
        shared().execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["killed"] == ROUNDS
    assert result["apart"] == result["lost"] == 0
