"""Short threads, a checkpoint at a time."""

from collections.abc import Mapping
from typing import Any

import threadmark
from threadmark import Checkpoint, SaverProtocol


def put(
    saver: SaverProtocol, thread: str, step: int, values: dict[str, Any], config: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Store a checkpoint all of whose channels have changed, after another one, and return its configuration."""
    versions: dict[str, int | float | str] = dict.fromkeys(values, step + 1)
    checkpoint: Checkpoint = {
        "v": 4,
        "id": threadmark.new_id(),
        "ts": "2026-11-20T12:00:00+00:00",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
    }
    before = config or {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return saver.put(before, checkpoint, {"source": "loop", "step": step}, versions)
