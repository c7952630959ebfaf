"""The required figures, so that speed and size cannot rot: LangGraph's time divided by ours, above 1 is faster.

A benchmark fails, and names each cell, if a median lies below its must by more than the margin of that benchmark
(`measuring/plan.py`): 15% for `make bench`, which has few rounds, 5% for `make bench-full`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from measuring.jobs import ASYNCIO, BLOCKING, POSTGRES, SQLITE, STEPS, TURNS, Comparison
from measuring.plan import LONG_CHAT, TURNS_OF, Plan, steps
from measuring.rounds import CPU, WALL, Measured
from storage import Sizes

COLUMNS = (("put", WALL), ("put_writes", WALL), ("step", CPU), ("get newest", WALL), ("list 50", WALL))
"""The rows of a main table for a workload. A whole step counts by its processor time."""

RUN: dict[str, dict[str, tuple[float | None, ...]]] = {
    SQLITE: {
        #          put  put_writes  CPU of a step  get newest  list 50
        "chat": (1.0, 0.8, 2.5, 1.0, 1.0),
        "nested": (1.0, 0.8, 1.8, 1.0, 1.0),
        "doc": (1.0, 0.8, 1.3, 1.0, 1.0),
        "fanout": (1.0, 0.8, 1.5, 1.0, 1.0),
        "wide": (0.6, 0.8, 0.6, 0.6, 0.6),
        "tiny": (0.6, 0.8, 0.5, 0.6, 0.6),
    },
    POSTGRES: {
        "chat": (1.0, 0.8, 1.8, 1.0, 1.0),
        "nested": (1.0, 0.8, None, 1.0, 1.0),
        "doc": (1.0, 0.8, None, 1.0, 1.0),
        "fanout": (1.0, 0.8, 1.2, 1.0, 1.0),
        "wide": (0.8, 0.8, 0.6, 0.6, 0.6),
        "tiny": (0.8, 0.8, 0.6, 0.6, 0.6),
    },
}
"""The end of a run that is stored step by step."""

LONG_PUT = 4.0
"""A put into a chat of 2,000 messages on SQLite."""

GRAPH: dict[str, dict[tuple[str, str], float]] = {
    "chat": {(SQLITE, BLOCKING): 1.3, (SQLITE, ASYNCIO): 1.6, (POSTGRES, BLOCKING): 1.6, (POSTGRES, ASYNCIO): 2.0},
    "fan-out": {(SQLITE, BLOCKING): 1.1, (SQLITE, ASYNCIO): 1.1, (POSTGRES, BLOCKING): 1.1, (POSTGRES, ASYNCIO): 1.1},
    "slim": {(SQLITE, BLOCKING): 1.1, (SQLITE, ASYNCIO): 1.1, (POSTGRES, BLOCKING): 1.1, (POSTGRES, ASYNCIO): 1.1},
}
"""Whole runs through LangGraph."""

BYTES = {"chat": 1_004_000, "nested": 1_044_000, "doc": 393_000, "fanout": 647_000, "wide": 344_000}
"""On SQLite, as the README has them; they may grow by a tenth, whatever the margin."""
_GROWTH = 1.1


class Must(NamedTuple):
    """A cell, and the least ratio it may have."""

    comparison: Comparison
    figure: str
    clock: str
    least: float

    def __str__(self) -> str:
        kind = "CPU of a " if self.clock == CPU else ""
        return f"{self.comparison}: {kind}{self.figure}"


def musts() -> Iterator[Must]:
    """All of them, but those on bytes."""
    for backend, workloads in RUN.items():
        for workload, row in workloads.items():
            for (figure, clock), least in zip(COLUMNS, row, strict=True):
                if least is not None:
                    yield Must(steps(backend, workload), figure, clock, least)
    yield Must(Comparison(STEPS, SQLITE, "chat", LONG_CHAT), "put", WALL, LONG_PUT)
    for graph, ways in GRAPH.items():
        for (backend, api), least in ways.items():
            yield Must(Comparison(TURNS, backend, graph, TURNS_OF[graph], api), "turn", WALL, least)


def missed(found: Sequence[Measured], sizes: Sequence[Sizes], plan: Plan) -> list[str]:
    """The missed musts, a line for each cell. A full benchmark also misses the ones it did not measure."""
    ratios = {_key(each.comparison): each for each in found}
    lines = []
    for must in musts():
        measured = ratios.get(_key(must.comparison))
        ratio = measured and measured.ratio(must.figure, must.clock)
        if ratio is None:
            if plan.complete:
                lines.append(f"{must}: was not measured")
        elif ratio.median < must.least * (1 - plan.margin):
            lines.append(f"{must}: {ratio.median:.2f} ({ratio.least:.2f} to {ratio.most:.2f}), must be {must.least}")
    return [*lines, *_grown(sizes)]


def _grown(sizes: Sequence[Sizes]) -> Iterator[str]:
    for each in sizes:
        most = BYTES[each.workload] * _GROWTH
        if each.ours > most:
            yield f"SQLite, {each.workload}: {each.ours:,} bytes on disk, must be at most {most:,.0f}"


def _key(comparison: Comparison) -> Comparison:
    """A comparison without its sides: with or without the floor."""
    return comparison._replace(sides=())
