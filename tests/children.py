"""Child processes of tests, with pipes to talk to them."""

import subprocess
import sys
from typing import IO


def child(program: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that runs `program`, with pipes to talk to it."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str], *, within: float = 120) -> str:
    """The output of a child, once it has ended well."""
    out, err = process.communicate(timeout=within)
    assert process.returncode == 0, err
    return out


def line_from(stream: IO[str] | None) -> str:
    """The next line that a child printed."""
    assert stream is not None
    return stream.readline().strip()


def send_line(stream: IO[str] | None, line: str = "go") -> None:
    """Send a line to a child's standard input."""
    assert stream is not None
    stream.write(f"{line}\n")
    stream.flush()
