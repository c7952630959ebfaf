"""Two databases of a pair that is used and broken, and the objections to their contents, in the middle and at the end.

A simulated pair (tests/simulator/pairs.py) and a round of real servers (chaos.py) are worlds.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress

from replication.checker import Expectations, Failovers, Found, Mode, altered, blamed, missing, returned
from replication.journal import Call
from replication.look import Look, unequal
from threadmark import ThreadmarkError
from threadmark.replication import ReplicatedSaver

LONG = 60.0
"""Seconds after which something that must come has not come."""


class World(ABC):
    """The databases, and the objections so far."""

    operated: ReplicatedSaver
    """The pair, as the operator has it."""
    failovers: Failovers

    def __init__(self, looks: Sequence[Look], mode: Mode, *, max_lag: int, clients: int, alone: bool) -> None:
        self.looks = looks
        self.mode = mode
        self.objections: list[str] = []
        self.down: set[int] = set()
        """The sides that would not answer."""
        self.missing = 0
        """How many acknowledged changes the active side lacked when this was last judged."""
        self.lag = 0.0
        """The seconds for which the oldest waiting change had waited then."""
        self._max_lag, self._clients = max_lag, clients
        self._alone = alone
        """Whether every thread in the databases is of this world."""

    @abstractmethod
    def calls(self) -> list[Call]:
        """Return the calls of the clients so far, and their answers."""

    def begin(self) -> None:
        """Note failovers from now on: the pair is set up."""
        self.failovers = Failovers(self.mode, self.term)

    @property
    def term(self) -> int:
        """The greatest term."""
        return max(look.replica().term for look in self.looks)

    @property
    def active(self) -> int:
        """Which side takes the writes."""
        return self.active_among((0, 1))

    def active_among(self, sides: Sequence[int]) -> int:
        """Return which side takes the writes, as that of these sides with the greatest term says."""
        newest = max((self.looks[side].replica() for side in sides), key=lambda each: each.term)
        return 0 if '"active":"primary"' in newest.body.replace(" ", "") else 1

    def note_failover(self) -> None:
        """Note whether the term was raised since this was last asked: by a client, perhaps."""
        self.failovers.note([None if side in self.down else self.looks[side].replica().term for side in (0, 1)])

    def expectations(self) -> Expectations:
        """Return the expectations by the answers so far."""
        self.note_failover()
        return Expectations(self.calls(), self.mode, self.failovers.noted)

    def found(self, side: int, threads: Sequence[str]) -> Found:
        """Read one side, and note its own faults."""
        look, seen = self.looks[side], {}
        orphans = {thread_id: look.orphans(thread_id) for thread_id in threads}
        for thread_id in threads:
            seen[thread_id], wrong = look.thread(thread_id)
            self.objections += wrong
        expectations = self.expectations()
        for thread_id, without in orphans.items():
            for (ns, checkpoint), parent in without:
                if not expectations.may_lack_parent((thread_id, ns, checkpoint, ""), parent):
                    self.objections.append(f"{look.name}: {thread_id}: {checkpoint} is there without its parent")
        self.objections += look.problems(None if self._alone else threads)
        return Found(look.name, seen)

    def judge_now(self) -> dict[int, Found]:
        """Look at the reachable sides in the middle of a round; the clients may go on. Returns the contents."""
        sides = [side for side in (0, 1) if side not in self.down]
        active, before = self.active_among(sides), self.expectations()
        found = {side: self.found(side, before.threads()) for side in sides}
        after = self.expectations()
        for side in sides:
            self.objections += altered(found[side], after)
            if self.mode == "sync":
                self.objections += missing(found[side], before, after) + returned(found[side], before)
        if active in sides:
            self.missing = len(missing(found[active], before, after))
            self._expect_few(self.missing, "acknowledged changes are missing")
        if self.mode == "async":
            self._expect_few(max(self.looks[side].changes_waiting() for side in sides), "changes wait")
        waiting = [self.looks[side].waiting() for side in sides]
        self.lag = max([time.time() - each.oldest / 1e6 for each in waiting if each.entries], default=0.0)
        return found

    def judge_at_the_end(self, *, calm: bool) -> None:
        """Have everything copied, and compare both sides with the answers and with each other."""
        self.wait_for(self._is_copied, "everything to be copied")
        self.objections += [f"after the copying: {each}" for each in unequal(*self.looks)]
        self.operated.reconcile(both_ways=True)
        self.objections += [f"after reconcile: {each}" for each in unequal(*self.looks)]
        expectations = self.expectations()
        for side in (0, 1):
            found = self.found(side, expectations.threads())
            for rule in (missing, returned, altered):
                self.objections += rule(found, expectations)
        self.objections += blamed(expectations.calls, calm=calm)

    def wait_for(self, come: Callable[[], bool], what: str) -> None:
        """Wait until something has come, or object."""
        until = time.monotonic() + LONG
        while not come():
            if time.monotonic() > until:
                self.objections.append(f"waited in vain for {what}")
                return
            time.sleep(0.005)

    def both_know_the_term(self) -> bool:
        """Whether the same term is on both sides."""
        return len({look.replica().term for look in self.looks}) == 1

    def _is_copied(self) -> bool:
        with suppress(ThreadmarkError):
            self.operated.drain(1.0)
        return not any(look.waiting().entries for look in self.looks) and self.both_know_the_term()

    def _expect_few(self, changes: int, words: str) -> None:
        if changes > self._max_lag + self._clients:
            self.objections.append(f"{changes} {words}, with a max_lag of {self._max_lag}")
