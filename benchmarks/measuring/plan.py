"""Which comparisons a benchmark consists of: the short one, the full one, and a run that only shows that all works."""

from itertools import product
from typing import NamedTuple, Self

from measuring.jobs import (
    ASYNCIO,
    BLOCKING,
    CROWD,
    FLOOR,
    LONG,
    MEMORY,
    OURS,
    POSTGRES,
    PURE,
    REDIS,
    SQLITE,
    STEPS,
    THEIRS,
    TURNS,
    Comparison,
)

SIZES: dict[str, dict[str, int]] = {
    SQLITE: {"chat": 500, "nested": 500, "doc": 150, "fanout": 150, "wide": 150, "tiny": 300},
    POSTGRES: {"chat": 500, "nested": 500, "doc": 150, "fanout": 150, "wide": 150, "tiny": 200},
    REDIS: {"chat": 500, "nested": 500, "doc": 150, "fanout": 150, "wide": 150, "tiny": 200},
    MEMORY: {"chat": 500, "nested": 500, "doc": 150, "fanout": 150, "wide": 150, "tiny": 300},
}
"""Steps of each workload in the main tables."""

TURNS_OF = {"chat": 200, "fan-out": 50, "slim": 50}
LONG_CHAT, LENGTHS = 2_000, (100, 2_000, 10_000)
_SHORT_CHAT = 50
_CROWDS = (20, 200)
"""Messages that the conversations of a crowd hold already."""

_SMOKE_SIZE = 3
"""The steps of a row of a main table in a smoke run."""


class Plan(NamedTuple):
    """The measurements, their number, and the allowance for noise."""

    comparisons: list[Comparison]
    rounds: int
    margin: float
    """The share by which a figure may stay behind its must, because a machine is never quite idle."""
    complete: bool = False
    """Whether every must has to be among the figures."""
    smoke: bool = False
    """Whether it only shows that everything works; nothing is demanded then."""

    def of(self, backend: str) -> Self:
        """Return the part that is about one backend."""
        return self._replace(comparisons=[each for each in self.comparisons if each.backend == backend], complete=False)


def quick() -> Plan:
    """SQLite, the steps that cost most on Postgres, and whole runs of a chat: a few minutes on two idle cores."""
    return Plan(
        [
            *(with_pure(steps(SQLITE, workload)) for workload in SIZES[SQLITE]),
            *(with_pure(steps(POSTGRES, workload)) for workload in ("chat", "wide", "tiny")),
            *(with_pure(Comparison(TURNS, SQLITE, "chat", TURNS_OF["chat"], api)) for api in (BLOCKING, ASYNCIO)),
        ],
        rounds=5,
        margin=0.15,
    )


def full() -> Plan:
    """Everything."""
    return Plan(
        [
            *(
                with_pure(steps(backend, workload, floor=backend != MEMORY))
                for backend in SIZES
                for workload in SIZES[backend]
            ),
            *(
                Comparison(STEPS, backend, "chat", size)
                for size, backend in product((_SHORT_CHAT, LONG_CHAT), (SQLITE, POSTGRES, MEMORY))
            ),
            *(
                Comparison(CROWD, backend, "chat", messages, api)
                for backend, messages, api in product((SQLITE, POSTGRES, MEMORY), _CROWDS, (BLOCKING, ASYNCIO))
            ),
            *(
                with_pure(Comparison(TURNS, backend, graph, turns, api))
                for (graph, turns), backend, api in product(TURNS_OF.items(), (SQLITE, POSTGRES), (BLOCKING, ASYNCIO))
            ),
            *(
                Comparison(LONG, SQLITE, graph, messages)
                for graph, messages in product(("chat", "delta chat"), LENGTHS)
            ),
        ],
        rounds=5,
        margin=0.05,
        complete=True,
    )


def smoke() -> Plan:
    """Each kind of comparison on each backend, and on SQLite each workload, so small that it takes no time."""
    kinds: dict[Comparison, Comparison] = {}
    for each in full().comparisons:
        small = each._replace(size=_SMOKE_SIZE if is_main(each) else _SMOKE_SIZE + 1)
        kinds.setdefault(small if each.backend == SQLITE else small._replace(workload=""), small)
    return Plan(list(kinds.values()), rounds=1, margin=0, smoke=True)


def steps(backend: str, workload: str, *, floor: bool = False) -> Comparison:
    """A row of a main table."""
    if backend == REDIS:
        sides: tuple[str, ...] = (OURS, FLOOR)  # LangGraph's saver needs modules that a plain server has not
    else:
        sides = (OURS, THEIRS, FLOOR) if floor else (OURS, THEIRS)
    return Comparison(STEPS, backend, workload, SIZES[backend][workload], sides=sides)


def with_pure(comparison: Comparison) -> Comparison:
    """Return the comparison with our side in Python only as a further side."""
    ours, theirs, *others = comparison.sides
    return comparison._replace(sides=(ours, theirs, PURE, *others))


def is_main(comparison: Comparison) -> bool:
    """Whether it is a row of a main table, and not of that about other lengths of a chat."""
    sizes = SIZES[comparison.backend]
    return comparison.measure == STEPS and comparison.size in (sizes[comparison.workload], _SMOKE_SIZE)
