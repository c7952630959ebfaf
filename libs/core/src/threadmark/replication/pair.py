"""The shared state of all savers of a pair: the two sides, the settings, and the last known state of both.

They take turns: if several callers of one process have written to the same thread, one copies for all that wait.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import NamedTuple

from threadmark.errors import ConfigError, ReplicationError
from threadmark.replication.model import Failover, OnSecondaryFailure, ReconcileReport, ReplicationMode, SideName
from threadmark.replication.steps import Side
from threadmark.runtime.logs import log
from threadmark.runtime.processes import reset_after_fork
from threadmark.store.contract import now
from threadmark.store.replica import Waiting


class Turns:
    """The callers that wait for a thread to be copied, for each thread and term."""

    def __init__(self) -> None:
        self._waiters: dict[tuple[str, int], Waiters] = {}
        self._changing = threading.Lock()

    @contextmanager
    def join(self, thread_id: str, term: int) -> Iterator["Waiters"]:
        """Count as one of those that wait for a thread, for as long as the block runs."""
        with self._changing:
            waiters = self._waiters.setdefault((thread_id, term), Waiters())
            waiters.count += 1
        try:
            yield waiters
        finally:
            with self._changing:
                waiters.count -= 1
                if not waiters.count:
                    del self._waiters[thread_id, term]


class Waiters:
    """The callers that wait for one thread to be copied. One at a time has the turn to copy."""

    def __init__(self) -> None:
        self.count = 0
        self.copied_to = 0
        """The position up to which one of them has copied the thread to the other database, 0 for none."""
        self._turn = threading.Lock()

    def take_turn(self) -> bool:
        """Take the turn if it is free. Returns whether it was taken. It never waits."""
        return self._turn.acquire(blocking=False)

    def end_turn(self) -> None:
        """Let the next one have the turn."""
        self._turn.release()


class Settings(NamedTuple):
    """The options of `replicated`. Times are seconds."""

    mode: ReplicationMode = "sync"
    on_secondary_failure: OnSecondaryFailure = "raise"
    failover: Failover = "manual"
    max_lag: int = 10_000
    deadline: float | None = 10.0
    health_interval: float = 1.0
    failback_delay: float | None = None
    max_failover_attempts: int = 3
    drain_timeout: float = 10.0


class Roles(NamedTuple):
    """The side that takes the writes, as far as this process knows."""

    term: int
    active: Side
    pair: str
    """The id of the pair, which both databases hold."""
    complete: bool
    """Whether the other side has ever had everything: both were empty at first, or `reconcile` has gone through."""


@dataclass(eq=False)
class Health:
    """The known facts about one side."""

    well: bool = True
    well_since: float = field(default_factory=monotonic)
    """By the clock of `time.monotonic`."""
    returns: int = 0
    """How often it came back after it was away."""
    last_error: str | None = None
    last_seen: datetime | None = None
    term: int | None = None
    waiting: int | None = None
    """How many of its changes the other side lacked when it was last looked at, and those that were made since."""
    uncounted: int = 0
    """How many of those this process has made since it last asked: others may have made as many."""
    noted: int = 0
    """How many changes this process has made on this side, ever, that the other one did not have yet."""
    oldest: int = 0
    """The position of the oldest of them."""


class SideAwayError(ReplicationError):
    """A side cannot be reached, or does not answer in time."""

    def __init__(self, side: Side, problem: object) -> None:
        super().__init__(f"{side} is away: {problem}")
        self.side = side
        self.problem = str(problem)


class Pair:
    """Two sides, and the knowledge of one process about them."""

    def __init__(self, primary: Side, secondary: Side, settings: Settings) -> None:
        self.sides = (primary, secondary)
        self.settings = settings
        self.health = {side: Health() for side in self.sides}
        self.roles: Roles | None = None
        """None until the pair is used."""
        self.branched: dict[str, None] = {}
        self.turns = Turns()
        """Whose turn it is to copy a thread in mode "sync"."""
        self.last_reconcile: ReconcileReport | None = None
        self.last_error: str | None = None
        self.failovers: set[int] = set()
        """The terms under which this process moved the writes by itself, or tried to, since the last `promote`."""
        self.wake: Callable[[], None] = _nobody
        """Has the background thread check both sides, or copy, at once."""
        self.closed = False
        self._changing = threading.Lock()
        reset_after_fork(self)

    def __str__(self) -> str:
        return f"{self.sides[0]} and {self.sides[1]}"

    def _reset_after_fork(self) -> None:
        """Reset the child of a fork, in which a thread that held a lock or had a turn does not exist."""
        self._changing = threading.Lock()
        self.turns = Turns()

    @property
    def known(self) -> Roles:
        """The side that takes the writes. Raises ReplicationError as long as that is not known."""
        if self.roles is None:
            raise ReplicationError(
                "it is not known yet which side takes the writes, because the databases could not be reached: try again"
            )
        return self.roles

    def side(self, name: SideName) -> Side:
        """The side with this name."""
        return self.sides[int(name == "secondary")]

    def other(self, side: Side) -> Side:
        """The other side."""
        return self.sides[1 - side.number]

    @property
    def standby(self) -> Side:
        """The side that does not take the writes."""
        return self.other(self.known.active)

    def is_well(self, side: Side) -> bool:
        """Whether a side answered when it was last asked."""
        return self.health[side].well

    @property
    def both_well(self) -> bool:
        """Whether both sides answered when they were last asked."""
        return all(health.well for health in self.health.values())

    def set_roles(self, roles: Roles) -> None:
        """Note the side that takes the writes, unless a greater term is known already."""
        with self._changing:
            before = self.roles
            if before is not None and before.term > roles.term:
                return
            self.roles = roles
        if before is not None and before.term != roles.term:
            log.write(logging.WARNING, "%s takes the writes now, under term %d", str(roles.active), roles.term)

    def note_answer(self, side: Side) -> None:
        """Note that a side answered."""
        health = self.health[side]
        health.last_seen = datetime.now(UTC)
        if not health.well:
            health.well_since, health.well, health.returns = monotonic(), True, health.returns + 1
            log.write(logging.WARNING, "%s is back", str(side))

    def note_failure(self, side: Side, problem: object, returns: int) -> None:
        """Note that a side is away, unless it has come back since it was asked.

        `returns` is the number of its returns at the time when it was asked.
        """
        health = self.health[side]
        if health.returns != returns:
            return
        health.last_error = str(problem)
        self.last_error = f"{side}: {problem}"
        if health.well:
            health.well = False
            log.write(logging.WARNING, "%s is away: %s", str(side), str(problem))
            self.wake()

    def note_waiting(self, side: Side, entries: int) -> None:
        """Note that a side has made changes that the other one does not have yet."""
        health = self.health[side]
        with self._changing:
            if not health.waiting:
                health.oldest = now()
            health.waiting = (health.waiting or 0) + entries
            health.uncounted += entries
            health.noted += entries

    def note_count(self, side: Side, counted: Waiting, noted: int) -> None:
        """Note how many changes wait, by a count that began when `noted` changes had been noted.

        It may lack changes noted since. A change that it lacks must stay noted: whether the other side may take the
        writes over depends on it. One that is counted twice is so until the next count only.
        """
        health = self.health[side]
        with self._changing:
            concurrent = health.noted - noted
            health.waiting = counted.entries + concurrent
            health.uncounted = concurrent
            if counted.entries or not concurrent:
                health.oldest = counted.oldest

    def check_sides(self) -> None:
        """Raise ConfigError if both sides are obviously one database."""
        primary, secondary = self.sides
        if primary.driver is secondary.driver:
            raise ConfigError("primary and secondary are one saver: give two, on two databases")


def _nobody() -> None:
    """Do nothing: no background thread has begun."""
