"""A killed process leaves no row of the user without the checkpoint and the item of the same transaction."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from length import ALL, times
from postgres.cluster import shared

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "transaction_rounds.py"
AT_STATEMENTS = SCRIPT.with_name("statement_kills.py")
ROUNDS = times(12, at_length=1000)
EVERY = times(30, at_length=1)
"""How many statements from one kill to the next."""
DURABILITIES = ("sync", "async", "exit") if ALL else ("async",)
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder is made in it
"""A killed process leaves its files in the page cache, so nothing needs to reach a disk."""


def run_script(*command: object) -> "subprocess.CompletedProcess[str]":
    """Run a script in a separate process, because it forks, which a process with threads must not."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if MEMORY.is_dir():
        environment["TMPDIR"] = str(MEMORY)
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, env=environment, check=False
    )


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_nothing_is_stored_apart_when_a_process_is_killed(backend: str) -> None:
    name = f"killed_{os.getpid()}"
    database = shared().database(name) if backend == "postgres" else backend
    done = run_script(SCRIPT, database, "--rounds", str(ROUNDS))
    if backend == "postgres":
        shared().execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["killed"] == ROUNDS
    assert result["apart"] == result["lost"] == 0


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_item_and_the_state_of_its_node_are_stored_together_wherever_a_process_is_killed(durability: str) -> None:
    done = run_script(AT_STATEMENTS, durability, EVERY)
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["killed"] > 80 // EVERY
    assert result["apart"] == 0
