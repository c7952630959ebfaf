"""The quantities of a process and its server that must be flat, and the rule that says whether they are.

They are read at rest: after each round, with no run under way and after a garbage collection. So they are exact, and
a thing that is kept shows as a rise. Only Linux has `/proc`.
"""

import asyncio
import ctypes
import gc
import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, NamedTuple

_SELF = Path("/proc/self")
_C: Any = ctypes.CDLL(None) if sys.platform == "linux" else None

OfBackend = Mapping[str, Callable[[], float]]
"""Other things to count, by their names, such as the connections that the server has."""


class Bound(NamedTuple):
    """By how much a quantity may rise: the greater of an amount and a share of its median."""

    amount: float
    share: float = 0.0


MEMORY = Bound(1.0, 0.03)
"""For the bytes that Python has allocated, in MB."""
ALLOCATED = Bound(3.0, 0.05)
"""For the bytes that the C library has handed out, in MB, of which SQLite and compiled code have caches."""
RESIDENT = Bound(8.0, 0.05)
"""For the resident memory, in MB, of which allocators keep freed parts, and a database its pages."""
COUNT = Bound(2.0)
"""For things that are counted."""
_M_ARENA_MAX = -8
"""A parameter of glibc's `mallopt`."""
FEWEST = 9
"""Samples that a verdict needs."""
_BOUNDS = {"traced memory, MB": MEMORY, "allocated memory, MB": ALLOCATED, "resident memory, MB": RESIDENT}


class Verdict(NamedTuple):
    """The judgement of the rule on one quantity."""

    quantity: str
    first: float
    """At the beginning of the last two thirds, in their middle and at their end."""
    middle: float
    last: float
    rise: float
    bound: float

    @property
    def flat(self) -> bool:
        """Whether the quantity is flat."""
        return self.rise <= self.bound

    def __str__(self) -> str:
        """Fill a row of the table."""
        numbers = " | ".join(f"{number:,.2f}" for number in self[1:])
        return f"| {self.quantity} | {numbers} | {'flat' if self.flat else 'NOT FLAT'} |"


class Samples:
    """The quantities at rest, one sample after each round."""

    def __init__(self, of_backend: OfBackend) -> None:
        self._of_backend = of_backend
        self._times: list[float] = []
        self._values: dict[str, list[float]] = {}

    def __len__(self) -> int:
        """Return how many were taken."""
        return len(self._times)

    def take(self, now: float) -> None:
        """Read all. Call it in the event loop, when nothing is under way."""
        gc.collect()
        readings = {
            "resident memory, MB": _resident(),
            "traced memory, MB": tracemalloc.get_traced_memory()[0] / 1e6,
            "file handles": links(""),
            "threads": float(len(list((_SELF / "task").iterdir()))),
            "asyncio tasks": float(len(asyncio.all_tasks())),
            **_in_use(),
            **{name: count() for name, count in self._of_backend.items()},
        }
        self._times.append(now)
        for name, value in readings.items():
            self._values.setdefault(name, []).append(value)

    def verdicts(self) -> list[Verdict]:
        """Apply the rule to each quantity."""
        return [
            judged(name, self._times, values, _BOUNDS.get(name, COUNT)) for name, values in sorted(self._values.items())
        ]


def judged(quantity: str, times: Sequence[float], values: Sequence[float], bound: Bound) -> Verdict:
    """Judge the last two thirds: the first third is for pools and caches to fill.

    The rise is the median of the slopes of all pairs of samples, times the length of the two thirds. So a few samples
    that stand out do not count, and a steady rise does.
    """
    begin = len(times) // 3
    later = list(zip(times[begin:], values[begin:], strict=True))
    slope = median((value - former) / (time - before) for (before, former), (time, value) in combinations(later, 2))
    rise = slope * (times[-1] - times[begin])
    most = max(bound.amount, bound.share * median(values[begin:]))
    return Verdict(quantity, values[begin], values[(begin + len(values)) // 2], values[-1], rise, most)


def use_one_arena() -> None:
    """Have all threads allocate from one heap, if the C library can. Call it before there are threads.

    glibc gives threads separate heaps. Freed blocks stay in each, so the resident memory grows for long before it is
    steady, though no more memory is in use.
    """
    if hasattr(_C, "mallopt"):
        _C.mallopt(_M_ARENA_MAX, 1)


def _resident() -> float:
    """The resident memory in MB, after the C library has given freed memory back, if it can."""
    if hasattr(_C, "malloc_trim"):
        _C.malloc_trim(0)
    _, _, found = (_SELF / "status").read_text().partition("VmRSS:")
    return int(found.split()[0]) * 1024 / 1e6


def _in_use() -> dict[str, float]:
    """The memory that the C library has handed out, also to compiled code and to SQLite, if it counts that.

    It is exact where the resident memory also has freed blocks between used ones.
    """
    if not hasattr(_C, "mallinfo2"):
        return {}
    _C.mallinfo2.restype = _Allocated
    found = _C.mallinfo2()
    return {"allocated memory, MB": (found.uordblks + found.hblkhd) / 1e6}


class _Allocated(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def links(beginning: str) -> float:
    """How many file handles of this process lead to such a place, as `socket:` or the path of a file."""
    found = 0
    for handle in (_SELF / "fd").iterdir():
        try:
            found += str(handle.readlink()).startswith(beginning)
        except FileNotFoundError:  # the handle of the listing itself
            continue
    return float(found)
