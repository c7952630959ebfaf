"""Latencies in a fixed amount of memory, because a list of them would be a leak of the measurement's own."""

import math
import threading
from collections import Counter, defaultdict

_GROWTH = math.log(1.02)
"""Times within two percent are counted as one."""


class Latencies:
    """How often each kind of call took how long."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[int]] = defaultdict(Counter)
        self._lock = threading.Lock()

    def add(self, kind: str, seconds: float) -> None:
        """Count a call."""
        step = math.floor(math.log(max(seconds, 1e-7)) / _GROWTH)
        with self._lock:
            self._counts[kind][step] += 1

    def forget(self) -> None:
        """Begin again."""
        with self._lock:
            self._counts.clear()

    def table(self) -> list[str]:
        """One line for each kind: its number, and the milliseconds within which the shares of its calls ended."""
        lines = ["| latency (ms) | calls | 50 % | 99 % | 99.9 % | longest |", "|---|---:|---:|---:|---:|---:|"]
        for kind, counts in sorted(self._counts.items()):
            times = [_within(counts, share) for share in (0.5, 0.99, 0.999, 1)]
            lines.append(f"| {kind} | {counts.total():,} | {' | '.join(f'{1000 * time:.2f}' for time in times)} |")
        return lines


def _within(counts: Counter[int], share: float) -> float:
    """Return the seconds within which this share of the calls ended, to two percent above."""
    left = math.ceil(share * counts.total())
    for step, number in sorted(counts.items()):
        left -= number
        if left <= 0:
            return math.exp((step + 1) * _GROWTH)
    raise ValueError("no calls were counted")
