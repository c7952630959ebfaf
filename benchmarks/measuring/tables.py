"""The tables of the report, in Markdown: ratios with their spread, then the times that they were made of."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from measuring.jobs import BLOCKING, FLOOR, OURS, PURE, STEPS, THEIRS, TITLES, Comparison
from measuring.rounds import CPU, WALL, Measured, Spread

Column = tuple[str, str, str]
"""Title, operation, clock."""

RUN: tuple[Column, ...] = (
    ("put", "put", WALL),
    ("put_writes", "put_writes", WALL),
    ("CPU of a step", "step", CPU),
    ("get newest", "get newest", WALL),
    ("list 50", "list 50", WALL),
    ("cold resume", "cold resume", WALL),
    ("prune", "prune", WALL),
    ("delete", "delete", WALL),
    ("later delete", "later delete", WALL),
)
STORED = RUN[:3]
"""Those of them that store something."""
CROWD: tuple[Column, ...] = tuple(
    (f"{at_once}{', CPU' if clock == CPU else ''}", f"step of {at_once}", clock)
    for at_once in (1, 8, 32)
    for clock in (WALL, CPU)
)
TURN: tuple[Column, ...] = (("time", "turn", WALL), ("CPU", "turn", CPU))
LONG: tuple[Column, ...] = (("put", "put", WALL), ("CPU of a put", "put", CPU), *TURN)


def ratios(
    found: Iterable[Measured],
    columns: Sequence[Column],
    name: Callable[[Comparison], str],
    *,
    against: str = THEIRS,
    stored: bool = False,
) -> Iterator[str]:
    """Yield a row for each comparison, and one for our side in Python only: ratios, and the times they are made of."""
    titles = [*(title for title, *_ in columns), *(["bytes"] if stored else [])]
    yield f"| {' | '.join(['', *titles])} |"
    yield f"|---|{'---:|' * len(titles)}"
    for each in found:
        for ours in (OURS, PURE):
            if not each.has(ours):
                continue
            cells = [_compared(each, operation, clock, against, ours) for _, operation, clock in columns]
            if stored:
                cells.append(f"{each.stored(THEIRS) / each.stored(ours):,.1f}" if each.stored(ours) else "")
            title = name(each.comparison) + (", in Python" if ours == PURE else "")
            yield f"| {' | '.join([title, *cells])} |"


def times(found: Iterable[Measured]) -> Iterator[str]:
    """Yield a row for each operation and side of each comparison: medians, and the time of 99 calls of 100."""
    yield "| | | side | median | rounds | 99 % | CPU |\n|---|---|---|---:|---:|---:|---:|"
    for each in found:
        for name in each.names():
            for side in (OURS, PURE, THEIRS, FLOOR):
                if wall := each.seconds(side, name, WALL):
                    slowest = each.slowest(side, name)
                    cells = (
                        *(_ms(wall), _span(wall), f"{slowest * 1e3:.3g}" if slowest else ""),
                        _ms(each.seconds(side, name, CPU)),
                    )
                    yield f"| {each.comparison} | {name} | {side} | {' | '.join(cells)} |"


def chosen(
    found: Iterable[Measured],
    measure: str,
    *,
    backend: str | None = None,
    only: Callable[[Comparison], bool] | None = None,
) -> list[Measured]:
    """The comparisons of one table."""
    return [
        each
        for each in found
        if each.comparison.measure == measure
        and backend in (None, each.comparison.backend)
        and (only is None or only(each.comparison))
    ]


def workload_of(comparison: Comparison) -> str:
    """The name of a row if the table is about one backend."""
    return f"{comparison.workload}, {comparison.size:,}"


def way_of(comparison: Comparison) -> str:
    """The name of a row if a table goes over backends and APIs."""
    callers = "" if comparison.measure == STEPS else ", blocking" if comparison.api == BLOCKING else ", asyncio"
    return f"{workload_of(comparison)}; {TITLES[comparison.backend]}{callers}"


def _compared(each: Measured, operation: str, clock: str, against: str, ours: str) -> str:
    """Return the median ratio, the least and the greatest of the rounds, and both times in milliseconds."""
    ratio = each.ratio(operation, clock, against, ours)
    if ratio is None:
        return ""
    times = f"{_ms(each.seconds(against, operation, clock))} / {_ms(each.seconds(ours, operation, clock))} ms"
    return f"{ratio.median:.2f} ({ratio.least:.2f}-{ratio.most:.2f}), {times}"


def _ms(spread: Spread | None) -> str:
    return f"{spread.median * 1e3:.3g}" if spread else ""


def _span(spread: Spread | None) -> str:
    return f"{spread.least * 1e3:.3g}-{spread.most * 1e3:.3g}" if spread else ""
