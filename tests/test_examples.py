"""The examples keep their promises; they check themselves and exit with a failure if one is broken."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "examples" / "agent_server.py"
"""It serves until it is stopped: tests/test_agent_server.py asks it over HTTP."""
DATABASE = ROOT / "examples" / "demo_database.py"
"""It makes a file. The tests of the command check its content: tests/cli."""
EXAMPLES = sorted({*(ROOT / "examples").glob("*.py")} - {SERVER, DATABASE})
DEMO = ROOT / "examples" / "langgraph_agent.py"
"""The example that `make demo` runs."""

COLUMNS = 80

LANGGRAPHS = """
class SqliteSaver(LangGraphsSqliteSaver):
    def __init__(self, path):
        super().__init__(sqlite3.connect(path, check_same_thread=False))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.conn.close()
"""
"""LangGraph's saver, made as the demonstration makes ours."""

AS_FAR_AS_LANGGRAPH_GOES = """
import example

with example.SqliteSaver("agent.db") as saver:
    example.resume(saver, example.kill_in_the_middle("agent.db", saver))
    example.look_back_and_fork(saver)
"""


def _python(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        env=environment,
        cwd=folder,
        check=False,
    )


@cache
def _output(example: Path) -> list[str]:
    """The lines that an example prints."""
    done = _python(example)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_to_its_end(example: Path) -> None:
    assert _output(example)[-1].endswith("as expected.")


def test_there_is_an_example() -> None:
    assert DEMO in EXAMPLES


@pytest.mark.parametrize(("example", "arguments"), [(SERVER, []), (DATABASE, ["--help"])])
def test_an_example_that_needs_an_argument_says_so(example: Path, arguments: list[str], tmp_path: Path) -> None:
    done = _python(example, *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (1, "", [])
    assert re.fullmatch(rf"[^\n]*: python examples/{example.name} \S+\n", done.stderr)


def test_the_demo_database_is_made_once_and_says_how_to_look_at_it(tmp_path: Path) -> None:
    made = _python(DATABASE, "some.db", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.rstrip().endswith("Look at them: threadmark threads some.db")
    content = (tmp_path / "some.db").read_bytes()
    assert b"demo_database" in content  # the module of its classes, not __main__
    again = _python(DATABASE, "some.db", folder=tmp_path)
    assert (again.returncode, "is there already" in again.stderr) == (1, True)
    assert (tmp_path / "some.db").read_bytes() == content


def test_the_demonstration_fits_a_terminal_and_cuts_nothing() -> None:
    output = _output(DEMO)
    assert max(map(len, output)) <= COLUMNS
    assert not [line for line in output if "…" in line]
    joined = " ".join(" ".join(output).split())
    history = joined.partition("Its history")[2].partition("Asked otherwise")[0]
    assert "Lima has 20 degrees; Lisbon has 18 degrees; Oslo has 3 degrees" in history


def test_the_demonstration_shows_code_that_it_runs() -> None:
    source = {line.rstrip() for line in DEMO.read_text(encoding="utf-8").splitlines() if line.strip()}
    output = _output(DEMO)
    start = output.index("The code") + 1
    shown = [line.rstrip() for line in output[start : output.index("", start + 12)] if line.strip()]
    assert len(shown) >= 12
    assert set(shown) <= source


def test_the_demonstration_shows_the_figure_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = re.search(
        r"^\| chat: 500 messages of 600 characters.*\| ([\d.]+) MB \| ([\d.]+) MB \| (\d+)x \|$", readme, re.MULTILINE
    )
    assert row
    output = "\n".join(_output(DEMO))
    assert "A chat of 500 messages of 600 characters" in output
    sizes = [int(size.replace(",", "")) / 1e6 for size in re.findall(r"SqliteSaver +([\d,]+) ", output)]
    (ratio,) = re.findall(r"^(\d+)x less", output, re.MULTILINE)
    assert [*sizes, int(ratio)] == pytest.approx([float(figure) for figure in row.groups()], rel=0.02)


def test_what_the_demonstration_says_that_langgraphs_saver_does_too_it_does(tmp_path: Path) -> None:
    ours = "from threadmark_langgraph import SqliteSaver\n"
    source = DEMO.read_text(encoding="utf-8")
    assert ours in source
    (tmp_path / "example.py").write_text(source.replace(ours, LANGGRAPHS), encoding="utf-8")
    done = _python("-c", AS_FAR_AS_LANGGRAPH_GOES, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "And the first answer is still there" in done.stdout
