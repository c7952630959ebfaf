"""A very small engine that makes checkpoints step by step, so that cases read like the run of a graph."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from threadmark.ids import Version, new_id, uuid6_text
from threadmark.model import Checkpoint, CheckpointTuple, Config
from threadmark.saver import Saver

EARLY = 0x1E0000000000000
"""A time in UUID ticks long before now: ids made from it sort before those of a running clock."""


def at(thread_id: Any, ns: str | None = None, checkpoint_id: Any = None) -> dict[str, Any]:
    """Return the config of a thread, a namespace or a checkpoint. Parts that are None are left out."""
    found = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    return {"configurable": {key: value for key, value in found.items() if value is not None}}


def checkpoint(
    values: Mapping[str, Any] | None = None,
    versions: Mapping[str, Version] | None = None,
    *,
    checkpoint_id: str | None = None,
    **fields: Any,
) -> Checkpoint:
    """Return a checkpoint as an engine makes it. Channels with a value have version 1, or that of `versions`."""
    channel_values = dict(values or {})
    made = {
        "v": 4,
        "id": checkpoint_id or new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": channel_values,
        "channel_versions": dict.fromkeys(channel_values, 1) if versions is None else dict(versions),
        "versions_seen": {},
        "updated_channels": None,
        **fields,
    }
    return cast("Checkpoint", made)  # a case may add fields


def early_id(number: int) -> str:
    """Return an id of long ago; greater numbers sort later."""
    return uuid6_text(EARLY + number, 0)


class Run:
    """One thread as a graph runs it: each step puts a child of the checkpoint before."""

    def __init__(self, saver: Saver, thread_id: Any = "thread", ns: str = "") -> None:
        self.saver = saver
        self.config = at(thread_id, ns)
        self.values: dict[str, Any] = {}
        self.versions: dict[str, Version] = {}
        self.count = -1

    async def step(
        self,
        changed: Mapping[str, Any] | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        checkpoint_id: str | None = None,
        unsaved: Collection[str] = (),
    ) -> dict[str, Any]:
        """Put the next checkpoint with these channels changed. Those in `unsaved` change without a value in it."""
        self.count += 1
        self.values = {**self.values, **(changed or {})}
        new = {channel: self._next(channel) for channel in [*(changed or {}), *unsaved]}
        self.versions = {**self.versions, **new}
        made = checkpoint(self.values, self.versions, checkpoint_id=checkpoint_id)
        placed = await self.saver.aput(self.config, made, {"step": self.count, **(metadata or {})}, new)
        self.config = placed
        return placed

    async def write(self, *writes: tuple[str, Any], task: str = "task", path: str = "") -> None:
        """Put writes of a task of the next step."""
        await self.saver.aput_writes(self.config, writes, task, path)

    def fork(self, config: dict[str, Any]) -> "Run":
        """Return another run that goes on from a checkpoint of this one."""
        other = Run(self.saver)
        other.config, other.count = config, self.count
        other.values, other.versions = dict(self.values), dict(self.versions)
        return other

    def _next(self, channel: str) -> Version:
        return self.saver.get_next_version(self.versions.get(channel))


async def got(saver: Saver, config: Config | str) -> CheckpointTuple:
    """Return the checkpoint, which must exist."""
    found = await saver.aget_tuple(config)
    assert found is not None, f"nothing is stored at {config}"
    return found


async def values(saver: Saver, config: Config | str) -> dict[str, Any]:
    """Return the channel values of the checkpoint, which must exist."""
    return (await got(saver, config)).checkpoint["channel_values"]


async def pending(saver: Saver, config: Config) -> list[tuple[str, str, Any]]:
    """Return the pending writes of the checkpoint, which must exist."""
    return (await got(saver, config)).pending_writes or []


async def listed(saver: Saver, config: Config | str | None, **options: Any) -> list[CheckpointTuple]:
    """Return all items of a listing."""
    return [item async for item in saver.alist(config, **options)]


def ids(items: Sequence[CheckpointTuple]) -> list[str]:
    """The ids of checkpoints."""
    return [item.checkpoint["id"] for item in items]


def id_of(config: Config) -> str:
    """The id of the checkpoint that a configuration names."""
    found: str = config["configurable"]["checkpoint_id"]
    return found
