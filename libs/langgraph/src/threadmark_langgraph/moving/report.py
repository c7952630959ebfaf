"""What became of a move."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from threadmark.types import CheckpointRef

Progress = Callable[[int, int], None]
"""Called with the number of checkpoints done, and of all."""


class NotMoved(NamedTuple):
    """A checkpoint that was not moved, and why."""

    ref: CheckpointRef
    cause: str
    """What others may have in common with it."""
    detail: str = ""
    """What is its own, such as the values that differ."""

    @property
    def reason(self) -> str:
        """All of it."""
        return f"{self.cause}: {self.detail}" if self.detail else self.cause

    def __str__(self) -> str:
        location = f"thread {self.ref.thread_id!r}, namespace {self.ref.ns!r}, checkpoint {self.ref.id!r}"
        return f"{location}: {self.reason}"


class Changed(NamedTuple):
    """A checkpoint that was exported, and of which LangGraph's serializer gives something back that is not the same.

    It does the same to what LangGraph stores itself.
    """

    ref: CheckpointRef
    cause: str
    detail: str

    def __str__(self) -> str:
        return str(NotMoved(*self))


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
    held_back: int = 0
    """How many checkpoints were not moved because others of their thread cannot be: see `partial`."""
    messages: int = 0
    """How many messages of conversations, which only move between two Threadmark savers."""
    problems: list[NotMoved] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    """What LangGraph's serializer cannot keep, such as an exception that becomes text. Tuples that become lists are
    left out, and what was there already.
    """
    incomplete: list[str] = field(default_factory=list)
    """The threads of which the target lacks checkpoints. An application would go on from older ones."""

    def note_incomplete(self, there: Iterable[CheckpointRef], *, decided: Iterable[str]) -> None:
        """Note the threads that have problems with what was not `there`, except those that are to be decided."""
        known = {ref[:3] for ref in there}
        lacking = {problem.ref.thread_id for problem in self.problems if problem.ref[:3] not in known}
        self.incomplete = sorted(lacking.difference(decided))

    @property
    def counts(self) -> str:
        """The counts in a line."""
        held_back = f", {self.held_back} held back with them" if self.held_back else ""
        messages = f" and {_counted(self.messages, 'message')}" if self.messages else ""
        checkpoints, writes = _counted(self.checkpoints, "checkpoint"), _counted(self.writes, "pending write")
        return (
            f"{checkpoints} with {writes}{messages} of {_counted(self.threads, 'thread')}, "
            f"{self.already_there} already there, {len(self.problems)} not moved{held_back}"
        )

    def __str__(self) -> str:
        """The causes, each with a count and an example, then the counts."""
        lines = [*_by_cause("not moved", self.problems), *_by_cause("moved, but changed", self.changed)]
        if self.incomplete:
            some = _counted(len(self.incomplete), "thread")
            lines.append(
                f"{some} {'lacks' if len(self.incomplete) == 1 else 'lack'} checkpoints in the target "
                f"(such as {self.incomplete[0]!r}): "
                "move these before an application uses the threads, or it goes on from older ones"
            )
        return "\n".join([*lines, self.counts])


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _by_cause(what: str, found: Iterable[NotMoved | Changed]) -> Iterator[str]:
    grouped: dict[str, list[NotMoved | Changed]] = {}
    for each in found:
        grouped.setdefault(each.cause, []).append(each)
    for cause, some in grouped.items():
        ref, _, detail = some[0]
        example = f"thread {ref.thread_id!r}, namespace {ref.ns!r}, checkpoint {ref.id!r}"
        yield f"{len(some)} {what}: {cause} (such as {example}{': ' if detail else ''}{detail})"
