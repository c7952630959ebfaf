"""The steps of a made-up graph, short enough to write many of them."""

import asyncio
from collections.abc import Callable
from typing import Any

from threadmark import Checkpoint, Saver, new_id


def thread(name: str, checkpoint_id: str | None = None) -> dict[str, Any]:
    """The configuration of a thread, or of one checkpoint of it."""
    where: dict[str, Any] = {"thread_id": name, "checkpoint_ns": ""}
    return {"configurable": where | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def step(number: int, size: int = 10) -> tuple[Checkpoint, dict[str, Any], dict[str, int]]:
    """A checkpoint, its metadata and its new versions: the arguments of `put` after the configuration."""
    versions = {"messages": number + 1, "count": number + 1}
    values = {"messages": [f"message {index} of this thread" for index in range(number * size)], "count": number}
    checkpoint = Checkpoint(
        v=4,
        id=new_id(),
        ts="2026-01-01T00:00:00+00:00",
        channel_values=values,
        channel_versions={**versions},
        versions_seen={},
        updated_channels=None,
    )
    return checkpoint, {"source": "loop", "step": number, "run_id": f"run-{number}"}, versions


def play(saver: Saver, name: str, steps: int, size: int = 10) -> dict[str, Any]:
    """Store a thread of several steps, with a pending write for each. Returns its end."""
    config = thread(name)
    for number in range(steps):
        config = saver.put(config, *step(number, size))
        saver.put_writes(config, [("messages", f"written {number} " * 20)], f"task-{number}")
    return config


async def aplay(saver: Saver, name: str, steps: int, size: int = 10) -> dict[str, Any]:
    """Like `play`, for asyncio."""
    config = thread(name)
    for number in range(steps):
        config = await saver.aput(config, *step(number, size))
        await saver.aput_writes(config, [("messages", f"written {number} " * 20)], f"task-{number}")
    return config


def count(saver: Saver, name: str) -> int | None:
    """The newest step of a thread."""
    found = saver.get(thread(name))
    return found["channel_values"]["count"] if found else None


class Blocking:
    """The methods of the blocking API, awaitable, so that one test serves both."""

    def __init__(self, saver: Saver) -> None:
        self._saver = saver

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._saver, name.removeprefix("a"))

        async def call(*args: Any, **options: Any) -> Any:
            return await asyncio.to_thread(lambda: method(*args, **options))

        return call


def asyncio_api(saver: Saver) -> Any:
    """The asyncio API as it is."""
    return saver


APIS: list[Callable[[Saver], Any]] = [Blocking, asyncio_api]
