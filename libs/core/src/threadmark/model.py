"""The shapes that a saver's callers see. Those of checkpoints are LangGraph's: either can stand for the other."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, NotRequired, TypedDict

from threadmark.ids import Version

MAPPING = (dict, Mapping)
"""For `isinstance`: dictionaries come first, because to ask the abstract class takes six times as long."""

Config = Mapping[str, Any]
"""A run's configuration. A saver reads its `configurable` and `metadata`."""

ChannelVersions = Mapping[str, Version]
Metadata = dict[str, Any]

PruneStrategy = Literal["keep_latest", "delete"]
"""What `prune` keeps of a thread: the newest checkpoints of each namespace, or nothing."""

ProblemKind = Literal["damaged", "orphan", "unreadable"]
"""What `verify` may find; `Problem` says what each is."""

PendingWrite = tuple[str, str, Any]
"""(task_id, channel, value)"""


class Checkpoint(TypedDict, total=False):
    """The state of a graph after a step."""

    v: int
    id: str
    ts: str
    channel_values: dict[str, Any]
    channel_versions: dict[str, Version]
    versions_seen: dict[str, dict[str, Version]]
    updated_channels: list[str] | None


class CheckpointTuple(NamedTuple):
    """A stored checkpoint with everything that belongs to it."""

    config: dict[str, Any]
    checkpoint: Checkpoint
    metadata: Metadata
    parent_config: dict[str, Any] | None = None
    pending_writes: list[PendingWrite] | None = None


class CheckpointRef(NamedTuple):
    """Where a checkpoint stands, without its state."""

    thread_id: str
    ns: str
    id: str
    parent: str | None


class DeltaChannelHistory(TypedDict):
    """What the ancestors of a checkpoint contributed to one channel, oldest first.

    `seed` is the channel's value at the nearest ancestor that has one; it is absent where none has.
    """

    writes: list[PendingWrite]
    seed: NotRequired[Any]


class PruneReport(NamedTuple):
    """What a `prune` or `delete_for_runs` removed, or with `dry_run` would remove."""

    threads: int
    """How many threads were looked at; ids of threads that do not exist are not counted."""
    checkpoints: int
    writes: int
    segments: int
    size_bytes: int
    problems: Sequence["Problem"] = ()
    """The threads that are damaged. They were left as they are, and not counted."""
    kept_for_deltas: int = 0
    """How many old checkpoints stay because delta channels of newer ones are read from them."""

    def plus(self, other: "PruneReport") -> "PruneReport":
        """Both together."""
        return PruneReport(
            self.threads + other.threads,
            self.checkpoints + other.checkpoints,
            self.writes + other.writes,
            self.segments + other.segments,
            self.size_bytes + other.size_bytes,
            (*self.problems, *other.problems),
            self.kept_for_deltas + other.kept_for_deltas,
        )


class Problem(NamedTuple):
    """Something that `verify` found.

    Its kind is "damaged" (bytes are not what was written, or are missing), "orphan" (bytes that nothing refers to; they
    cost space and no more) or "unreadable" (the bytes are right, but the serializer cannot decode them here, because a
    class is not imported, say).
    """

    kind: ProblemKind
    location: str
    problem: str


ThreadStatus = Literal["idle", "busy", "interrupted", "error"]
"""What a thread is doing: a live lease makes it busy; else what the tasks of its newest checkpoint wrote decides."""

ThreadSort = Literal["updated", "-updated", "created", "-created", "id", "-id"]
"""What a listing of threads is sorted by; with a minus, the greatest comes first."""


class ThreadFilter(TypedDict, total=False):
    """Which threads a listing has, as keyword arguments; None leaves one out."""

    owner: str | None
    """Only this owner's."""
    status: ThreadStatus | None
    """Only those that are "idle", "busy", "interrupted" or "error"."""
    metadata: Mapping[str, Any] | None
    """Only those whose metadata has these keys, with equal JSON values."""
    text: str | None
    """Only those with this text in their title, whatever its case, or exactly in their id."""
    since: datetime | None
    """Only those updated at this time or later."""
    until: datetime | None
    """Only those updated before this time."""


class ThreadInfo(NamedTuple):
    """A thread without its checkpoints."""

    id: str
    owner: str | None
    title: str | None
    metadata: Metadata
    """What was set with `update_thread`. The metadata of its checkpoints is another matter."""
    created_at: datetime
    updated_at: datetime
    """When a checkpoint of the graph itself (the namespace ""), or a message, was last stored, by the clock of whoever
    did. A removal does not set it back."""
    status: ThreadStatus
    checkpoints: int
    namespaces: int
    size_bytes: int
    """Its segments, headers, metadata and pending writes, as they are stored; without keys and indexes."""
    newest: str | None
    """The id of the graph's newest checkpoint."""
    expires_at: datetime | None
    """When `retention` may remove it."""
    extracted: Mapping[str, Any]
    """The parts of its newest state that `list_threads(extract=...)` asked for, by their names; None for one that is
    not there."""
    problems: Sequence["Problem"]
    """What could not be read: a part that was asked for, which `extracted` then lacks, or the thread's own row; owner,
    title, metadata and expiry are then left out."""


class ThreadPage(NamedTuple):
    """Some threads, and the cursor with which the next ones are found; None where these are the last."""

    threads: list[ThreadInfo]
    cursor: str | None


class MessagePage(NamedTuple):
    """Some messages of a thread, oldest first."""

    messages: list[Any]
    before: int | None
    """What to give `messages` as `before` for the page of older ones; None where there are no older ones."""
    total: int
    """How many there are altogether."""


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""Stands for an argument that was not given, where None means something."""


class Progress(NamedTuple):
    """How far a long operation has come. It is given to the function that was given as `progress`."""

    threads: int
    """How many are done."""
    of: int | None
    """How many there are, None where that is not known."""
    thread_id: str
    """The last one that was done."""


OnProgress = Callable[[Progress], object]
"""Is called between two transactions. What it raises ends the operation there, and is passed on."""


class RetentionReport(NamedTuple):
    """What `retention` removed, or with `dry_run` would remove."""

    threads: int
    """How many threads were looked at. Where nothing is pruned, those are the expired and the idle ones only."""
    busy: int
    """How many of them were left alone, because somebody held a lease."""
    expired: int
    """How many were removed whole, because they had expired."""
    idle: int
    """How many, because nothing had been stored in them for so long."""
    for_space: int
    """How many, because of `max_bytes`."""
    size_bytes: int
    """The stored bytes of the threads that were removed whole, counted as in `ThreadInfo.size_bytes`."""
    pruned: PruneReport
    """What was removed from the others."""
    problems: list[Problem]
    """The threads that are damaged. They were left as they are."""
    seconds: float
    dry_run: bool

    def __str__(self) -> str:
        """Say it in one line."""
        would = "would remove" if self.dry_run else "removed"
        whole = f"{self.expired} expired, {self.idle} idle, {self.for_space} for space, {self.size_bytes:,} bytes"
        checkpoints, others = _counted(self.pruned.checkpoints, "checkpoint"), _counted(self.pruned.threads, "other")
        left = f"{self.busy} busy and {len(self.problems)} damaged ones left alone"
        if self.pruned.kept_for_deltas:
            old = _counted(self.pruned.kept_for_deltas, "old checkpoint")
            left += f", and {old} kept, which delta channels are read from"
        removed = f"{would} {self.expired + self.idle + self.for_space} ({whole})"
        of_others = f"{checkpoints} and {self.pruned.size_bytes:,} bytes of {others}"
        return f"looked at {_counted(self.threads, 'thread')}: {removed}, and {of_others}; {left}; {self.seconds:.2f} s"

    def __repr__(self) -> str:
        """Show the figures, and the beginning of a long list of problems."""
        figures = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True) if name != "problems"]
        return f"RetentionReport({', '.join(figures)}, problems=[{beginning_of(list(map(repr, self.problems)))}])"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def beginning_of(items: Sequence[str]) -> str:
    """The first items of a long list, and how many more there are."""
    left_out = [f"... and {len(items) - _MOST_SHOWN} more"] if len(items) > _MOST_SHOWN else []
    return ", ".join([*items[:_MOST_SHOWN], *left_out])


_MOST_SHOWN = 5


SPECIAL_WRITES = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}
"""Channels to which a task has one write at most, the newest, each with a fixed negative index."""
