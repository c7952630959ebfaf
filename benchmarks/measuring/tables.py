"""The tables of the report, in Markdown: ratios with their spread, then the times that they were made of."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from measuring.jobs import BLOCKING, FLOOR, OURS, STEPS, THEIRS, TITLES, Comparison
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
    """A row for each comparison: LangGraph's time (or another side's) divided by ours, with the rounds' extremes."""
    titles = [*(title for title, *_ in columns), *(["bytes"] if stored else [])]
    yield f"| {' | '.join(['', *titles])} |"
    yield f"|---|{'---:|' * len(titles)}"
    for each in found:
        cells = [_ratio(each.ratio(operation, clock, against)) for _, operation, clock in columns]
        if stored:
            cells.append(f"{each.stored(THEIRS) / each.stored(OURS):,.1f}" if each.stored(OURS) else "")
        yield f"| {' | '.join([name(each.comparison), *cells])} |"


def times(found: Iterable[Measured]) -> Iterator[str]:
    """A row for each operation of each comparison: the median times of every side, in milliseconds."""
    yield (
        "| | | ours | spread | LangGraph's | spread | bare driver | CPU: ours | LangGraph's | bare driver |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    for each in found:
        for name in each.names():
            ours, theirs, floor = (each.seconds(side, name, WALL) for side in (OURS, THEIRS, FLOOR))
            cpu = (each.seconds(side, name, CPU) for side in (OURS, THEIRS, FLOOR))
            cells = (_ms(ours), _span(ours), _ms(theirs), _span(theirs), _ms(floor), *map(_ms, cpu))
            yield f"| {each.comparison} | {name} | {' | '.join(cells)} |"


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


def _ratio(spread: Spread | None) -> str:
    return f"{spread.median:.2f} ({spread.least:.2f}-{spread.most:.2f})" if spread else ""


def _ms(spread: Spread | None) -> str:
    return f"{spread.median * 1e3:.3g}" if spread else ""


def _span(spread: Spread | None) -> str:
    return f"{spread.least * 1e3:.3g}-{spread.most * 1e3:.3g}" if spread else ""
