"""`make` names its steps while it makes its environment, which takes minutes the first time."""

import os
import stat
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "make-venv"

PYTHON = """#!/bin/sh
case "$*" in
    *version_info\\[*) echo 3.11 ;;
    "-m venv --clear "*) mkdir -p "$4/bin" && cp "$0" "$4/bin/python" ;;
    "-m pip install --quiet "*) ;;
    "-m pip install "*)
        echo "Obtaining file:///somewhere/libs/core"
        echo "  Downloading much.whl (1 MB)"
        echo "Collecting msgpack<2,>=1.0.5 (from threadmark==0.1.0)"
        echo "Installing collected packages: msgpack, threadmark"
        exit ${PIP_FAILS:-0}
        ;;
esac
"""
"""A Python that makes environments of itself, and whose pip installs nothing."""


def _made(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    python = folder / "python"
    python.write_text(PYTHON)
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    asked = {**os.environ, "PYTHON": str(python), "VENV": str(folder / "made"), "DEPENDENCIES": "newest", **environment}
    return subprocess.run([SCRIPT], env=asked, capture_output=True, text=True, check=False, timeout=60)


def test_each_package_is_a_line(tmp_path: Path) -> None:
    done = _made(tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made" / ".ready").exists()
    assert done.stderr.splitlines() == [
        f"1/5 Making {tmp_path}/made",
        "2/5 Installing what builds the packages",
        "3/5 Compiling ./libs/speed",
        "4/5 Collecting what requirements-dev.txt lists",
        "  1 core",
        "  2 msgpack",
        "5/5 Unpacking",
        f"{tmp_path}/made is ready.",
    ]


def test_the_demonstrations_have_an_environment_without_the_compiled_part(tmp_path: Path) -> None:
    done = _made(tmp_path, COMPILED="no", REQUIREMENTS="examples/requirements.txt")
    assert done.returncode == 0, done.stderr
    assert "3/4 Collecting what examples/requirements.txt lists" in done.stderr
    assert "Compiling" not in done.stderr


def test_an_environment_that_could_not_be_made_is_not_ready(tmp_path: Path) -> None:
    assert _made(tmp_path, PIP_FAILS="1").returncode == 1
    assert not (tmp_path / "made" / ".ready").exists()
