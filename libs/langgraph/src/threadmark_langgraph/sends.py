"""Packets of checkpoints that LangGraph wrote before format 4: they are among the parent's pending writes."""

from typing import Any

from langgraph.checkpoint.base import CheckpointTuple, PendingWrite

TASKS = "__pregel_tasks"
"""LangGraph's channel of packets."""

_FIRST_WITH_TASKS_CHANNEL = 4


def lacks_sends(found: CheckpointTuple) -> bool:
    """Whether the checkpoint is of an old format and its packets have to be looked for at its parent."""
    checkpoint = found.checkpoint
    return (
        checkpoint.get("v", _FIRST_WITH_TASKS_CHANNEL) < _FIRST_WITH_TASKS_CHANNEL
        and found.parent_config is not None
        and not checkpoint.get("pending_sends")
        and TASKS not in checkpoint["channel_values"]
    )


def with_sends(found: CheckpointTuple, parent: CheckpointTuple | None) -> CheckpointTuple:
    """The checkpoint with the packets that its parent's tasks sent, in the channel where they belong now."""
    writes: list[PendingWrite] = (parent.pending_writes if parent else None) or []
    sends = [value for _, channel, value in writes if channel == TASKS]
    if not sends:
        return found
    checkpoint = found.checkpoint
    checkpoint["channel_values"][TASKS] = sends
    # Older than every version, it would be taken for seen; as new as the newest, it is due.
    checkpoint["channel_versions"][TASKS] = max(checkpoint["channel_versions"].values(), default=1, key=_comparable)
    return found


def _comparable(version: Any) -> tuple[bool, Any]:
    """A version among others of its kind: a thread that changed its saver may have numbers and text."""
    return isinstance(version, str), version
