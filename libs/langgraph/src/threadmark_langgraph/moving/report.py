"""The result of a move: counts, and everything that was not moved or has changed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from threadmark.model import count_text
from threadmark.types import CheckpointRef

Progress = Callable[[int, int], None]
"""Called with the number of checkpoints that are done and the number of all."""


class NotMoved(NamedTuple):
    """A checkpoint that was not moved, with the reason."""

    ref: CheckpointRef
    cause: str
    """The reason in words that other checkpoints may share."""
    detail: str = ""
    """The part of the reason that is only about this checkpoint, such as the values that differ."""

    @property
    def reason(self) -> str:
        """The cause with its detail."""
        return f"{self.cause}: {self.detail}" if self.detail else self.cause

    def __str__(self) -> str:
        location = f"thread {self.ref.thread_id!r}, namespace {self.ref.ns!r}, checkpoint {self.ref.id!r}"
        return f"{location}: {self.reason}"


class Changed(NamedTuple):
    """A checkpoint that was exported, and of which LangGraph's serializer returns a different value.

    The serializer changes values that LangGraph stores itself in the same way.
    """

    ref: CheckpointRef
    cause: str
    detail: str

    def __str__(self) -> str:
        return str(NotMoved(*self))


@dataclass
class Moved:
    """The result of `migrate` or `export`: counts, and everything that could not be moved."""

    threads: int = 0
    checkpoints: int = 0
    """How many were stored, or would be stored in a dry run. Each was read back and compared."""
    writes: int = 0
    """How many pending writes were stored, including those added to checkpoints that were there already."""
    already_there: int = 0
    """How many checkpoints were there from an earlier move."""
    held_back: int = 0
    """How many checkpoints were not moved because others of their thread cannot be: see `partial`."""
    messages: int = 0
    """How many messages of conversations were moved. They only move between two Threadmark savers."""
    problems: list[NotMoved] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    """Values that LangGraph's serializer cannot keep, such as an exception that becomes text.

    Not listed are tuples that become lists, and checkpoints that were there already.
    """
    incomplete: list[str] = field(default_factory=list)
    """The threads whose checkpoints are not all in the target. An application would go on from older ones."""

    def note_incomplete(self, there: Iterable[CheckpointRef], *, decided: Iterable[str]) -> None:
        """Record the threads with problems in checkpoints that are not `there`, except those that are to be decided."""
        known = {ref[:3] for ref in there}
        lacking = {problem.ref.thread_id for problem in self.problems if problem.ref[:3] not in known}
        self.incomplete = sorted(lacking.difference(decided))

    @property
    def counts(self) -> str:
        """The counts in one line."""
        held_back = f", {self.held_back} held back with them" if self.held_back else ""
        messages = f" and {count_text(self.messages, 'message')}" if self.messages else ""
        checkpoints, writes = count_text(self.checkpoints, "checkpoint"), count_text(self.writes, "pending write")
        return (
            f"{checkpoints} with {writes}{messages} of {count_text(self.threads, 'thread')}, "
            f"{self.already_there} already there, {len(self.problems)} not moved{held_back}"
        )

    def __str__(self) -> str:
        """Return the causes, each with a count and an example, and then the counts."""
        lines = [*_by_cause("not moved", self.problems), *_by_cause("moved, but changed", self.changed)]
        if self.incomplete:
            some = count_text(len(self.incomplete), "thread")
            lines.append(
                f"{some} {'lacks' if len(self.incomplete) == 1 else 'lack'} checkpoints in the target "
                f"(such as {self.incomplete[0]!r}): "
                "move these before an application uses the threads, or it goes on from older ones"
            )
        return "\n".join([*lines, self.counts])


def _by_cause(what: str, found: Iterable[NotMoved | Changed]) -> Iterator[str]:
    grouped: dict[str, list[NotMoved | Changed]] = {}
    for each in found:
        grouped.setdefault(each.cause, []).append(each)
    for cause, some in grouped.items():
        ref, _, detail = some[0]
        example = f"thread {ref.thread_id!r}, namespace {ref.ns!r}, checkpoint {ref.id!r}"
        yield f"{len(some)} {what}: {cause} (such as {example}{': ' if detail else ''}{detail})"
