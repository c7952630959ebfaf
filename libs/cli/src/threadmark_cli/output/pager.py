"""The pager: long output on a terminal goes through `less`, or the program in PAGER, while it is being made."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

_LESS = "FRX"
"""As git has it: a short text needs no key to be left, colours stay, and the text stays on the screen."""


def pager_command(environment: Mapping[str, str]) -> list[str] | None:
    """The command to start, or None if nothing is to be paged."""
    if environment.get("TERM", "dumb") in {"dumb", ""}:
        return None
    try:
        command = shlex.split(environment.get("PAGER", "less"))
    except ValueError:
        return None
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        return None
    return command


@contextmanager
def paging(command: list[str]) -> Iterator[IO[str]]:
    """Give a file whose text the pager shows. At the end, wait until its reader has left it."""
    environment = {"LESS": _LESS, **os.environ}
    process = subprocess.Popen(  # noqa: S603 - the user's own PAGER
        command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8", errors="backslashreplace"
    )
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    try:
        yield process.stdin
    finally:
        _close(process.stdin)
        _wait(process)


def _close(stream: IO[str]) -> None:
    with suppress(BrokenPipeError):  # it was left before its end
        stream.close()


def _wait(process: "subprocess.Popen[str]") -> None:
    while True:
        try:
            process.wait()
        except KeyboardInterrupt:  # Ctrl-C is the pager's own affair; it says when it is done
            continue
        return
