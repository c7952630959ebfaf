"""The contents of a checkpoint: its channels and its pending writes. A damaged part does not hide the rest."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from threadmark import CheckpointTuple, ConfigError, CorruptDataError, SaverProtocol
from threadmark.errors import LocatedError
from threadmark.serde.steps import NOTHING
from threadmark.types import HistoryEntry, ObjectView, Problem, WriteInfo
from threadmark_cli.describing import channels_without_value
from threadmark_cli.page.nodes import Budget, Cut, Node, changes_of, channel_path, node_of, nodes_of, unread
from threadmark_cli.page.shapes import config_of, write_shape, writes_shape

_STEPS_READ = 64
"""The changes of so many steps are read with the checkpoint. Those of more are read when they are asked for."""

_COUNTERS = "counters_since_delta_snapshot"
_SNAPSHOT = ":_DeltaSnapshot"


class Contents(NamedTuple):
    """The contents of a checkpoint, as they are sent."""

    channels: list[dict[str, Any]]
    writes: list[dict[str, Any]]
    problem: Problem | None
    """Why it could not be read as a whole."""


async def contents_of(saver: SaverProtocol, thread: str, entry: HistoryEntry) -> Contents | None:
    """Return the contents of a checkpoint, None if it was removed since its entry was read."""
    config = config_of(thread, entry.ns, entry.id)
    try:
        found = await saver.aget_tuple(config)
    except LocatedError as error:
        writes = [_unread_write(write) for write in entry.writes]
        return Contents(await _one_by_one(saver, config), writes, _problem(error))
    if found is None:
        return None
    budget = Budget()
    channels = [*_channels(found, budget), *await _deltas(saver, config, found, budget)]
    return Contents(channels, writes_shape(found.pending_writes or [], entry.writes, budget), None)


def _channels(found: CheckpointTuple, budget: Budget) -> list[dict[str, Any]]:
    checkpoint = found.checkpoint
    versions, values = checkpoint["channel_versions"], checkpoint["channel_values"]
    plain = {name: snapshot_of(value) if is_snapshot(value) else value for name, value in values.items()}
    return [
        {"name": name, "version": versions.get(name), "node": node, "delta": is_snapshot(values[name])}
        for name, node in nodes_of(plain, budget, Cut())
    ]


def is_snapshot(value: object) -> TypeGuard[ObjectView]:
    """Return whether a value is LangGraph's snapshot of a delta channel: all of it."""
    return type(value) is ObjectView and value.name.endswith(_SNAPSHOT)


def snapshot_of(value: ObjectView) -> Any:
    """Return the channel's value."""
    return next(iter(value.fields.values()), None)


async def _deltas(
    saver: SaverProtocol, config: Mapping[str, Any], found: CheckpointTuple, budget: Budget
) -> list[dict[str, Any]]:
    """Return the channels that are stored as changes. They have a version and no value, as empty channels do."""
    versions = found.checkpoint["channel_versions"]
    names = []
    for name in channels_without_value(found.checkpoint):
        try:
            await saver.aextract(config, channel_path(name))
        except ConfigError:  # only the graph can make its value
            names.append(name)
    few = [name for name in names if _steps_since_snapshot(found, name) <= _STEPS_READ]
    try:
        parts = await changes_in(saver, config, few)
    except LocatedError:  # a checkpoint before this one is damaged, which the page says when the channel is unfolded
        parts = {}
    return [
        {"name": name, "version": versions[name], "node": changes_of(parts.get(name), budget), "delta": True}
        for name in names
    ]


def _steps_since_snapshot(found: CheckpointTuple, name: str) -> float:
    """Return how many steps wrote a delta channel since its last snapshot, as LangGraph counts them; or infinity."""
    counters = found.metadata.get(_COUNTERS)
    counted = counters.get(name) if isinstance(counters, Mapping) else None
    if isinstance(counted, (list, tuple)) and len(counted) > 1 and isinstance(counted[1], int):
        return counted[1]
    return math.inf


async def changes_in(
    saver: SaverProtocol, config: Mapping[str, Any], names: Sequence[str]
) -> dict[str, list[tuple[str, Any]]]:
    """Return the parts of delta channels: the last snapshot and the writes since then, each with a label."""
    if not names:
        return {}
    histories = await saver.aget_delta_channel_history(config=config, channels=names)
    found: dict[str, list[tuple[str, Any]]] = {}
    for name, history in histories.items():
        seed = history.get("seed", NOTHING)
        parts = [] if seed is NOTHING else [("snapshot", snapshot_of(seed) if is_snapshot(seed) else seed)]
        parts += [(f"change {number}", value) for number, (_, _, value) in enumerate(history["writes"], 1)]
        found[name] = parts
    return found


async def _one_by_one(saver: SaverProtocol, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the channels of a checkpoint that cannot be read as a whole."""
    try:
        names = (await saver.adiff(config, config)).equal  # a checkpoint is equal to itself: no value is read
    except LocatedError:  # it is its list of channels that is damaged
        return []
    return [{"name": name, "version": None, "node": await _one(saver, config, name, len(names))} for name in names]


async def _one(saver: SaverProtocol, config: Mapping[str, Any], name: str, channels: int) -> Node:
    try:
        value = await saver.aextract(config, channel_path(name), NOTHING)
    except LocatedError as error:
        problem = _problem(error)
        return unread(problem.kind, problem.problem)
    except ConfigError:
        return changes_of(None, Budget())
    return node_of(value, Budget().share(channels))


def _problem(error: LocatedError) -> Problem:
    return Problem("damaged" if isinstance(error, CorruptDataError) else "unreadable", error.location, error.problem)


def _unread_write(write: WriteInfo) -> dict[str, Any]:
    return write_shape(write.task_id, write.node, write.channel, unread("not read", "the checkpoint cannot be read"))
