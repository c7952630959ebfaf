"""Processes fight for one thread's lease: stopped for longer than it lives, cut off, with clocks that are set."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from length import times
from postgres.cluster import shared
from redis_backend.processes import FORGETFUL, RedisProcess

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "lease_rounds.py"
SECONDS = times(6, at_length=60)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has neither fork nor SIGSTOP")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The argument of the script: a kind of database that it makes, or the URL of an empty one."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    if request.param == "redis":
        with RedisProcess(FORGETFUL).start() as server:
            yield server.url
        return
    name = f"leases_{os.getpid()}"
    yield shared().database(name)
    shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_there_are_never_two_holders_and_no_write_comes_late(database: str) -> None:
    # A separate process, because the rounds fork, which a process with threads must not.
    processes = "8" if database.startswith("redis") else "2"
    command = [sys.executable, str(SCRIPT), database, "--seconds", str(SECONDS), "--processes", processes]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS + 60, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    figures = json.loads(done.stdout)
    assert (figures["forks"], figures["late"], figures["lost"]) == (0, 0, 0)
    assert min(figures["hand_overs"], figures["refused"], figures["stopped"]) > 0
