"""Threads and checkpoints as JSON for the page."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from threadmark.types import Edit, HistoryEntry, Match, Problem, ThreadInfo, Tree, ValueChange, WriteInfo
from threadmark_cli.effects import without_ledgers
from threadmark_cli.page.nodes import Budget, Cut, Node, node_of

_WRITE_KINDS = {
    "__error__": "error",
    "__interrupt__": "interrupt",
    "__resume__": "resume",
    "__scheduled__": "scheduled",
}

_LONGEST_EQUAL = 2_000
"""The characters sent of a text that is the same on both sides: half from its beginning, half from its end."""


def time_text(moment: datetime | None) -> str | None:
    """Return a time in ISO 8601, in UTC."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def config_of(thread: str, ns: str, checkpoint_id: str | None) -> dict[str, Any]:
    """Return the configuration that names a checkpoint, or the newest one of a namespace."""
    configurable = {"thread_id": thread, "checkpoint_ns": ns}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


def problem_shape(problem: Problem | None) -> dict[str, str] | None:
    """Return the problem of something."""
    return None if problem is None else problem._asdict()


def thread_shape(info: ThreadInfo) -> dict[str, Any]:
    """Return a thread without its checkpoints."""
    shape = info._asdict()
    del shape["extracted"]
    times = {name: time_text(shape[name]) for name in ("created_at", "updated_at", "expires_at")}
    return {**shape, **times, "problems": [problem_shape(problem) for problem in info.problems]}


def entry_shape(entry: HistoryEntry) -> dict[str, Any]:
    """Return a checkpoint without its values."""
    return {
        **entry._asdict(),
        "created_at": time_text(entry.created_at),
        "writes": [write._asdict() for write in entry.writes],
        "problem": problem_shape(entry.problem),
    }


MOST_NODES = 5000
"""The rows of a tree. Older ones are in the timeline, which comes in pages."""


def tree_shape(tree: Tree) -> dict[str, Any]:
    """Return a tree of its newest nodes, which are arrays, and of the branches that they are in."""
    tree = without_ledgers(tree)
    nodes = tree.nodes[:MOST_NODES]
    namespaces = sorted({node.ns for node in nodes})
    number = {ns: index for index, ns in enumerate(namespaces)}
    return {
        # Those with the newest heads come first, so no node is in one behind the last that is needed.
        "branches": [
            branch._asdict() for branch in tree.branches[: 1 + max((node.branch for node in nodes), default=0)]
        ],
        "left_out": len(tree.nodes) - len(nodes),
        "nodes": [
            [number[node.ns], node.id, node.parent, time_text(node.created_at), node.step, node.source, node.branch]
            for node in nodes
        ],
        "namespaces": namespaces,
    }


def writes_shape(
    writes: Sequence[tuple[str, str, Any]], infos: Sequence[WriteInfo], budget: Budget
) -> list[dict[str, Any]]:
    """Return pending writes with their values, and the nodes that made them."""
    nodes = {(info.task_id, info.channel): info.node for info in infos}
    return [
        write_shape(task_id, nodes.get((task_id, channel)), channel, node_of(value, budget))
        for task_id, channel, value in writes
    ]


def write_shape(task_id: str, node: str | None, channel: str, value: Node) -> dict[str, Any]:
    """Return a pending write. `node` made it, `value` is its value as a node."""
    return {"task_id": task_id, "node": node, "channel": channel, "kind": write_kind(channel), "value": value}


def write_kind(channel: str) -> str:
    """Return the kind of a pending write: "write", "error", "interrupt", "resume" or "scheduled"."""
    return _WRITE_KINDS.get(channel, "write")


def writers_shape(changed: Iterable[str], parent_writes: Sequence[WriteInfo]) -> list[dict[str, Any]]:
    """Return which nodes wrote each changed channel, as the parent's pending writes tell it."""
    nodes: dict[str, dict[str, None]] = {}
    for write in parent_writes:
        if write.node is not None:
            nodes.setdefault(write.channel, {})[write.node] = None
    return [{"channel": channel, "nodes": list(nodes[channel])} for channel in changed if channel in nodes]


def change_shape(change: ValueChange, budget: Budget, cut: Cut) -> dict[str, Any]:
    """Return the change of a part of a state."""
    shape: dict[str, Any] = {"path": change.path, "kind": change.kind, "edits": _edits(change.edits, budget)}
    if change.kind != "added":
        shape["before"] = node_of(change.before, budget, cut)
    if change.kind != "removed":
        shape["after"] = node_of(change.after, budget, cut)
    return shape


def match_shape(match: Match) -> Mapping[str, Any]:
    """Return a place of a text."""
    return match._asdict()


def _edits(edits: Sequence[Edit], budget: Budget) -> list[list[str]]:
    """Return the pieces of a changed text. The middle of a long one that did not change is left out."""
    pieces: list[list[str]] = []
    for kind, text in edits:
        if kind == "equal" and len(text) > _LONGEST_EQUAL:
            half = _LONGEST_EQUAL // 2
            left_out = str(len(text) - _LONGEST_EQUAL)
            pieces += [["equal", text[:half]], ["left_out", left_out], ["equal", text[-half:]]]
            budget.take(_LONGEST_EQUAL)
        else:
            pieces.append([kind, text[: budget.take(len(text))]])
    return pieces
