"""What became of a move."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from threadmark import CheckpointRef

Progress = Callable[[int, int], None]
"""Called with the number of checkpoints done, and of all."""


class NotMoved(NamedTuple):
    """A checkpoint that was not moved, and why."""

    ref: CheckpointRef
    reason: str

    def __str__(self) -> str:
        location = f"thread {self.ref.thread_id!r}, namespace {self.ref.ns!r}, checkpoint {self.ref.id!r}"
        return f"{location}: {self.reason}"


@dataclass
class Moved:
    """The counts of a move, and everything that could not be moved."""

    threads: int = 0
    checkpoints: int = 0
    """How many were stored, or would be in a dry run. Each was read back and found equal."""
    writes: int = 0
    """How many pending writes, those added to checkpoints that were there among them."""
    already_there: int = 0
    """How many were there from an earlier move."""
    problems: list[NotMoved] = field(default_factory=list)

    @property
    def counts(self) -> str:
        """The counts in a line."""
        return (
            f"{self.checkpoints} checkpoints with {self.writes} pending writes of {self.threads} threads, "
            f"{self.already_there} already there, {len(self.problems)} not moved"
        )

    def __str__(self) -> str:
        return "\n".join([self.counts, *map(str, self.problems)])
