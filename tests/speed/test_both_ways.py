"""With the compiled parts and without them, the same values are stored, read and refused."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from length import times
from threadmark.runtime.compiled import SWITCH

PROGRAM = Path(__file__).with_name("unusual.py")


def _outcome(*arguments: object, in_python: bool) -> str:
    """The output of the program."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *map(str, arguments)],
        env={**os.environ, SWITCH: "1" if in_python else "0", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return re.sub("0x[0-9a-f]{8,}", "", done.stdout)  # addresses of objects


@pytest.mark.parametrize("seed", range(times(1, at_length=40)))
def test_the_same_becomes_of_whatever_is_given(seed: int, tmp_path: Path) -> None:
    ours, reference = tmp_path / "compiled.db", tmp_path / "python.db"
    outcome = _outcome(ours, seed, in_python=False)
    assert outcome == _outcome(reference, seed, in_python=True)
    read = _outcome(ours, "", in_python=True)
    assert outcome.endswith(read)
    assert read == _outcome(reference, "", in_python=False)
