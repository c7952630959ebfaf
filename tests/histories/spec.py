"""The object that a thread is, in a few lines: the answer of each call if calls come one after another.

A checker tries orders of the calls with it. It knows nothing of a database, and nothing of time.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

Did = Literal["put", "writes", "newest", "get", "list", "all", "delete"]
"""`all` is the contents of all namespaces: that of a copy, which is made in one moment, or of the end."""

MISSING = -1
"""In the place of a seed: the value that was put is not there, or it is another one."""

NAMESPACES = ("", "inner")
REFUSED = "ThreadDeletedError"
SPECIAL = "__resume__"
"""The channel whose later writes replace earlier ones."""


class Seen(NamedTuple):
    """A checkpoint, as a call returned it."""

    ns: str
    id: str
    parent: str
    seeds: tuple[int, ...]
    writes: tuple[tuple[str, str, int], ...] = ()
    """(task, channel, seed), sorted."""


class Operation(NamedTuple):
    """A call with its arguments, its answer, its begin and its end."""

    client: str
    did: Did
    thread: str
    began: int
    ended: float
    """Nanoseconds of `time.monotonic_ns`, which all processes of a machine share."""
    ns: str = ""
    id: str = ""
    parent: str = ""
    seeds: tuple[int, ...] = ()
    """Of the values of a put, or of the writes of a batch."""
    task: str = ""
    channels: tuple[str, ...] = ()
    limit: int = 0
    answer: tuple[Seen, ...] = ()
    error: str = ""

    @property
    def reads(self) -> bool:
        """Whether it changes nothing: a refused call changes nothing either."""
        return self.did not in ("put", "writes", "delete") or self.refused

    @property
    def refused(self) -> bool:
        """Whether it was refused because the checkpoint that it continues was deleted with its thread."""
        return self.error.startswith(REFUSED)

    @property
    def continues(self) -> str:
        """The checkpoint that the call continues."""
        return self.parent if self.did == "put" else self.id


def operation(fields: Sequence[Any]) -> Operation:
    """Read an operation from JSON."""
    each = Operation(*fields)
    answer = tuple(
        Seen(ns, number, parent, tuple(seeds), tuple((task, channel, seed) for task, channel, seed in writes))
        for ns, number, parent, seeds, writes in each.answer
    )
    return each._replace(seeds=tuple(each.seeds), channels=tuple(each.channels), answer=answer)


Written = tuple[str, str, str, str, int]
"""(namespace, checkpoint, task, channel, seed)"""


class State(NamedTuple):
    """The contents of a thread."""

    checkpoints: frozenset[Seen] = frozenset()
    writes: frozenset[Written] = frozenset()
    deleted_up_to: str = ""
    """The greatest id that was deleted with the thread."""

    def after(self, call: Operation) -> "State":
        """The contents after a call that changes them."""
        if call.did == "delete":
            return State(deleted_up_to=max([self.deleted_up_to, *(each.id for each in self.checkpoints)]))
        if call.did == "put":
            made = Seen(call.ns, call.id, call.parent, call.seeds)
            return self._replace(checkpoints=self.checkpoints | {made})
        there = {each[:4]: each for each in self.writes if each[:3] == (call.ns, call.id, call.task)}
        changed = set(self.writes)
        for channel, seed in zip(call.channels, call.seeds, strict=True):
            key = (call.ns, call.id, call.task, channel)
            if channel == SPECIAL or key not in there:
                changed.discard(there.get(key, (*key, seed)))
                changed.add((*key, seed))
        return self._replace(writes=frozenset(changed))

    def answers(self, call: Operation) -> bool:
        """Whether a call that changes nothing gets its answer now."""
        if call.refused:
            return self._is_too_late(call)
        if call.did == "all":
            return self._found(self.checkpoints) == sorted(call.answer, reverse=True)
        here = [each for each in self.checkpoints if each.ns == call.ns]
        if call.did == "get":
            return self._found(each for each in here if each.id == call.id) == [*call.answer]
        here.sort(reverse=True)
        return self._found(here[: call.limit]) == [*call.answer]

    def accepts(self, call: Operation, *, refuses: bool) -> bool:
        """Whether a call that changes the contents may be acknowledged now. `refuses`: not if it comes too late."""
        return not refuses or call.did == "delete" or math.isinf(call.ended) or not self._is_too_late(call)

    def _is_too_late(self, call: Operation) -> bool:
        there = any(each.id == call.continues for each in self.checkpoints)
        return bool(call.continues) and call.continues <= self.deleted_up_to and not there

    def _found(self, checkpoints: Iterable[Seen]) -> list[Seen]:
        """Checkpoints with their writes, the newest first."""
        found = []
        for each in sorted(checkpoints, reverse=True):
            writes = sorted(written[2:] for written in self.writes if written[:2] == (each.ns, each.id))
            found.append(each._replace(writes=tuple(writes)))
        return found
