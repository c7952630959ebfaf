"""A thread of 5,000 checkpoints with a state of 10 MB, made in two seconds."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import threadmark
from threadmark import Checkpoint, SaverProtocol

CHECKPOINTS = 5_000
THREAD = "long"
DOCUMENTS = 2_500
CHARACTERS = 4_000
OTHERS = 300
"""Threads that have nothing but a name."""


@contextmanager
def large_saver() -> Iterator[SaverProtocol]:
    """Fill a saver in memory."""
    with threadmark.open("memory:") as saver:
        for number in range(OTHERS):
            saver.create_thread(f"other-{number:03}", title=f"Thread number {number}")
        put_steps(saver, THREAD, CHECKPOINTS)
        yield saver


def put_steps(saver: SaverProtocol, thread: str, checkpoints: int) -> None:
    """Store a line of checkpoints, each of which changes a small channel and keeps large ones."""
    documents = [f"document {number} " + "lorem ipsum " * (CHARACTERS // 12) for number in range(DOCUMENTS)]
    state = {"documents": documents, "essay": "words " * 50_000, "count": 0}
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    for step in range(checkpoints):
        new = {"count": step} if step else {"documents": 1, "essay": 1, "count": 0}
        state["count"] = step
        checkpoint: Checkpoint = {
            "v": 4,
            "id": step_id(step),
            "ts": "2026-11-20T12:00:00+00:00",
            "channel_values": state,
            "channel_versions": {"documents": 1, "essay": 1, "count": step + 1},
            "versions_seen": {},
        }
        versions = {name: checkpoint["channel_versions"][name] for name in new}
        config = saver.put(config, checkpoint, {"source": "loop", "step": step}, versions)


def step_id(step: int) -> str:
    """Return the id of a step's checkpoint. They sort in their order."""
    return str(uuid.UUID(int=(0x1F1E4C0000006000 + step) << 64 | 0x8000 << 48))
