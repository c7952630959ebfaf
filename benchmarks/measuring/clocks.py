"""Wall time and processor time, taken together."""

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from measuring.jobs import Seconds

T = TypeVar("T")


def now() -> Seconds:
    """Both clocks. That of the processor counts all threads of this process."""
    return Seconds(time.perf_counter(), time.process_time())


def since(begun: Seconds, operations: int = 1) -> Seconds:
    """The time that has passed since, for each operation."""
    wall, cpu = now()
    return Seconds((wall - begun.wall) / operations, (cpu - begun.cpu) / operations)


def timed(call: Callable[[], T]) -> tuple[Seconds, T]:
    """The time of a call, and its result."""
    begun = now()
    result = call()
    return since(begun), result


def medians(taken: Iterable[Seconds]) -> Seconds:
    """The median of each clock."""
    walls, cpus = zip(*taken, strict=True)
    return Seconds(statistics.median(walls), statistics.median(cpus))


class Recorded:
    """The times of several operations, each under its name."""

    def __init__(self) -> None:
        self._taken: dict[str, list[Seconds]] = {}

    def call(self, name: str, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Make a call and keep its time."""
        begun = now()
        result = call(*args, **kwargs)
        self._taken.setdefault(name, []).append(since(begun))
        return result

    def add(self, name: str, seconds: Seconds) -> None:
        """Keep a time measured elsewhere."""
        self._taken.setdefault(name, []).append(seconds)

    def medians(self) -> dict[str, Seconds]:
        """The median of each operation."""
        return {name: medians(taken) for name, taken in self._taken.items()}

    def walls(self) -> dict[str, list[float]]:
        """Return the wall time of each call."""
        return {name: [each.wall for each in taken] for name, taken in self._taken.items()}
