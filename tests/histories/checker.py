"""Whether the calls on a thread can have happened one after another: the search of Wing and Gong, with a memory.

Each call happens at one moment between its begin and its end. A call that ended before another one began comes first.
If no such order gives every call its answer, the checker leaves out the read at which the search ends, counts it, and
goes on. A call whose outcome is not known may happen at any time after its begin, or never.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from histories.spec import MISSING, Operation, Seen, State

STATES = 100_000
"""The search gives up after so many states."""

UNEXPLAINED = 30
"""It leaves out so many reads of a thread at most."""

IN_STEPS = {"redis": ("list",)}
"""The calls of a backend that read a thread in several steps, so that their answers may be of no one moment."""


class Verdict(NamedTuple):
    """The result for one thread."""

    unexplained: tuple[Operation, ...] = ()
    """The reads that were left out until an order was found."""
    undecided: bool = False
    """The search gave up."""


def verdict(calls: Iterable[Operation], *, refuses: bool = False) -> Verdict:
    """Search an order for the calls on one thread. `refuses`: this saver refuses to continue a deleted checkpoint."""
    left = sorted((each for each in calls if not _says_nothing(each)), key=lambda each: each.began)
    unexplained: list[Operation] = []
    while len(unexplained) < UNEXPLAINED:
        blamed = _Search(left, refuses=refuses).run()
        if blamed is None:
            return Verdict(tuple(unexplained))
        if blamed < 0:
            return Verdict(tuple(unexplained), undecided=True)
        unexplained.append(left.pop(blamed))
    return Verdict(tuple(unexplained))


def _says_nothing(call: Operation) -> bool:
    return bool(call.error) and not call.refused and call.did not in ("put", "writes", "delete")


class _Search:
    """The search for an order. A node is the set of the calls that came, as bits, and the contents after them."""

    def __init__(self, calls: Sequence[Operation], *, refuses: bool) -> None:
        self._calls = calls
        self._refuses = refuses
        self._required = sum(1 << index for index, each in enumerate(calls) if not math.isinf(each.ended))

    def run(self) -> int | None:
        """Return None if there is an order, the index of the call to blame if there is none, -1 to give up."""
        waiting = [(0, State())]
        known: set[tuple[int, State]] = set()
        deepest = 0
        while waiting:
            came, state = self._read(*waiting.pop())
            if came & self._required == self._required:
                return None
            if (came, state) in known:
                continue
            known.add((came, state))
            if len(known) > STATES:
                return -1
            deepest = max(deepest, came, key=int.bit_count)
            for index in reversed(self._possible(came)):
                call = self._calls[index]
                if not call.reads and state.accepts(call, refuses=self._refuses):
                    waiting.append((came | 1 << index, state.after(call)))
        return self._possible(deepest)[0]

    def _read(self, came: int, state: State) -> tuple[int, State]:
        """Let every read come that gets its answer now: to come later would be no better."""
        before = -1
        while came != before:
            before = came
            for index in self._possible(came):
                call = self._calls[index]
                if call.reads and state.answers(call):
                    came |= 1 << index
        return came, state

    def _possible(self, came: int) -> list[int]:
        """The calls that may come next, those that ended first at the front: they began before any other one ended."""
        first_end, found = math.inf, []
        index = (~came & came + 1).bit_length() - 1
        while index < len(self._calls) and self._calls[index].began <= first_end:
            if not came >> index & 1:
                found.append(index)
                first_end = min(first_end, self._calls[index].ended)
            index += 1
        return sorted(found, key=lambda each: self._calls[each].ended)


def kinds(unexplained: Iterable[Operation], calls: Sequence[Operation]) -> Counter[str]:
    """Name the fault of each of the reads that no order explains."""
    return Counter(_Kind(read, calls).word() for read in unexplained)


class _Kind:
    """Rules that need no search: a read must show everything that was acknowledged before it and not deleted."""

    def __init__(self, read: Operation, calls: Sequence[Operation]) -> None:
        self._read = read
        self._calls = [each for each in calls if each.thread == read.thread]
        self._deletions = [each for each in self._calls if each.did == "delete"]
        self._shown = {(each.ns, each.id): each for each in read.answer}

    def word(self) -> str:
        """The kind: of the rules that are broken, the gravest."""
        if self._read.error or not self._read.reads:
            return "refused"
        if any(MISSING in each.seeds for each in self._read.answer):
            return "torn values"
        if any(self._lacks_writes(each, torn=True) for each in self._must("writes")):
            return "torn writes"
        lost = "lost" if self._read.client == FINALLY else "stale"
        if any(self._lacks(each) for each in self._must("put")):
            return f"{lost} checkpoints"
        if any(self._lacks_writes(each, torn=False) for each in self._must("writes")):
            return f"{lost} writes"
        return "no moment"

    def _must(self, did: str) -> list[Operation]:
        """The calls of a kind that were acknowledged before the read began, and that no deletion can have undone."""
        return [
            each
            for each in self._calls
            if each.did == did
            and not each.error
            and each.ended < self._read.began
            and not any(gone.ended > each.began and gone.began < self._read.ended for gone in self._deletions)
        ]

    def _lacks(self, put: Operation) -> bool:
        if (put.ns, put.id) in self._shown:
            return False
        if self._read.did == "all":
            return True
        if self._read.did == "get":
            return self._read.id == put.id
        full = len(self._read.answer) == self._read.limit
        oldest = min((each.id for each in self._read.answer), default="")
        return put.ns == self._read.ns and (not full or put.id > oldest)

    def _lacks_writes(self, batch: Operation, *, torn: bool) -> bool:
        seen = self._shown.get((batch.ns, batch.id))
        if seen is None:
            return False
        there = {channel for task, channel, _ in seen.writes if task == batch.task}
        lacking = set(batch.channels) - there
        return bool(lacking) and (bool(there & set(batch.channels)) or not torn)


FINALLY = "finally"
"""The client that reads everything when the others have ended."""


def by_thread(calls: Iterable[Operation]) -> dict[str, list[Operation]]:
    """The calls on each thread."""
    found: dict[str, list[Operation]] = defaultdict(list)
    for call in calls:
        found[call.thread].append(call)
    return found


def forks(calls: Iterable[Operation]) -> int:
    """How many checkpoints were put to a parent that had a child already."""
    parents = Counter((each.thread, each.ns, each.parent) for each in calls if each.did == "put" and not each.error)
    return sum(count - 1 for (_, _, parent), count in parents.items() if parent)


def orphans(calls: Iterable[Operation]) -> int:
    """How many checkpoints are there at the end without their parent."""
    count = 0
    for each in calls:
        if each.client == FINALLY:
            there = {(seen.ns, seen.id) for seen in each.answer}
            count += sum(1 for seen in each.answer if _lacks_parent(seen, there))
    return count


def _lacks_parent(seen: Seen, there: set[tuple[str, str]]) -> bool:
    return bool(seen.parent) and (seen.ns, seen.parent) not in there
