"""Runs a program whose writes to one folder are recorded, by a library that is loaded before libc (recorder.c)."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from struct import Struct
from typing import NamedTuple

SOURCE = Path(__file__).parent / "recorder.c"
SYNC_TAKES = 300
"""Microseconds of a sync in the program, long enough for others to join the next commit."""

_HEAD = Struct("<cQQI")


class Event(NamedTuple):
    """A change of a file (write, truncate), of the folder (create, unlink, rename), a sync, or a mark."""

    kind: str
    """One of C(reate), W(rite), T(runcate), S(ync begins), E(nds), U(nlink), R(ename), M(ark)."""
    file: int
    """The inode; 0 for the folder."""
    number: int
    """The offset of a write, the length after a truncate, the number of a sync."""
    data: bytes
    """The bytes of a write, or a name."""


class Recording(NamedTuple):
    """The changes that a program made in a folder, and the files that it left there."""

    events: list[Event]
    left: dict[str, bytes]


def compiled(folder: Path) -> Path:
    """Compile the library into a folder. Returns its path."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "there is no C compiler, which the recorder of power cuts needs: install gcc"
    library = folder / "recorder.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


def record(library: Path, place: Path, program: str, *arguments: object) -> Recording:
    """Run a Python program that gets the folder as its first argument. Returns all that it did to it.

    `place` is a folder for this recording only.
    """
    folder, trace = place.resolve() / "folder", place / "trace"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(folder), *map(str, arguments)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "LD_PRELOAD": str(library),
            "POWER_FOLDER": str(folder),
            "POWER_TRACE": str(trace),
            "POWER_SYNC": str(SYNC_TAKES),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    left = {each.name: each.read_bytes() for each in folder.iterdir()}
    return Recording(list(_events(trace.read_bytes())), left)


@cache
def marker() -> Callable[[str], None]:
    """In the recorded program: a function that adds a mark to the recording."""
    library = ctypes.CDLL(None)

    def mark(text: str) -> None:
        library.power_mark(text.encode())

    return mark


def _events(trace: bytes) -> Iterator[Event]:
    at = 0
    while at < len(trace):
        kind, file, number, length = _HEAD.unpack_from(trace, at)
        at += _HEAD.size
        yield Event(kind.decode(), file, number, trace[at : at + length])
        at += length
