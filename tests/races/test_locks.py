"""Everything at once on one thread of a Postgres database."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from length import times
from postgres.cluster import shared

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
