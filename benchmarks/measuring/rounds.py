"""Rounds of child processes in turns (ours, theirs, ours, theirs), and their medians with the spread."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from measuring.jobs import OURS, PURE, THEIRS, Comparison, Figures, Job, Seconds, figures_from
from threadmark.runtime.compiled import SWITCH

FOLDER = Path(__file__).resolve().parents[1]

WALL, CPU = "wall", "cpu"

_CALLS = 100
"""So many calls must have been timed, so that one in a hundred of them means anything."""


class Spread(NamedTuple):
    """The median of the rounds, and how far they lie apart."""

    median: float
    least: float
    most: float


class Measured(NamedTuple):
    """A comparison with its figures: for each round those of every side."""

    comparison: Comparison
    rounds: list[dict[str, Figures]]

    def names(self) -> list[str]:
        """The operations that our side has measured."""
        return list(self.rounds[0][OURS].seconds)

    def has(self, side: str) -> bool:
        """Whether this side was measured."""
        return side in self.rounds[0]

    def ratio(self, name: str, clock: str, against: str = THEIRS, ours: str = OURS) -> Spread | None:
        """How many times faster ours is: of the two measurements that follow each other. None if one has no figure."""
        if any(side not in self.rounds[0] or name not in self.rounds[0][side].seconds for side in (ours, against)):
            return None
        return _spread([_time(each[against], name, clock) / _time(each[ours], name, clock) for each in self.rounds])

    def seconds(self, side: str, name: str, clock: str) -> Spread | None:
        """The time of an operation."""
        if side not in self.rounds[0] or name not in self.rounds[0][side].seconds:
            return None
        return _spread([_time(each[side], name, clock) for each in self.rounds])

    def slowest(self, side: str, name: str) -> float | None:
        """The wall time that 99 of 100 calls keep, of all rounds together. None if there were fewer than 100."""
        walls = [wall for each in self.rounds if side in each for wall in each[side].walls.get(name, ())]
        return statistics.quantiles(walls, n=100)[98] if len(walls) >= _CALLS else None

    def stored(self, side: str) -> float:
        """Bytes in the database."""
        return statistics.median(each[side].stored for each in self.rounds)


def measure(
    comparisons: Sequence[Comparison], rounds: int, servers: Mapping[str, str], note: Callable[[str], None]
) -> Iterator[Measured]:
    """Measure one comparison after the other, each side alone in a new process in every round."""
    for number, comparison in enumerate(comparisons, 1):
        note(f"{number} of {len(comparisons)}: {comparison}")
        yield Measured(
            comparison,
            [
                {side: in_child([_job(comparison, side, servers)])[0] for side in comparison.sides}
                for _ in range(rounds)
            ],
        )


def measure_together(comparisons: Sequence[Comparison], servers: Mapping[str, str]) -> list[Measured]:
    """Like `measure`, one round, and one process for all that a side does: quick, and no measurement."""
    found: list[dict[str, Figures]] = [{} for _ in comparisons]
    for side in dict.fromkeys(side for each in comparisons for side in each.sides):
        places = [place for place, each in enumerate(comparisons) if side in each.sides]
        figures = in_child([_job(comparisons[place], side, servers) for place in places])
        for place, each in zip(places, figures, strict=True):
            found[place][side] = each
    return [Measured(comparison, [figures]) for comparison, figures in zip(comparisons, found, strict=True)]


def _job(comparison: Comparison, side: str, servers: Mapping[str, str]) -> Job:
    return Job(comparison, side, servers.get(comparison.backend, ""))


def in_child(jobs: Sequence[Job]) -> list[Figures]:
    """Have a new process do the jobs. Returns the figures of each."""
    told = json.dumps({"jobs": [job.told() for job in jobs]})
    done = subprocess.run(  # noqa: S603 - this Python, and a module of ours
        [sys.executable, "-m", "measuring.child", told],
        cwd=FOLDER,
        env=_environment(jobs[0].side),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        first = jobs[0]
        raise RuntimeError(f"{first.side}, {first.comparison} failed:\n{done.stderr}")
    return [figures_from(each) for each in json.loads(done.stdout)["figures"]]


def _environment(side: str) -> dict[str, str]:
    """Return the environment of the side's process, which chooses between the compiled part and Python only."""
    return {**os.environ, SWITCH: "1" if side == PURE else os.environ.get(SWITCH, "")}


def _time(figures: Figures, name: str, clock: str) -> float:
    seconds: Seconds = figures.seconds[name]
    return seconds.wall if clock == WALL else seconds.cpu


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))
