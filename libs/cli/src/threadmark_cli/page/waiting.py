"""The reasons why a thread waits: the questions of its newest checkpoint's tasks and their errors."""

from collections.abc import Sequence
from typing import Any

from threadmark import SaverProtocol
from threadmark.errors import LocatedError
from threadmark.types import HistoryEntry, ThreadInfo, WriteInfo
from threadmark_cli.page.nodes import Budget, Cut, node_of, unread
from threadmark_cli.page.shapes import config_of, write_kind

_MOST = 20
"""The most tasks that are sent. A graph may ask a thousand questions at once."""

_DEEPEST = 8
"""How many subgraphs within each other are looked into for the node that asks."""

_CUT = Cut(3, 5)


async def waiting_of(saver: SaverProtocol, info: ThreadInfo) -> list[dict[str, Any]]:
    """Return the tasks of a thread that is interrupted or failed, each with its node and its question or error."""
    if info.status not in ("interrupted", "error"):
        return []
    page = await saver.ahistory(config_of(info.id, "", info.newest), ns="", limit=1)
    if not page.entries:
        return []
    entry = page.entries[0]
    tasks = _tasks(entry)[:_MOST]
    values = await _values(saver, info.id, entry)
    budget = Budget(1_000, 20_000)
    found = []
    for write in tasks:
        key = write.task_id, write.channel
        value = node_of(values[key], budget, _CUT) if key in values else unread("not read", "it cannot be read")
        found.append(
            {
                "kind": write_kind(write.channel),
                "nodes": await _nodes(saver, info.id, "", write, _DEEPEST),
                "ns": entry.ns,
                "id": entry.id,
                "step": entry.step,
                "value": value,
            }
        )
    return found


def _tasks(entry: HistoryEntry) -> list[WriteInfo]:
    """Return the writes that are questions or errors. A task that has written its results has been answered."""
    done = {write.task_id for write in entry.writes if write_kind(write.channel) == "write"}
    special = [write for write in entry.writes if write_kind(write.channel) in ("error", "interrupt")]
    return [write for write in special if write.task_id not in done] or special


async def _values(saver: SaverProtocol, thread: str, entry: HistoryEntry) -> dict[tuple[str, str], Any]:
    try:
        found = await saver.aget_tuple(config_of(thread, entry.ns, entry.id))
    except LocatedError:  # the view of the checkpoint reports the damage
        return {}
    return {(task, channel): value for task, channel, value in (found.pending_writes or [] if found else [])}


async def _nodes(saver: SaverProtocol, thread: str, ns: str, write: WriteInfo, deepest: int) -> Sequence[str]:
    """Return the node of a task, and the nodes within its subgraphs that wrote the same, outermost first."""
    if write.node is None or deepest == 0:
        return [] if write.node is None else [write.node]
    outer = f"{ns}|{write.node}" if ns else write.node
    for inner in (f"{outer}:{write.task_id}", outer):  # a subgraph with its own memory has no task in its name
        page = await saver.ahistory(thread, ns=inner, limit=1)
        same = [each for entry in page.entries for each in entry.writes if each.channel == write.channel]
        if same:
            return [write.node, *await _nodes(saver, thread, inner, same[0], deepest - 1)]
    return [write.node]
