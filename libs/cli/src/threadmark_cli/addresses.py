"""Which thread and which checkpoint the command line means: an id, the beginning of one, or `~2` for two before."""

import os
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import click

from threadmark import ConfigError, SaverProtocol
from threadmark.model import count_text
from threadmark.types import Branch, Tree, TreeNode
from threadmark_cli.describing import short_ns
from threadmark_cli.effects import without_ledgers
from threadmark_cli.exits import NotThereError
from threadmark_cli.output import one_line

_ADDRESS = re.compile(r"(?P<id>.*?)(~(?P<back>\d{0,9}))?", re.DOTALL)
_SHORTEST = 8
"""The fewest characters of an id in the output. Ids that were made within half a minute begin with the same eight."""

_MOST_NAMED = 5
"""Checkpoints or namespaces that a message names."""

_NEWEST = {"", "newest"}

AT_HELP = "A checkpoint: its id, the beginning of one, or ~2 for two before the newest (by default the newest)."
NS_HELP = "A namespace, such as that of a subgraph (by default the graph's own)."

at_option = click.option("--at", metavar="CHECKPOINT", help=AT_HELP)
ns_option = click.option("--ns", metavar="NAMESPACE", help=NS_HELP)


class Addresses:
    """The checkpoints of one thread, by the addresses that people type.

    Those of the ledger of effects are found by their ids, if no other checkpoint is meant, and are not listed.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = without_ledgers(tree)
        self._every = tree.nodes
        self._nodes = {(node.ns, node.id): node for node in tree.nodes}
        self._heads = {(branch.ns, branch.head): branch for branch in tree.branches}
        self._lengths = _lengths(node.id for node in tree.nodes) | _lengths(node.id for node in self.tree.nodes)

    def short(self, checkpoint_id: str) -> str:
        """The shortest beginning of an id that means no other checkpoint of the thread, of eight characters or more."""
        return checkpoint_id[: self._lengths.get(checkpoint_id, len(checkpoint_id))]

    def branch_of_head(self, ns: str, checkpoint_id: str) -> Branch | None:
        """The branch that ends at a checkpoint, None for one that others follow."""
        return self._heads.get((ns, checkpoint_id))

    def find(self, address: str | None, ns: str | None) -> TreeNode:
        """The checkpoint that an address means. Raises NotThereError if it means none, or several.

        Without a namespace an id is looked for in all of them, and `~2` counts from the newest of the graph's own.
        """
        if address == "":
            raise ConfigError("the address of a checkpoint is empty: give an id, the beginning of one, or ~2")
        ns = None if ns is None else self.ns(ns)
        match = _ADDRESS.fullmatch(address or "")
        begins, back = (match["id"], match["back"]) if match else ("", None)
        node = self._newest(ns or "") if begins in _NEWEST else self._by_id(begins, ns)
        for done in range(int(back or 1) if back is not None else 0):
            node = self._parent(node, done)
        return node

    def ns(self, named: str) -> str:
        """The namespace with this name, in full or as printed. Raises NotThereError if that means several."""
        found = {node.ns for node in self._every if named in (node.ns, short_ns(node.ns))}
        if named in found or not found:
            return named
        if len(found) > 1:
            meant = ", ".join(sorted(map(repr, found))[:_MOST_NAMED])
            raise NotThereError(f"{named!r} means {len(found)} namespaces, such as {meant}: write all of it")
        return found.pop()

    def config(self, address: str | None, ns: str | None) -> dict[str, Any]:
        """The configuration that names the checkpoint of an address."""
        node = self.find(address, ns)
        return config_of(self.tree.thread_id, node.ns, node.id)

    def _newest(self, ns: str) -> TreeNode:
        found = next((node for node in self._every if node.ns == ns), None)
        if found is None:
            where = f" in the namespace {ns!r}" if ns else " of its own graph" if self.tree.nodes else ""
            others = sorted({repr(node.ns) for node in self.tree.nodes})[:_MOST_NAMED]
            hint = f": --ns names a namespace that has some, such as {', '.join(others)}" if others else ""
            raise NotThereError(f"the thread {self.tree.thread_id!r} has no checkpoint{where}{hint}")
        return found

    def _by_id(self, begins: str, ns: str | None) -> TreeNode:
        for nodes in (self.tree.nodes, self._every):
            found = [node for node in nodes if node.id.startswith(begins) and (ns is None or node.ns == ns)]
            if found:
                break
        exact = [node for node in found if node.id == begins]
        found = exact or found
        if not found:
            raise NotThereError(f"the thread {self.tree.thread_id!r} has no checkpoint that begins with {begins!r}")
        if len(found) > 1:
            meant = ", ".join(f"{self.short(node.id)} ({node.ns or 'the graph'})" for node in found[:_MOST_NAMED])
            raise NotThereError(
                f"{begins!r} is the beginning of {len(found)} checkpoints, such as {meant}: write more of it"
            )
        return found[0]

    def _parent(self, node: TreeNode, done: int) -> TreeNode:
        parent = self._nodes.get((node.ns, node.parent or ""))
        if parent is None:
            has = f"only {count_text(done, 'checkpoint')}" if done else "no checkpoint"
            raise NotThereError(f"the thread {self.tree.thread_id!r} has {has} before that one")
        return parent


def config_of(thread_id: str, ns: str | None, checkpoint_id: str | None) -> dict[str, Any]:
    """The configuration that names a checkpoint, or the newest of a namespace."""
    configurable = {"thread_id": thread_id, "checkpoint_ns": ns or ""}
    return {"configurable": configurable | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def expect_thread(saver: SaverProtocol, thread_id: str) -> str:
    """Return the id of a thread. Raises NotThereError, with similar ids, if there is none."""
    if saver.get_thread(thread_id) is None:
        raise _no_thread(saver, thread_id)
    return thread_id


def thread_or_newest(saver: SaverProtocol, thread_id: str | None) -> str:
    """The thread that was named, or the one that was updated last."""
    if thread_id is not None:
        return expect_thread(saver, thread_id)
    newest = saver.list_threads(limit=1).threads
    if not newest:
        raise NotThereError("there are no threads in this database")
    return newest[0].id


def addresses_of(saver: SaverProtocol, thread_id: str) -> Addresses:
    """The checkpoints of a thread. Raises NotThereError if there is no such thread."""
    tree = saver.tree(thread_id)
    if not tree.nodes:
        expect_thread(saver, thread_id)
    return Addresses(tree)


def _no_thread(saver: SaverProtocol, thread_id: str) -> NotThereError:
    similar = (
        [repr(one_line(thread.id)) for thread in saver.list_threads(text=thread_id, limit=3).threads]
        if thread_id
        else []
    )
    meant = f": did you mean {' or '.join(similar)}?" if similar else ""
    if not meant and os.path.isfile(thread_id):  # noqa: PTH113 - unlike Path, it takes any text
        meant = f": to look into the file of that name, write --url {thread_id}"
    return NotThereError(f"there is no thread {thread_id!r}{meant}")


def _lengths(ids: Iterable[str]) -> dict[str, int]:
    """The unambiguous length of each id: in order, only its neighbours share more with it than any other."""
    ordered = sorted(set(ids))
    lengths = dict.fromkeys(ordered, _SHORTEST)
    for before, after in pairwise(ordered):
        common = _common(before, after) + 1
        lengths[before], lengths[after] = max(lengths[before], common), max(lengths[after], common)
    return lengths


def _common(a: str, b: str) -> int:
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
