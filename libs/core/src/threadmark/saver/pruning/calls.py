"""Calls of subgraphs: which namespaces belong to one, and which of those are over.

LangGraph runs a subgraph for one task of one checkpoint, and the call's checkpoints stand in a namespace of their own,
`outer|node:task` (`outer|node:task|1` for a second call by the same task). Nothing but a run that goes on from that one
checkpoint comes back to it. A subgraph with a memory of its own has a namespace without a task, which is never over.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from threadmark.saver.loading.decoding import decode_metadata
from threadmark.store import Key, Outline

_SEPARATOR, _TASK = "|", ":"

_SETTLED = 24 * 3600 * 1_000_000
"""Microseconds after which a checkpoint that a call was made from, and that is not there, will not come any more."""


def by_depth(outlines: Sequence[Outline]) -> list[list[list[Outline]]]:
    """The checkpoints by namespace, and the namespaces in groups: those that enclose others come in an earlier one."""
    namespaces: dict[str, list[Outline]] = {}
    for outline in outlines:
        namespaces.setdefault(outline.ns, []).append(outline)
    groups: dict[int, list[list[Outline]]] = {}
    for ns, namespace in namespaces.items():
        groups.setdefault(len(_parts(ns)), []).append(namespace)
    return [groups[depth] for depth in sorted(groups)]


class Calls:
    """What is known of a thread while its namespaces are gone through, the enclosing ones first."""

    def __init__(self, outlines: Sequence[Outline], now: int) -> None:
        self._there = {outline.key for outline in outlines}
        self._newest: dict[str, str] = {}
        for outline in outlines:
            self._newest.setdefault(outline.ns, outline.rank)
        self._settled = now - _SETTLED

    def over(self, namespace: Sequence[Outline], doomed: Collection[Key]) -> bool:
        """Whether these checkpoints, newest first, are of a call that no run can come back to."""
        newest = namespace[0]
        parents = decode_metadata(newest).get("parents") if _TASK in newest.ns else None
        for ns in enclosing_namespaces(newest.ns):
            caller = parents.get(ns) if isinstance(parents, Mapping) else None
            if not isinstance(caller, str):
                return False
            if (ns, caller) in self._there:
                return (ns, caller) in doomed
            if ns in self._newest:
                # Engines store in the background, or when the run ends, so a call may come before what it was made
                # from. It will not where the namespace has gone on since, and the call was long ago.
                return caller < self._newest[ns] and newest.created_at < self._settled
        return False


def enclosing_namespaces(ns: str) -> Iterator[str]:
    """The namespace that a call was made from, then the one that this was called from, and on to the thread's own."""
    parts = _parts(ns)
    for number in range(len(parts) - 1, -1, -1):
        if _TASK in parts[number]:
            yield _SEPARATOR.join(parts[:number])


def _parts(ns: str) -> list[str]:
    return ns.split(_SEPARATOR) if ns else []
