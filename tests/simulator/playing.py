"""Plays many seeds, and reports the failures, the events that were met, and the time it took."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from simulator import charges, deltas, items, pair_items
from simulator.met import Met
from simulator.plan import Plan
from simulator.play import Outcome, play
from simulator.shrinking import shrunk

EXPECTED = (
    "a commit came from a process that was stopped",
    "a disk lost what was not synced",
    "a database was sealed",
    "a message was delayed",
    "a message was overtaken",
    "a request came late",
    "a request was lost",
    "a server was silent",
    "a statement waited for a lock",
    "a thread had ended",
    "a thread of another owner was refused",
    "a thread was unfinished",
    "a transaction of Redis was run again",
    "a way was cut",
    "a writer waited for another one",
    "an answer was lost",
    "cut the power",
    "forget the cache",
    "let clocks drift",
    "pause a process",
    "promote a side",
    "restart a server",
    "set a process's clock",
    "set a server's clock",
    "stop a process",
    "the writes of a pair moved",
    *charges.EXPECTED,
    *deltas.EXPECTED,
    *items.EXPECTED,
    *pair_items.EXPECTED,
)
"""Events that must be met in a run of enough seeds. One that never came has proved nothing."""

ENOUGH = 120
"""In this many seeds, each of these events is expected."""


class Failure(NamedTuple):
    """A plan that failed, and its smallest part that does."""

    plan: Plan
    smallest: Plan
    outcome: Outcome

    def __str__(self) -> str:
        objections = "\n".join(f"  {each}" for each in self.outcome.objections)
        calls = "\n".join(f"  {each[:_LONGEST_LINE]}" for each in self.outcome.calls)
        faults = "\n".join(f"  {each}" for each in self.smallest.faults)
        return (
            f"seed {self.plan.seed} fails:\n{objections}\n"
            f"replay: make simulate PLAN='{self.smallest}'\nfaults:\n{faults}\ncalls:\n{calls}"
        )


_LONGEST_LINE = 240


class Report(NamedTuple):
    """The outcome of a run of seeds."""

    seeds: int
    seconds: float
    met: Met
    failures: list[Failure]

    @property
    def never(self) -> list[str]:
        """The events that should have been met, and were not."""
        return self.met.never(EXPECTED) if self.seeds >= ENOUGH else []

    def __str__(self) -> str:
        counts = "\n".join(f"{count:>9,}  {what}" for what, count in sorted(self.met.counts.items()))
        speed = f"{self.seeds:,} seeds in {self.seconds:,.0f} s, {60 * self.seeds / self.seconds:,.0f} a minute"
        never = "".join(f"\nnever met: {each}" for each in self.never)
        return f"{speed}, {len(self.failures)} failed\n{counts}{never}"


def run(seeds: Iterable[int], on_failure: Callable[[Failure], object] = print, *, shrinks: bool = True) -> Report:
    """Play the worlds of some seeds."""
    began, met, failures, count = time.perf_counter(), Met(), [], 0
    with quiet():
        for seed in seeds:
            count += 1
            plan = Plan.of(seed)
            outcome = play(plan)
            met.add(outcome.met)
            if outcome.objections:
                smallest = shrunk(plan, lambda smaller: bool(play(smaller).objections)) if shrinks else plan
                failures.append(Failure(plan, smallest, play(smallest)))
                on_failure(failures[-1])
    return Report(count, time.perf_counter() - began, met, failures)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the log: a network that is broken on purpose fills it."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
