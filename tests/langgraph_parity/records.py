"""The comparable parts of two runs: everything in a snapshot but ids and times."""

from collections.abc import Sequence
from typing import Any

from langgraph.types import PregelTask, StateSnapshot


def record(snapshots: Sequence[StateSnapshot]) -> list[dict[str, Any]]:
    """The snapshots in their order, each naming its parent by its index among them."""
    indexes = {_id(snapshot.config): index for index, snapshot in enumerate(snapshots)}
    return [
        {
            **one(snapshot),
            "parent": indexes.get(_id(snapshot.parent_config)),
            "id": indexes[_id(snapshot.config)],
        }
        for snapshot in snapshots
    ]


def one(snapshot: StateSnapshot) -> dict[str, Any]:
    """One snapshot by itself."""
    metadata: dict[str, Any] = dict(snapshot.metadata or {})
    parents = metadata.pop("parents", {})
    for key in ("run_id", "checkpoint_ns", "langgraph_checkpoint_ns"):
        metadata.pop(key, None)
    return {
        "values": snapshot.values,
        "next": snapshot.next,
        "metadata": metadata,
        "namespaces of parents": sorted(namespace.partition(":")[0] for namespace in parents),
        "tasks": [_task(task) for task in snapshot.tasks],
        "interrupts": [interrupt.value for interrupt in snapshot.interrupts],
        "named": sorted(snapshot.config["configurable"].keys() & {"thread_id", "checkpoint_ns", "checkpoint_id"}),
    }


def _task(task: PregelTask) -> dict[str, Any]:
    state = task.state
    return {
        "name": task.name,
        "path": task.path,
        # LangGraph's serializer keeps an exception as text, ours keeps the exception.
        "error": repr(task.error) if isinstance(task.error, Exception) else task.error,
        "interrupts": [interrupt.value for interrupt in task.interrupts],
        "result": task.result,
        "state": one(state) if isinstance(state, StateSnapshot) else state and sorted(state),
    }


def _id(config: Any) -> str | None:
    return config["configurable"].get("checkpoint_id") if config else None
