"""What savers should hold, as plain dictionaries: the model that random use is compared with."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from threadmark_conformance.engine import at, early_id

_SPECIAL = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}

Rank = tuple[str, int, str]
"""An id; where the clock had stepped back, the last id before, a count, and the id."""


@dataclass
class Kept:
    """A checkpoint as it should be."""

    id: str
    above: "Kept | None"
    values: dict[str, Any]
    versions: dict[str, Any]
    metadata: dict[str, Any]
    thread: str = ""
    ns: str = ""
    rank: Rank = ("", 0, "")
    writes: dict[tuple[str, int], tuple[str, Any]] = field(default_factory=dict)

    def seen(self) -> dict[str, Any]:
        """What a reader should see."""
        return {
            "config": at(self.thread, self.ns, self.id),
            "parent": self.above.id if self.above else None,
            "values": self.values,
            "versions": self.versions,
            "metadata": repr(self.metadata),
            "writes": [
                (task, channel, value) for (task, _), (channel, value) in sorted(self.writes.items(), key=_location)
            ],
        }


class Expectation:
    """Every checkpoint that should be there."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], Kept] = {}

    def put(self, thread: str, ns: str, kept: Kept) -> None:
        """A checkpoint was put; it is newer than the one above it, whatever the clock said."""
        above = kept.above
        if above is None or (kept.id, 0, "") > above.rank:
            rank: Rank = (kept.id, 0, "")
        else:
            rank = (above.rank[0], above.rank[1] + 1, kept.id)
        self._kept[thread, ns, kept.id] = replace(kept, thread=thread, ns=ns, rank=rank)

    def put_writes(self, kept: Kept, writes: list[tuple[str, Any]], task: str) -> None:
        """A task's writes were put: of a special channel the newest stays, otherwise the first of each index."""
        for index, (channel, value) in enumerate(writes):
            special = _SPECIAL.get(channel)
            if special is not None:
                kept.writes[task, special] = (channel, value)
            else:
                kept.writes.setdefault((task, index), (channel, value))

    def delete_thread(self, thread: str) -> None:
        """A thread was deleted."""
        self.keep(lambda kept: kept.thread != thread)

    def keep(self, survives: Callable[[Kept], bool]) -> None:
        """Only these survive, and none of them names a parent that went."""
        kept_ones = {key: kept for key, kept in self._kept.items() if survives(kept)}
        self._kept = {
            key: kept if kept.above and (*key[:2], kept.above.id) in kept_ones else replace(kept, above=None)
            for key, kept in kept_ones.items()
        }

    def copy_thread(self, source: str, target: str) -> None:
        """A thread was copied to one that had nothing."""
        if source != target:
            for kept in self.all_of(source):
                copied = replace(kept, thread=target, writes=dict(kept.writes))
                self._kept[target, kept.ns, kept.id] = copied

    def all_of(self, thread: str) -> list[Kept]:
        """Every checkpoint of a thread."""
        return [kept for kept in self._kept.values() if kept.thread == thread]

    def newest_first(self, thread: str | None, ns: str | None) -> list[Kept]:
        """What a listing should yield."""
        chosen = [kept for kept in self._kept.values() if thread in (None, kept.thread) and ns in (None, kept.ns)]
        return sorted(chosen, key=lambda kept: (kept.rank, kept.thread, kept.ns), reverse=True)

    def newest(self, thread: str, ns: str) -> Kept | None:
        """The newest checkpoint of a namespace."""
        return next(iter(self.newest_first(thread, ns)), None)

    def older(self, thread: str, keep_last: int) -> list[Kept]:
        """All but the newest of each namespace."""
        found: list[Kept] = []
        for ns in {kept.ns for kept in self.all_of(thread)}:
            found += self.newest_first(thread, ns)[keep_last:]
        return found

    def pick(self, thread: str, ns: str, number: int) -> Kept | None:
        """Some checkpoint of a namespace, more often a new one; None at times, and where there is none."""
        chosen = self.newest_first(thread, ns)
        if not chosen or number % 7 == 0:
            return None
        return chosen[0] if number % 2 else chosen[number % len(chosen)]

    def unused_id(self, thread: str, ns: str, clock: int) -> str:
        """The id that a clock gives, or the next free one."""
        while (thread, ns, early_id(clock)) in self._kept:
            clock += 1
        return early_id(clock)


def _location(item: tuple[tuple[str, int], Any]) -> tuple[str, int]:
    return item[0]
