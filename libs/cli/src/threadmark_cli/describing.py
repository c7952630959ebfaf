"""A checkpoint described in a line: its nodes, its changes, its tasks' writes."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from threadmark import Checkpoint
from threadmark.types import HistoryEntry
from threadmark_cli.output import Part

_BRANCH = "branch:to:"
_TASK = re.compile(r":([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![^|:])")
"""The id of the task for which a subgraph was called, as it stands in a namespace."""
_OWN = "__"
"""The beginnings of names of the engine's own channels."""

_SPECIAL: Mapping[str, Part] = {
    "__error__": ("error", "bad"),
    "__interrupt__": ("interrupt", "warning"),
    "__resume__": ("resume", "good"),
    "__scheduled__": ("scheduled", "dim"),
}
"""The channels with a special meaning, and that meaning."""

_MOST_LACKING = 50
"""Channels without a value that are looked at."""

DELTA = "stored as changes (a delta channel): graph.get_state(config).values has its value"
"""The text in place of a value that only the graph can make."""


def what_ran(entry: HistoryEntry) -> str:
    """The nodes that ran, or the other source of the checkpoint."""
    return ", ".join(entry.nodes) or entry.source or "-"


def short_ns(ns: str) -> str:
    """A namespace with only the beginning of each task's id: of `lookup:<id of 36 characters>` it is `lookup:1a2b`."""
    return _TASK.sub(r":\1", ns)


def own_channels(channels: Sequence[str]) -> list[str]:
    """Those that are the application's, not the engine's."""
    return [channel for channel in channels if not is_of_the_engine(channel)]


def channels_without_value(checkpoint: Checkpoint) -> list[str]:
    """The application's channels that have a version and no value, up to 50: empty ones and delta channels."""
    absent = checkpoint["channel_versions"].keys() - checkpoint["channel_values"].keys()
    return own_channels(sorted(absent))[:_MOST_LACKING]


def is_of_the_engine(channel: str) -> bool:
    """Whether a channel is one of LangGraph's own, which selects the next tasks."""
    return channel.startswith((_BRANCH, _OWN))


def signs(entry: HistoryEntry) -> list[Part]:
    """Words about the pending writes: an error, a question, its answer; and about damage."""
    channels = {write.channel for write in entry.writes}
    found = [sign for channel, sign in _SPECIAL.items() if channel in channels]
    return [*found, ("damaged", "bad")] if entry.problem else found


def kind_of_write(channel: str) -> str:
    """The kind of a pending write: `write`, `error`, `interrupt`, `resume` or `scheduled`."""
    sign = _SPECIAL.get(channel)
    return "write" if sign is None else sign[0]


def entry_record(thread_id: str, entry: HistoryEntry) -> dict[str, Any]:
    """A checkpoint as `--json` has it."""
    record = {"thread": thread_id, **entry._asdict(), "created_at": entry.created_at.isoformat()}
    record["writes"] = [write._asdict() for write in entry.writes]
    record["problem"] = entry.problem and entry.problem._asdict()
    return record
