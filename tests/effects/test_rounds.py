"""Workers that are killed, stopped and left without answers charge each order once; LangGraph alone does not"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from length import times
from postgres.cluster import shared
from redis_backend.processes import FORGETFUL, RedisProcess

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "effect_rounds.py"
CALLS = times(8, at_length=200)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the receiver looks into /proc")


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
    name = f"effect_rounds_{os.getpid()}"
    yield shared().database(name)
    shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


def rounds(database: str, way: str) -> dict[str, Any]:
    # A separate process, because the rounds fork, which a process with threads must not.
    command = [sys.executable, str(SCRIPT), database, "--calls", str(CALLS), "--way", way, "--seed", "3"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60 + CALLS, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def test_with_a_check_nothing_happens_twice_and_nothing_is_lost(database: str) -> None:
    figures = rounds(database, "check")
    assert (figures["twice"], figures["lost"]) == (0, 0)
    assert figures["asked the receiver"] > 0


def test_each_unknown_call_is_reported() -> None:
    figures = rounds("sqlite", "raise")
    assert (figures["twice"], figures["lost"]) == (0, 0)
    assert figures["reported as unknown"] > 0


def test_without_effects_calls_happen_twice() -> None:
    assert rounds("sqlite", "langgraph")["twice"] > 0
