"""The tests of Ctrl-C pass in the background of a shell, too, which starts processes that ignore SIGINT."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", sys.argv[1]])
"""


def test_a_child_is_interrupted_although_its_tests_run_in_the_background(tmp_path: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('not interrupted')"
    test = tmp_path / "test_child.py"
    test.write_text(
        "import subprocess, sys\n"
        "def test_it() -> None:\n"
        f"    done = subprocess.run([sys.executable, '-c', {program!r}], capture_output=True, text=True)\n"
        "    assert 'KeyboardInterrupt' in done.stderr, done.stdout\n"
    )
    # The tests' own conftest.py, for a test that is not among them.
    (tmp_path / "conftest.py").symlink_to(ROOT / "tests" / "conftest.py")
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT / 'tests'}\naddopts = --import-mode=importlib\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(test)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
