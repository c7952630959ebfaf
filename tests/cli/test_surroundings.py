"""Failures around the command: a full disk, closed streams, folders that may not be read, Ctrl-C at any moment."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import COMMAND, in_process
from threadmark import ConfigError
from threadmark_cli.opening import path_or_url

FULL = Path("/dev/full")
PATIENCE = 120.0


def _in_shell(line: str, **environment: str) -> tuple[int, str]:
    """Run a line in which `threadmark` is the command. Returns its exit code and its stderr."""
    functions = f'threadmark() {{ "{sys.executable}" -m threadmark_cli "$@"; }}; '
    done = subprocess.run(
        ["/bin/sh", "-c", functions + line],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a file that is always full")
@pytest.mark.parametrize("arguments", ["threads", "threads --json", "show support-42 --full", "--help"])
def test_a_full_disk_is_an_error(demo_file: Path, arguments: str) -> None:
    code, said = _in_shell(f"threadmark {arguments} > {FULL}", THREADMARK_URL=str(demo_file))
    assert (code, said) == (5, "error: what was to be written: No space left on device\n")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("threadmark threads >&-", 0, ""),
        ("threadmark threads --json >&-", 0, ""),
        ("threadmark show nothing 2>&-", 3, ""),
        ("threadmark delete support-42 <&-", 4, "Nobody is here to answer"),
        ("threadmark nothing >&- 2>&- <&-", 2, ""),
    ],
)
def test_streams_may_be_closed(demo_file: Path, line: str, code: int, said: str) -> None:
    ended, errors = _in_shell(line, THREADMARK_URL=str(demo_file))
    assert ended == code
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("arguments", [["--help"], ["threads", "--help"], ["--version"], ["show", "nothing.db"]])
def test_nobody_reads_what_is_said(arguments: list[str]) -> None:
    # Both streams lead to a pipe without a reader, as behind `2>&1 | true`.
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = subprocess.run([*COMMAND, *arguments], stdout=theirs, stderr=theirs, check=False, timeout=PATIENCE)
    finally:
        os.close(theirs)
    assert done.returncode == 141


def test_a_folder_that_may_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "x" * 300  # longer than any file system's names, which fails like a folder without rights, even for root
    monkeypatch.chdir(tmp_path)
    for arguments in (["threads"], ["doctor"], ["backup", "copy.db"], ["migrate", "new.db"], ["setup"], ["stats"]):
        ran = in_process(*arguments, "-u", name) if arguments[0] != "migrate" else in_process("migrate", name, "new.db")
        assert ran.code == 5, (arguments, ran)
        assert "Traceback" not in ran.err
        assert "name too long" in (ran.err + ran.out).lower() or "no such file" in ran.err.lower(), (arguments, ran)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_modules_are_imported(tmp_path: Path) -> None:
    # A module that is imported first of all says that it is being imported, and waits.
    (tmp_path / "click.py").write_text(
        "import time\nprint('importing', flush=True)\nfor _ in range(1200): time.sleep(0.1)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        [*COMMAND, "threads"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"importing\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130, b"")


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--version"], ["threadmark_cli.foreign.saver", "threadmark_cli.commands", "rich.progress", "psycopg"]),
        (["threads"], ["threadmark_cli.foreign.saver", "rich.progress", "psycopg", "redis", "langgraph", "starlette"]),
    ],
)
def test_only_what_is_needed_is_imported(demo_file: Path, arguments: list[str], absent: list[str]) -> None:
    code = (
        "import sys; from threadmark_cli.main import run; "
        f"run({arguments!r}); sys.stderr.write(' '.join(name for name in {absent!r} if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
        env={**os.environ, "THREADMARK_URL": str(demo_file)},
    )
    assert done.stdout
    assert done.stderr == ""


def test_parameters_of_a_connection_are_no_path_and_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        path_or_url("host=server password=secret dbname=agents")
    assert "secret" not in str(refused.value)
