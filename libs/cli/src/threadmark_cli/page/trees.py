"""How the checkpoints of a thread follow from each other, read once for as long as the thread stays as it is."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from threadmark import SaverProtocol
from threadmark.types import ThreadInfo, Tree
from threadmark_cli.effects import is_ledger

_MOST = 4
"""How many threads are remembered. A tree of 5,000 checkpoints takes some megabytes."""


class _Known(NamedTuple):
    state: tuple[Any, ...]
    """The numbers of the thread that change whenever a checkpoint is stored or removed."""
    namespaces: Sequence[str]
    """Those of the graph and its subgraphs."""
    of_effects: int
    """The checkpoints of the ledger of effects."""
    children: Mapping[tuple[str, str], Sequence[str]]


class Trees:
    """Answers from the trees of the threads that were asked for last.

    A walk through a thread asks at each checkpoint for the next ones. To read the whole tree each time would cost
    thousands of rows; whether the thread has changed costs one.
    """

    def __init__(self, saver: SaverProtocol) -> None:
        self._saver = saver
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def namespaces(self, info: ThreadInfo) -> Sequence[str]:
        """Return the namespaces of a thread's graphs, in order."""
        if info.namespaces <= 1 and info.newest is not None:
            return [""]
        return (await self._of(info)).namespaces

    async def of_effects(self, info: ThreadInfo) -> int:
        """Return how many checkpoints of a thread are its ledger of effects."""
        return 0 if info.namespaces <= 1 and info.newest is not None else (await self._of(info)).of_effects

    async def children(self, thread: str, ns: str, checkpoint_id: str) -> Sequence[str]:
        """Return the checkpoints that follow one, newest first."""
        info = await self._saver.aget_thread(thread)
        return [] if info is None else (await self._of(info)).children.get((ns, checkpoint_id), ())

    async def _of(self, info: ThreadInfo) -> _Known:
        state = (info.created_at, info.updated_at, info.newest, info.checkpoints, info.namespaces, info.size_bytes)
        known = self._known.pop(info.id, None)
        if known is None or known.state != state:
            known = _known(state, await self._saver.atree(info.id))
        self._known[info.id] = known
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return known


def _known(state: tuple[Any, ...], tree: Tree) -> _Known:
    children: dict[tuple[str, str], list[str]] = {}
    for node in tree.nodes:
        if node.parent is not None:
            children.setdefault((node.ns, node.parent), []).append(node.id)
    namespaces = {node.ns for node in tree.nodes}
    of_effects = sum(is_ledger(node.ns) for node in tree.nodes)
    return _Known(state, sorted(ns for ns in namespaces if not is_ledger(ns)), of_effects, children)
