"""Temporary folders in memory, so that a test does not wait for a disk that has nothing to show.

A commit on SQLite or on a durable Redis waits for the disk, which takes milliseconds, and the suite makes many of them.
No test cuts the power of a real disk: power/ replays the writes in each order. So the short form keeps all its files,
and those of its servers, in memory if the system has a folder for this. The long form uses the disk.
"""

import os
import tempfile
from pathlib import Path

from length import ALL

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the folders in it are made by tempfile
_ROOM = 4 * 1024**3
"""Bytes; a run keeps less, and Postgres may fill a log of a gigabyte for each process of the run."""


def use_memory() -> None:
    """Make temporary folders in memory from now on, here and in child processes, unless you chose a place for them."""
    if not ALL and "TMPDIR" not in os.environ and _has_room(_IN_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(_IN_MEMORY)


def _has_room(folder: Path) -> bool:
    """Return whether the folder can be used: some systems have none, or do not run programs in it."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize > _ROOM and not found.f_flag & os.ST_NOEXEC
