"""What a checkpoint holds: its channels and its pending writes. What is damaged leaves the rest to be seen."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from threadmark import CheckpointTuple, ConfigError, CorruptDataError, SaverProtocol
from threadmark.errors import LocatedError
from threadmark.serde.steps import NOTHING
from threadmark.types import HistoryEntry, Problem, WriteInfo
from threadmark_cli.page.nodes import Budget, Cut, Node, channel_path, node_of, nodes_of, unread
from threadmark_cli.page.shapes import config_of, write_shape, writes_shape

_MOST_ASKED = 50
"""How many channels without a value are asked whether they are delta channels."""

_OF_THE_GRAPH = ("branch:", "__")
"""What the names of LangGraph's own channels begin with. They are empty most of the time."""


class Contents(NamedTuple):
    """What a checkpoint holds, as it is sent."""

    channels: list[dict[str, Any]]
    writes: list[dict[str, Any]]
    problem: Problem | None
    """Why it could not be read as a whole."""


async def contents_of(saver: SaverProtocol, thread: str, entry: HistoryEntry) -> Contents | None:
    """Return what a checkpoint holds, None where it was removed since its entry was read."""
    config = config_of(thread, entry.ns, entry.id)
    try:
        found = await saver.aget_tuple(config)
    except LocatedError as error:
        writes = [_unread_write(write) for write in entry.writes]
        return Contents(await _one_by_one(saver, config), writes, _problem(error))
    if found is None:
        return None
    budget = Budget()
    channels = [*_channels(found, budget), *await _deltas(saver, config, found)]
    return Contents(channels, writes_shape(found.pending_writes or [], entry.writes, budget), None)


def _channels(found: CheckpointTuple, budget: Budget) -> list[dict[str, Any]]:
    checkpoint = found.checkpoint
    versions = checkpoint["channel_versions"]
    return [
        {"name": name, "version": versions.get(name), "node": node}
        for name, node in nodes_of(checkpoint["channel_values"], budget, Cut())
    ]


async def _deltas(saver: SaverProtocol, config: Mapping[str, Any], found: CheckpointTuple) -> list[dict[str, Any]]:
    """Return the channels that are stored as changes. They have a version and no value, as empty channels do."""
    checkpoint = found.checkpoint
    versions = checkpoint["channel_versions"]
    absent = versions.keys() - checkpoint["channel_values"].keys()
    asked = sorted(name for name in absent if not name.startswith(_OF_THE_GRAPH))[:_MOST_ASKED]
    channels = []
    for name in asked:
        try:
            await saver.aextract(config, channel_path(name))
        except ConfigError:  # only the graph can make its value
            channels.append({"name": name, "version": versions[name], "node": _DELTA})
    return channels


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
        return _DELTA
    return node_of(value, Budget().share(channels))


def _problem(error: LocatedError) -> Problem:
    return Problem("damaged" if isinstance(error, CorruptDataError) else "unreadable", error.location, error.problem)


def _unread_write(write: WriteInfo) -> dict[str, Any]:
    return write_shape(write.task_id, write.node, write.channel, unread("not read", "the checkpoint cannot be read"))


_DELTA = unread("stored as changes", "only the graph can make its value: graph.get_state(config).values")
