"""Ctrl-C, and handlers that raise something else, at any moment: the next call works, and nothing acknowledged is lost.

By hand, for thousands of them: `cd tests; python -m signals.calls memory - --strikes 5000`, or with `--stride 1` at
every instruction.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postgres.cluster import shared

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")

IN_THIS_PROCESS = ["memory", "sqlite memory", "sqlite given"]
BLOCKING = [*IN_THIS_PROCESS, "sqlite file", "postgres url", "postgres pool", "postgres connection"]


@pytest.fixture
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The database of the backend that a test names."""
    backend: str = request.getfixturevalue("backend")
    if not backend.startswith("postgres"):
        yield str(tmp_path / "threads.db")
        return
    name = f"signals_{os.getpid()}"
    yield shared().database(name)
    shared().execute(f"DROP DATABASE {name} WITH (FORCE)")


def interrupted(backend: str, where: str, *options: str) -> dict[str, Any]:
    """The figures of a process that interrupts calls and looks at the database after each."""
    found: dict[str, Any] = said_by("signals.calls", backend, where, *options)
    return found


def said_by(program: str, *arguments: str) -> Any:
    """The JSON that a program prints."""
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("backend", BLOCKING)
def test_the_call_after_an_interrupt_works_and_other_threads_go_on(backend: str, where: str) -> None:
    figures = interrupted(backend, where, "--strikes", "50", "--others", "2")
    assert figures["interrupts"] >= 50
    assert figures["others"] > 0


@pytest.mark.parametrize("backend", ["memory", "sqlite file", "postgres url"])
def test_the_call_after_a_handler_that_raised_something_else_works(backend: str, where: str) -> None:
    assert interrupted(backend, where, "--raises", "TimeoutError", "--strikes", "20")["interrupts"] >= 20


@pytest.mark.parametrize("backend", [*BLOCKING, "aiosqlite given"])
def test_the_call_after_a_run_that_ctrl_c_ended_works(backend: str, where: str) -> None:
    assert interrupted(backend, where, "--asyncio", "loops", "--cancels", "--strikes", "15")["interrupts"] >= 15


@pytest.mark.parametrize("backend", ["postgres url", "postgres asyncio pool", "postgres asyncio connection"])
def test_the_call_after_a_task_that_ctrl_c_cancelled_works_in_the_same_loop(backend: str, where: str) -> None:
    assert interrupted(backend, where, "--asyncio", "a loop", "--cancels", "--strikes", "15")["interrupts"] >= 15


@pytest.mark.parametrize("backend", [*IN_THIS_PROCESS, "sqlite file", "aiosqlite given", "postgres url"])
def test_the_run_after_one_that_a_handler_ended_works(backend: str, where: str) -> None:
    figures = interrupted(backend, where, "--asyncio", "loops", "--raises", "SystemExit", "--strikes", "15")
    assert figures["interrupts"] >= 15


@pytest.mark.parametrize("backend", [*IN_THIS_PROCESS, "sqlite file"])
def test_an_interrupt_at_any_instruction_leaves_the_saver_in_order(backend: str, where: str) -> None:
    figures = interrupted(backend, where, "--stride", "421", "--first", "7")
    assert figures["interrupts"] > 35


def test_an_interrupt_while_a_replaced_file_is_noticed_leaves_the_saver_with_the_new_one(tmp_path: Path) -> None:
    assert said_by("signals.replacing", str(tmp_path / "threads.db"), "7", "197") > 20


def test_a_lease_that_is_interrupted_at_any_instruction_is_over_soon(tmp_path: Path) -> None:
    assert said_by("signals.leasing", str(tmp_path / "threads.db"), "7", "149") > 20


@pytest.mark.parametrize("backend", [*IN_THIS_PROCESS, "sqlite file", "postgres url"])
def test_a_transaction_that_is_interrupted_at_any_instruction_is_over(backend: str, where: str) -> None:
    assert said_by("signals.blocks", backend, where, "7", "149") > 20
