"""The shapes that a saver's callers see. They are LangGraph's, so that either can stand for the other."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from threadmark.versions import Version

MAPPING = (dict, Mapping)
"""For `isinstance`: dictionaries come first, because to ask the abstract class takes six times as long."""

Config = Mapping[str, Any]
"""A run's configuration. A saver reads its `configurable` and `metadata`."""

ChannelVersions = Mapping[str, Version]
Metadata = dict[str, Any]

PruneStrategy = Literal["keep_latest", "delete"]
"""What `prune` keeps of a thread: the newest checkpoints of each namespace, or nothing."""

PlainRows = Literal["refuse", "seal"]
"""What `reencrypt` does with rows that were stored without a keyring."""

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


class Pruned(NamedTuple):
    """What a `prune` removed, or with `dry_run` would remove."""

    checkpoints: int
    writes: int
    segments: int
    bytes: int

    def plus(self, other: "Pruned") -> "Pruned":
        """Both together."""
        return Pruned(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Problem(NamedTuple):
    """Something that `verify` found.

    Its kind is "damaged" (bytes are not what was written, or are missing), "orphan" (bytes that nothing refers to; they
    cost space and no more) or "unreadable" (the bytes are right, but the serializer cannot decode them here, because a
    class is not imported, say).
    """

    kind: ProblemKind
    location: str
    problem: str


class Verified(NamedTuple):
    """What `verify` looked at, and what it found."""

    threads: int
    """How many threads there are; 0 if `verify` was given the id of a thread that does not exist."""
    checkpoints: int
    writes: int
    problems: list[Problem]
    """What is damaged or orphaned, whoever asks."""
    unreadable: list[Problem]
    """What this program cannot decode, one problem for each checkpoint. It is empty unless `decode=True` was given."""


class ChannelStats(NamedTuple):
    """What one channel's values take."""

    values: int
    bytes_stored: int
    """The segments that its values consist of. Segments shared with other channels count for each of them."""
    bytes_whole: int

    def plus(self, other: "ChannelStats") -> "ChannelStats":
        """Both together."""
        return ChannelStats(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Stats(NamedTuple):
    """What is stored, and what it would take if every checkpoint held its values whole."""

    threads: int
    checkpoints: int
    writes: int
    segments: int
    bytes_stored: int
    bytes_whole: int
    channels: dict[str, ChannelStats]
    problems: list[Problem]
    """Checkpoints and writes whose rows are damaged: their stored bytes are counted, what they would be is not known.

    `verify` names damaged values, too.
    """


SPECIAL_WRITES = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}
"""Channels to which a task has one write at most, the newest, each with a fixed negative index."""
