"""Threads as a graph makes them, for tests of copying."""

from typing import Any

from threadmark.model import CheckpointTuple
from threadmark.saver import Saver
from threadmark_conformance.engine import at, checkpoint

LONG = "a value that is stored in segments of its own. " * 8


def put(saver: Saver, thread_id: str, number: int, parent: str | None = None, **metadata: Any) -> str:
    """Put a checkpoint whose values share much with those of others. Returns its id, which sorts by the number."""
    values = {"a": [number, LONG * 3], "own": f"{number} only {LONG[:60]}{number}" * 4, "n": number}
    made = checkpoint(values, {"a": number, "own": number, "n": number}, checkpoint_id=f"{number:04d}")
    saver.put(
        at(thread_id, "", parent),
        made,
        {"step": number, "run_id": f"r{number % 2}", **metadata},
        made["channel_versions"],
    )
    return made["id"]


def write(saver: Saver, thread_id: str, checkpoint_id: str, value: Any, task: str = "task") -> None:
    """Put pending writes, one of a special channel, which takes the place of an earlier one."""
    writes = [("a", f"{value} {LONG}"), ("__interrupt__", [value, LONG])]
    saver.put_writes(at(thread_id, "", checkpoint_id), writes, task)


def history(saver: Saver, thread_id: str, steps: int = 3, first: int = 1) -> list[str]:
    """Put several checkpoints, each with writes. Returns their ids."""
    made: list[str] = []
    for number in range(first, first + steps):
        made.append(put(saver, thread_id, number, made[-1] if made else None))
        write(saver, thread_id, made[-1], number)
    return made


def of_thread(saver: Saver, thread_id: str) -> list[CheckpointTuple]:
    """All checkpoints of a thread, newest first."""
    return list(saver.list(at(thread_id)))
