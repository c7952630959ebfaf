"""The expected content of savers, as plain dictionaries: the model that random use is compared with."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from threadmark_conformance.engine import at, early_id

_SPECIAL = {"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4}

Rank = tuple[str, int, str]
"""An id; if the clock had stepped back, the last id before, a count, and the id."""


@dataclass
class Kept:
    """An expected checkpoint."""

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
        """Return the parts that a reader must see."""
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
    """All expected checkpoints."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], Kept] = {}

    def put(self, thread: str, ns: str, kept: Kept) -> None:
        """Record a put. The checkpoint is newer than its parent, whatever the clock said."""
        above = kept.above
        if above is None or (kept.id, 0, "") > above.rank:
            rank: Rank = (kept.id, 0, "")
        else:
            rank = (above.rank[0], above.rank[1] + 1, kept.id)
        self._kept[thread, ns, kept.id] = replace(kept, thread=thread, ns=ns, rank=rank)

    def put_writes(self, kept: Kept, writes: list[tuple[str, Any]], task: str) -> None:
        """Record a task's writes: the newest in a special channel stays, otherwise the first at each index."""
        for index, (channel, value) in enumerate(writes):
            special = _SPECIAL.get(channel)
            if special is not None:
                kept.writes[task, special] = (channel, value)
            else:
                kept.writes.setdefault((task, index), (channel, value))

    def delete_thread(self, thread: str) -> None:
        """Record that a thread was deleted."""
        self.keep(lambda kept: kept.thread != thread)

    def keep(self, survives: Callable[[Kept], bool]) -> None:
        """Keep only these checkpoints, none of which then names a removed parent."""
        kept_ones = {key: kept for key, kept in self._kept.items() if survives(kept)}
        self._kept = {
            key: kept if kept.above and (*key[:2], kept.above.id) in kept_ones else replace(kept, above=None)
            for key, kept in kept_ones.items()
        }

    def copy_thread(self, source: str, target: str) -> None:
        """Record a copy of a thread to an empty one."""
        if source != target:
            for kept in self.all_of(source):
                copied = replace(kept, thread=target, writes=dict(kept.writes))
                self._kept[target, kept.ns, kept.id] = copied

    def all_of(self, thread: str) -> list[Kept]:
        """Every checkpoint of a thread."""
        return [kept for kept in self._kept.values() if kept.thread == thread]

    def newest_first(self, thread: str | None, ns: str | None) -> list[Kept]:
        """Return the items that a listing must yield."""
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
        """Return a checkpoint of a namespace, mostly a new one; sometimes None, and always None if there is none."""
        chosen = self.newest_first(thread, ns)
        if not chosen or number % 7 == 0:
            return None
        return chosen[0] if number % 2 else chosen[number % len(chosen)]

    def unused_id(self, thread: str, ns: str, clock: int) -> str:
        """Return the id that a clock gives, or the next free one."""
        while (thread, ns, early_id(clock)) in self._kept:
            clock += 1
        return early_id(clock)


def _location(item: tuple[tuple[str, int], Any]) -> tuple[str, int]:
    return item[0]
