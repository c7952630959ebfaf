"""The measurements, as data: a comparison, the job of each of its sides, and the figures that a job gives."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

OURS, PURE, THEIRS, FLOOR = "ours", "ours, in Python", "theirs", "floor"
MEMORY, SQLITE, POSTGRES, REDIS = "memory", "sqlite", "postgres", "redis"
BLOCKING, ASYNCIO = "blocking", "asyncio"
STEPS, CROWD, TURNS, LONG = "steps", "crowd", "turns", "long"

TITLES = {MEMORY: "memory", SQLITE: "SQLite", POSTGRES: "Postgres", REDIS: "Redis"}


class Comparison(NamedTuple):
    """The same work, done by several sides."""

    measure: str
    """`STEPS`: a run stored step by step. `CROWD`: many at once. `TURNS`: a graph's runs. `LONG`: the end of one."""
    backend: str
    workload: str
    size: int
    """Steps, turns or messages, as the workload counts them."""
    api: str = BLOCKING
    sides: tuple[str, ...] = (OURS, THEIRS)

    def __str__(self) -> str:
        api = "" if self.measure == STEPS else f", {self.api}"
        return f"{TITLES[self.backend]}{api}, {self.workload} {self.size:,}"


class Job(NamedTuple):
    """One side's part of one round of a comparison: the argument of a child process."""

    comparison: Comparison
    side: str
    server: str
    """The URL of a server of its backend, empty if none is needed."""

    def told(self) -> dict[str, Any]:
        """Itself as JSON objects."""
        return {"comparison": self.comparison._asdict(), "side": self.side, "server": self.server}


def job_from(told: Mapping[str, Any]) -> Job:
    """The job that `Job.told` has described."""
    comparison = Comparison(**{**told["comparison"], "sides": tuple(told["comparison"]["sides"])})
    return Job(comparison, told["side"], told["server"])


class Seconds(NamedTuple):
    """Time on the clock, and processor time of all threads of the process."""

    wall: float
    cpu: float


class Figures(NamedTuple):
    """The figures of one job."""

    seconds: dict[str, Seconds]
    """The figures of one operation each, by its name."""
    stored: int = 0
    """Bytes in the database at the end, 0 if they are not counted."""
    walls: Mapping[str, Sequence[float]] = {}
    """The times of each call of the operations that were timed one by one."""


def figures_from(told: Mapping[str, Any]) -> Figures:
    """The figures that a child has printed."""
    seconds = {name: Seconds(*both) for name, both in told["seconds"].items()}
    return Figures(seconds, told["stored"], told["walls"])
