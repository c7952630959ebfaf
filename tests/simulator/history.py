"""The calls of a world's clients and their answers, in the order in which they began."""

import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Answer = Literal["acknowledged", "raised", "broken", "unknown"]
"""It returned; it raised an error of Threadmark, or one that no caller should see; or its process was stopped."""


class Seen(NamedTuple):
    """A checkpoint that a caller got."""

    thread: str
    ns: str
    id: str
    parent: str
    seeds: tuple[int, ...]
    wrong: str
    """The fault of its values, if they have one."""
    tasks: frozenset[str]
    """Those of which it had writes, by their ids."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Its key."""
        return self.thread, self.ns, self.id


@dataclass(eq=False)
class Call:
    """One call, and its outcome."""

    number: int
    """That of the operation that it belongs to."""
    client: str
    did: str
    thread: str
    began: float
    owner: str = ""
    """The only one whose threads its saver sees, "" for all."""
    ns: str = ""
    id: str = ""
    parent: str = ""
    task: str = ""
    seeds: tuple[int, ...] = ()
    target: str = ""
    """The thread that is made by a copy or a fork."""
    keeps: int = 0
    lease: int = 0
    """The token under which it was made, or that was got."""
    ended: float = math.inf
    answer: Answer = "unknown"
    error: str = ""
    value: Any = None
    found: list[Seen] = field(default_factory=list)
    is_late: bool = False
    """Whether a script of it may have been on its way when it returned: no lock and no proof keeps that from acting."""

    @property
    def acknowledged(self) -> bool:
        """Whether it returned."""
        return self.answer == "acknowledged"

    @property
    def over(self) -> float:
        """When nothing of it can happen any more: a call that failed may be carried out later.

        So may a script that was sent again: the first one may come after the second one. A thread that was deleted
        refuses one that continues a checkpoint; one that continues none begins the thread again.
        """
        return self.ended if self.acknowledged and (self.parent or not self.is_late) else math.inf

    def __str__(self) -> str:
        named = " ".join(f"{key}={value}" for key in _SHOWN if (value := getattr(self, key)))
        when, who = f"{self.began:.4f}-{self.ended:.4f}", f"#{self.number} {self.client}"
        return f"{when} {who} {self.did} {named}: {self.answer} {self.error}"


_SHOWN = ("thread", "ns", "id", "parent", "task", "target", "keeps", "lease", "value")


NOW: ContextVar[Call] = ContextVar("call")
"""The call to which the running code belongs."""


class History:
    """All calls of a world."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.calls: list[Call] = []
        self.clock = clock

    def begin(self, number: int, client: str, did: str, thread: str, **what: Any) -> Call:
        """Note that a call begins."""
        call = Call(number, client, did, thread, self.clock(), **what)
        self.calls.append(call)
        return call
