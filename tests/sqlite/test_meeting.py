"""Many callers of one file at once: an answered call is seen by all later ones, and every call is answered."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from length import ALL
from sqlite.meeting import TASKS, THREADS

LENGTH = ("--steps", "400", "--seconds", "300", "--patience", "600") if ALL else ()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no timer there that interrupts")
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_everybody_is_answered_and_sees_what_was_acknowledged(durability: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sqlite.meeting", tmp_path / "threads.db", "--durability", durability, *LENGTH],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["writers"] in {THREADS + TASKS + 1, THREADS + TASKS + 2}  # the main thread may never get that far
    assert figures["interrupts"] > 0
