"""The tutorial is done as a reader does it: files are saved, commands are run, and their output is the page's."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n(?:# (\w+\.py)\n)(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL))
STEPS = re.findall(r"^\$ (.*)\n((?:(?!\$ |```).*\n)*)", TUTORIAL, re.MULTILINE)
"""Commands, and their output."""


def _save(folder: Path) -> None:
    for name, code in FILES.items():
        (folder / name).write_text(code, encoding="utf-8")


def _same_everywhere(output: str) -> list[str]:
    """Lines without the parts that differ from run to run: ids, moments, sizes, and how wide these make a column."""
    output = re.sub(r"\b1[0-9a-f]{7}(-[0-9a-f-]+)?\b", "ID", output)
    output = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "MOMENT", output)
    output = re.sub(r"\d+(\.\d+)? k?B", "SIZE", output)
    return [" ".join(line.split()) for line in output.splitlines()]


def test_the_tutorial_works_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    _save(tmp_path)
    python = f'"{sys.executable}"'
    assert len(STEPS) > len(FILES)
    for command, expected in STEPS:
        words = command.replace("python ", f"{python} ").replace("threadmark ", f"{python} -m threadmark_cli ")
        environment = {**os.environ, "COLUMNS": "120"}
        done = subprocess.run(  # noqa: S602 - the command is the page's own
            words, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == ("CRASH" in command), f"{command}: {done.stderr}"
        assert _same_everywhere(done.stdout) == _same_everywhere(expected), command


def test_the_files_of_the_tutorial_are_typed(tmp_path: Path) -> None:
    _save(tmp_path)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), *FILES]
    config = ["--config-file", str(ROOT / "pyproject.toml")]
    environment = {**os.environ, "MYPYPATH": ":".join(map(str, ROOT.glob("libs/*/src")))}
    done = subprocess.run(
        [*mypy, *config], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_block_of_the_tutorial_is_a_file() -> None:
    assert len(FILES) == TUTORIAL.count("```python\n") > 0
