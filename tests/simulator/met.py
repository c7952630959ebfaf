"""How often each kind of fault was met. A fault that was never met has proved nothing."""

from collections import Counter
from collections.abc import Iterable

Note = str


class Met:
    """Counts the events of one world, or of several."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def note(self, what: str) -> None:
        """Count something once more."""
        self.counts[what] += 1

    def add(self, other: "Met") -> None:
        """Add the counts of another world."""
        self.counts.update(other.counts)

    def never(self, expected: Iterable[str]) -> list[str]:
        """Return those that were never met."""
        return [each for each in expected if not self.counts[each]]
