"""The shapes that a saver's callers see. They are LangGraph's, so that either can stand for the other."""

from collections.abc import Mapping
from typing import Any, NamedTuple, NotRequired, TypedDict

from threadmark.versions import Version

Config = Mapping[str, Any]
"""A run's configuration; what a saver reads stands under `configurable` and `metadata`."""

ChannelVersions = Mapping[str, Version]
Metadata = dict[str, Any]
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


SPECIAL_WRITES = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}
"""Channels of which a task has at most one write, the newest; their place in a task's writes is fixed and negative."""
