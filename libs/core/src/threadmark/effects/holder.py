"""The process that holds a claim: which one it is, whether it has ended, and which calls still run in this one.

A process id means something only on its machine, in its namespace of process ids, and until another process gets the
same number. So a holder also has the time at which it began. If any of this is unknown, the process may be alive, and
only the time without a renewal decides.
"""

import os
import socket
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_START, _STATE = 19, 0
"""The places of the time at which a process began and of its state, after the name in /proc/PID/stat."""

_ENDED = ("Z", "X")
"""The states of a process that runs no more."""


class Holder(NamedTuple):
    """A process, as a claim names it."""

    machine: str
    """The boot of a machine and a namespace of process ids, "" if they are unknown."""
    process: int
    began: str
    name: str
    """The host, for messages."""

    def __str__(self) -> str:
        return f"process {self.process} on {self.name}"

    def has_ended(self) -> bool:
        """Whether the process has certainly ended. It may be False because that cannot be known from here."""
        here = this_process()
        if not here.machine or self.machine != here.machine or self == here:
            return False
        began = _began(self.process)
        return _is_unknown(self.process) if began is None else began != self.began

    def is_here(self) -> bool:
        """Whether it is this process."""
        return self == this_process()


def this_process() -> Holder:
    """Return the present process."""
    return _process(os.getpid())


@lru_cache(maxsize=1)
def _process(process: int) -> Holder:
    began = _began(process)
    return Holder(_machine() if began else "", process, began or "", socket.gethostname())


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _began(process: int) -> str | None:
    """When a process began, in the system's own unit; "" if it has ended, and None if the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if fields[_STATE] in _ENDED else fields[_START]
    except (OSError, IndexError):
        return None


def _is_unknown(process: int) -> bool:
    """Whether there is no such process. Some systems hide those of other users from /proc."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


running: set[str] = set()
"""The claims whose calls run in this process. Any other claim of this process has ended without a result."""
