"""Packets (`Send`) of checkpoints before LangGraph's format 4, which are among the parent's pending writes."""

from typing import Any

from langgraph.checkpoint.base import CheckpointTuple, PendingWrite

TASKS = "__pregel_tasks"
"""LangGraph's channel of packets."""

_FIRST_WITH_TASKS_CHANNEL = 4


def lacks_sends(found: CheckpointTuple) -> bool:
    """Return whether the checkpoint has the old format, so that its packets are stored with its parent."""
    checkpoint = found.checkpoint
    return (
        checkpoint.get("v", _FIRST_WITH_TASKS_CHANNEL) < _FIRST_WITH_TASKS_CHANNEL
        and found.parent_config is not None
        and not checkpoint.get("pending_sends")
        and TASKS not in checkpoint["channel_values"]
    )


def with_sends(found: CheckpointTuple, parent: CheckpointTuple | None) -> CheckpointTuple:
    """Return the checkpoint with the packets that its parent's tasks sent, in the channel they now belong to."""
    writes: list[PendingWrite] = (parent.pending_writes if parent else None) or []
    sends = [value for _, channel, value in writes if channel == TASKS]
    if not sends:
        return found
    checkpoint = found.checkpoint
    checkpoint["channel_values"][TASKS] = sends
    # An older version would count as seen; with the newest one the packets are due.
    checkpoint["channel_versions"][TASKS] = max(checkpoint["channel_versions"].values(), default=1, key=_comparable)
    return found


def _comparable(version: Any) -> tuple[bool, Any]:
    """Return a sort key for a version: a thread that changed its saver may have numbers and text."""
    return isinstance(version, str), version
