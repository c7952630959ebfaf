"""What the SQLite tests share: a connection to look at a file with, and child processes of their own."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def looking_at(path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to a database file, closed afterwards."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


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
    """What a child printed, once it is over and well."""
    out, err = process.communicate(timeout=within)
    assert process.returncode == 0, err
    return out
