"""Everything at once on one thread of a Postgres database, and the report of segments that this left behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from length import times
from lock_rounds import THREAD, Outcome, unexplained
from postgres.cluster import shared
from threadmark import MemorySaver

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "lock_rounds.py"
SECONDS = times(6, at_length=600)


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of an empty database."""
    name = f"locks_{os.getpid()}"
    yield shared().database(name)
    shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_nobody_waits_in_a_circle(database: str) -> None:
    command = [sys.executable, str(SCRIPT), "--url", database, "--seconds", str(SECONDS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS + 180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deadlocks: 0; failures: 0; problems found afterwards: 0" in done.stdout
    for operation in ("put_writes", "prune", "delete_thread", "rename_thread", "put_under_a_lease"):
        assert f"| {operation} | " in done.stdout


def test_a_segment_that_is_left_behind_is_reported_with_the_operations_around_it() -> None:
    outcomes = [
        Outcome("put_writes", 0.0, 0.1, "", "writes of task 1", "0.123"),
        Outcome("put_writes", 0.3, 0.1, "", "writes of task 1", "0.456"),
        Outcome("prune", 0.35, 0.1, ""),
        Outcome("history", 9.0, 0.1, ""),
    ]
    with MemorySaver() as saver:
        config = {"configurable": {"thread_id": THREAD, "checkpoint_ns": "", "checkpoint_id": "1"}}
        for mark in ("0.123", "0.456"):
            saver.put_writes(config, [("messages", f"{mark} " * 200)], "task 1")
        assert list(unexplained(saver, outcomes)) == []
        (report,) = unexplained(saver, outcomes[1:])
    described, *operations = report.splitlines()
    assert described.startswith("thread 'thread': nothing refers to segment ")
    assert "0.456 0.456" in described
    assert operations == [
        "    stored by 0.300 to 0.400 s: put_writes writes of task 1",
        "    near it 0.350 to 0.450 s: prune",
    ]
