"""`migrate` and `export --to` with classes of the application, whose module lies in the current folder."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.running import Ran
from threadmark_cli.exits import DONE, USAGE, WRONG

MODULE = "from dataclasses import dataclass\n\n\n@dataclass\nclass Plan:\n    steps: list[str]\n"
FILL = """
import threadmark, plans_of_mine
from threadmark_conformance.engine import at, checkpoint
with threadmark.open("sqlite:///ours.db") as saver:
    saver.put(at("t", ""), checkpoint({"plan": plans_of_mine.Plan(["one"])}), {}, {"plan": 1})
"""


def run(folder: Path, *arguments: str) -> Ran:
    # The script, whose folder is the first in which Python looks for modules.
    script = Path(sys.executable).with_name("threadmark")
    done = subprocess.run([script, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plans_of_mine.py").write_text(MODULE, encoding="utf-8")
    environment: Any = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", FILL], cwd=tmp_path, env=environment, check=True)
    return tmp_path


@pytest.mark.parametrize("named", [("--allow", "plans_of_mine:Plan"), ("--import", "plans_of_mine")], ids=" ".join)
@pytest.mark.parametrize("command", [("export", "ours.db", "--to", "new.db"), ("migrate", "ours.db", "new.db")])
def test_a_class_that_is_named_is_loaded(command: tuple[str, ...], named: tuple[str, str], folder: Path) -> None:
    without = run(folder, *command)
    assert without.code == WRONG
    assert "has not imported plans_of_mine" in without.out
    assert "1 thread lacks checkpoints" in without.out
    assert run(folder, *command, *named).code == DONE
    assert "1 already there, 0 not moved" in run(folder, *command, *named).out


def test_names_that_lead_nowhere_are_mistakes(folder: Path) -> None:
    for command in (("export", "ours.db", "--to", "new.db"), ("migrate", "ours.db", "new.db")):
        missing = run(folder, *command, "--import", "nowhere_at_all")
        assert (missing.code, "'nowhere_at_all' cannot be imported" in missing.err) == (USAGE, True)
        assert run(folder, *command, "--allow", "plans_of_mine:Plans").code == USAGE
    needless = run(folder, "export", "ours.db", "t", "--import", "plans_of_mine")
    assert (needless.code, "need no class" in needless.err) == (USAGE, True)
    assert not (folder / "new.db").exists()


FILL_THEIRS = """
import plans_of_mine
from langgraph.checkpoint.sqlite import SqliteSaver
from threadmark_conformance.engine import at, checkpoint
with SqliteSaver.from_conn_string("theirs.db") as saver:
    saver.put(at("t", ""), checkpoint({"plan": plans_of_mine.Plan(["one"])}), {}, {"plan": 1})
"""


def test_modules_of_the_current_folder_are_found_for_what_langgraph_stored(folder: Path) -> None:
    environment: Any = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", FILL_THEIRS], cwd=folder, env=environment, check=True)
    moved = run(folder, "migrate", "theirs.db", "new.db")
    assert (moved.code, moved.out) == (
        DONE,
        "1 checkpoint with 0 pending writes of 1 thread, 0 already there, 0 not moved\n",
    )
    shown = run(folder, "show", "new.db", "t")
    assert "plan: Plan (plans_of_mine)" in shown.out
