"""Runs the command: in this process into a pipe or a terminal, which is quick, or as a separate process."""

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import NamedTuple

import pytest

from threadmark_cli.main import run

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

COMMAND = [sys.executable, "-m", "threadmark_cli"]

Run = Callable[..., "Ran"]


class Ran(NamedTuple):
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines of its output."""
        return self.out.splitlines()


def in_pipe(*arguments: str) -> Ran:
    """Run it in this process. Its output is no terminal."""
    with ExitStack() as stack:
        out, err = (TextIOWrapper(stack.enter_context(TemporaryFile()), "utf-8", newline="") for _ in range(2))
        with redirect_stdout(out), redirect_stderr(err):
            code = run(arguments)
        return Ran(code, *map(_written, (out, err)))


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def in_terminal(*arguments: str, columns: int = 200) -> Ran:
    """Run it in this process, with a pseudo-terminal for its output. There is no pager."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    shown: list[bytes] = []
    reader = threading.Thread(target=_read, args=(ours, shown))
    reader.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"TERM": "xterm-256color", "PAGER": "cat", "COLUMNS": str(columns)}.items():
            patch.setenv(name, value)
        with os.fdopen(theirs, "w", encoding="utf-8") as terminal, redirect_stdout(terminal), redirect_stderr(terminal):
            code = run(arguments)
    reader.join(60)
    os.close(ours)
    return Ran(code, b"".join(shown).decode().replace("\r\n", "\n"))


def _read(terminal: int, shown: list[bytes]) -> None:
    """Read until the other side is closed."""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            return
        if not data:
            return
        shown.append(data)


def in_process(*arguments: str, environment: Mapping[str, str] | None = None, stdin: str = "") -> Ran:
    """Run it as a separate process, in pipes."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **(environment or {})},
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def json_lines(ran: Ran) -> Sequence[dict[str, object]]:
    """The lines that it wrote with `--json`."""
    import json

    return [json.loads(line) for line in ran.out.splitlines()]
