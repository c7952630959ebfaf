"""The shapes that a saver takes and returns. Those of checkpoints are LangGraph's: either can stand for the other."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, NotRequired, TypedDict

from threadmark.ids import Version

MAPPING = (dict, Mapping)
"""For `isinstance`: dictionaries come first, because a check of the abstract class takes six times as long."""

Config = Mapping[str, Any]
"""A run's configuration. A saver reads its `configurable` and `metadata`."""

Duration = float | timedelta
"""A length of time: a number of seconds, or a timedelta."""

ChannelVersions = Mapping[str, Version]
Metadata = dict[str, Any]

PruneStrategy = Literal["keep_latest", "delete"]
"""The checkpoints that `prune` keeps of a thread: the newest of each namespace, or none."""

ProblemKind = Literal["damaged", "orphan", "unreadable"]
"""The kinds of problems that `verify` may find; see `Problem`."""

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
    """A stored checkpoint with its metadata, parent and pending writes."""

    config: dict[str, Any]
    checkpoint: Checkpoint
    metadata: Metadata
    parent_config: dict[str, Any] | None = None
    pending_writes: list[PendingWrite] | None = None


class CheckpointRef(NamedTuple):
    """The ids of a checkpoint and its parent, without its state."""

    thread_id: str
    ns: str
    id: str
    parent: str | None


class DeltaChannelHistory(TypedDict):
    """The value of one channel at an ancestor of a checkpoint, and the writes since then, oldest first.

    `seed` is the channel's value at the nearest ancestor that has one; it is absent if none has.
    """

    writes: list[PendingWrite]
    seed: NotRequired[Any]


class UpgradeReport(NamedTuple):
    """The formats in which a database was written before `upgrade`, and is written after it."""

    before: int
    after: int
    """The same as `before` if there was nothing to do."""
    release: str = "0.1.0"
    """The first version of Threadmark that writes the format `after`. Processes of earlier ones are refused."""


class PruneReport(NamedTuple):
    """The rows that `prune` or `delete_for_runs` removed, or would remove with `dry_run`."""

    threads: int
    """The number of threads that were considered; ids of threads that do not exist are not counted."""
    checkpoints: int
    writes: int
    segments: int
    size_bytes: int
    problems: Sequence["Problem"] = ()
    """The damaged threads. They were left unchanged and are not counted."""
    kept_for_deltas: int = 0
    """How many old checkpoints stay because delta channels of newer ones are read from them."""

    def plus(self, other: "PruneReport") -> "PruneReport":
        """Return the sum of both."""
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
    """A problem that `verify` found.

    Its kind is "damaged" (bytes are missing, or are not the bytes that were written), "orphan" (nothing refers to these
    bytes; they only cost space) or "unreadable" (the bytes are right, but this program's serializer cannot decode them,
    for example because a class is not imported).
    """

    kind: ProblemKind
    location: str
    problem: str


ThreadStatus = Literal["idle", "busy", "interrupted", "error", "unfinished"]
"""The activity of a thread: "busy" with a live lease, otherwise decided by its newest checkpoint: "error" or
"interrupted" if a task wrote that, "unfinished" if nodes are still to run, else "idle"."""

ThreadSort = Literal["updated", "-updated", "created", "-created", "id", "-id"]
"""The order of a listing of threads; a minus puts the greatest first."""


class ThreadFilter(TypedDict, total=False):
    """Keyword arguments that select the threads of a listing; None leaves one out."""

    owner: str | None
    """Only this owner's threads."""
    status: ThreadStatus | None
    """Only threads that are "idle", "busy", "interrupted", "error" or "unfinished"."""
    metadata: Mapping[str, Any] | None
    """Only threads whose metadata has these keys, with equal JSON values."""
    text: str | None
    """Only threads with this text in their title, ignoring case, or in their id, in the same case."""
    since: datetime | None
    """Only threads updated at this time or later."""
    until: datetime | None
    """Only threads updated before this time."""


class ThreadInfo(NamedTuple):
    """A thread without its checkpoints."""

    id: str
    owner: str | None
    title: str | None
    metadata: Metadata
    """The thread's own metadata, set with `update_thread`. It is separate from the metadata of checkpoints."""
    created_at: datetime
    updated_at: datetime
    """The time of the last checkpoint of the graph itself (the namespace ""), or of the last message, by the clock of
    the process that stored it. A removal does not set it back."""
    status: ThreadStatus
    checkpoints: int
    """The number of its checkpoints, those of subgraphs and of the ledgers of effects included."""
    namespaces: int
    """The number of namespaces with checkpoints. Each call site of an effect has one."""
    size_bytes: int
    """The stored size of its segments, headers, metadata and pending writes, without keys and indexes."""
    newest: str | None
    """The id of the graph's newest checkpoint."""
    next: Sequence[str]
    """The nodes that are still to run after it. Empty if a task of it failed or asked a question."""
    expires_at: datetime | None
    """The time from which `apply_retention` may remove it."""
    extracted: Mapping[str, Any]
    """The parts of its newest state that you asked for with `list_threads(extract=...)`, by name; None for a part that
    is not there."""
    problems: Sequence["Problem"]
    """Failures to read a part that you asked for, which is then missing in `extracted`, or the thread's own row, whose
    owner, title, metadata and expiry are then left out, or its newest checkpoint, whose next nodes are."""


class ThreadPage(NamedTuple):
    """Some threads, and the cursor of the next page, which is None on the last page."""

    threads: list[ThreadInfo]
    cursor: str | None


class MessagePage(NamedTuple):
    """Some messages of a thread, oldest first."""

    messages: list[Any]
    before: int | None
    """The argument `before` of `extract_items` for the page of older messages; None if there are no older ones."""
    total: int
    """The number of all messages."""


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The default of arguments for which None has a meaning."""


class Progress(NamedTuple):
    """The progress of a long operation. The operation passes it to your `progress` function."""

    threads: int
    """The number of threads that are done."""
    of: int | None
    """The number of all threads, None if it is not known."""
    thread_id: str
    """The last thread that was done."""


OnProgress = Callable[[Progress], object]
"""A function that is called between two transactions. An error that it raises ends the operation and reaches you."""


class RetentionReport(NamedTuple):
    """The threads and rows that `apply_retention` removed, or would remove with `dry_run`.

    On a Redis cluster, which commits each thread by itself, two calls at the same time may count less than they
    remove, but never a thread twice.
    """

    threads: int
    """The number of threads that were considered. If nothing is pruned, only expired and idle threads count."""
    busy: int
    """The number of threads that were left alone because they had a live lease."""
    expired: int
    """The number of threads removed whole because they had expired."""
    idle: int
    """The number of threads removed whole because of `idle_for`."""
    for_space: int
    """The number of threads removed whole because of `max_bytes`."""
    size_bytes: int
    """The size of the threads that were removed whole, counted as in `ThreadInfo.size_bytes`."""
    pruned: PruneReport
    """The rows that were removed from the other threads."""
    problems: list[Problem]
    """The damaged threads. They were left unchanged."""
    seconds: float
    dry_run: bool

    def __str__(self) -> str:
        """Return the report in one line."""
        would = "would remove" if self.dry_run else "removed"
        whole = f"{self.expired} expired, {self.idle} idle, {self.for_space} for space, {self.size_bytes:,} bytes"
        threads, others = count_text(self.threads, "thread"), count_text(self.pruned.threads, "other")
        checkpoints = count_text(self.pruned.checkpoints, "checkpoint")
        left = f"{self.busy} busy and {len(self.problems)} damaged ones left alone"
        if self.pruned.kept_for_deltas:
            old = count_text(self.pruned.kept_for_deltas, "old checkpoint")
            left += f", and {old} kept, which delta channels are read from"
        removed = f"{would} {self.expired + self.idle + self.for_space} ({whole})"
        of_others = f"{checkpoints} and {self.pruned.size_bytes:,} bytes of {others}"
        return f"looked at {threads}: {removed}, and {of_others}; {left}; {self.seconds:.2f} s"

    def __repr__(self) -> str:
        """Show the figures, and the beginning of a long list of problems."""
        figures = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True) if name != "problems"]
        return f"RetentionReport({', '.join(figures)}, problems=[{beginning_of(list(map(repr, self.problems)))}])"


def count_text(count: int, what: str) -> str:
    """Return a number of things: `1 thread`, `1,204 threads`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def beginning_of(items: Sequence[str]) -> str:
    """Return the first items of a long list, and the number of the others."""
    left_out = [f"... and {len(items) - _MOST_LISTED} more"] if len(items) > _MOST_LISTED else []
    return ", ".join([*items[:_MOST_LISTED], *left_out])


_MOST_LISTED = 5


SPECIAL_WRITES = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}
"""Channels that have at most one write of each task, the newest, each with a fixed negative index."""
