"""The benchmark: Threadmark compared with LangGraph's own savers on this machine, as a report and charts.

    python benchmarks/report.py [--full] [--backend NAME] [--smoke] [--rounds N] [--output FOLDER] [--postgres URL]

Without an option it takes about six minutes on two idle cores; `--full` measures everything, in an hour and a half, or
everything of one `--backend`; a full run also writes the line of this version in versions.md.
Each side is alone in a separate process, and they take turns (ours, theirs, ours, theirs ...). Both wait for the disk
at every commit. It fails, and names each cell, if one lies below its must in `musts.py`. `--smoke` makes everything so
small that it takes seconds, and demands nothing: it shows that the benchmark works.

It starts servers of Postgres and Redis, as the tests do, which wait for the disk; for Postgres you may pass a URL
whose user may create databases.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import lengths
import storage
import threadmark
from measuring import machine, plan, tables, versions
from measuring.charts import Group, ratios
from measuring.jobs import CROWD, FLOOR, LONG, MEMORY, POSTGRES, REDIS, SQLITE, STEPS, TITLES, TURNS
from measuring.plan import Plan, is_main
from measuring.rounds import WALL, Measured, measure, measure_together
from musts import COLUMNS, missed
from storage import Sizes
from workloads import WORKLOADS

_FOLDER = Path(__file__).resolve().parent
_HOW = """\
Ratios are LangGraph's time divided by ours: above 1, Threadmark is faster. Rounds: {rounds}; a ratio is their median,
then come the least and the greatest in brackets, and the median times, LangGraph's and ours. A row "in Python"
measures Threadmark without the compiled part. A round measures each side alone in a new process, one after the other,
on a worker thread, as LangGraph's engine calls a saver; both wait for the disk at every commit (SQLite: write-ahead
log, synchronous=FULL; Postgres: fsync; Redis: appendfsync always). Of a run that is stored step by step the last
fifth of the steps is timed, and "99 %" is the time that 99 of 100 calls of all rounds keep, if there were as many.
CPU is the processor time of all threads of the process, without the server's. The bare driver is the floor: it stores
the rows that our saver stores, and does nothing else. LangGraph's saver for Redis needs modules that a plain server
does not have, so there the floor is what we are compared with."""

REDIS_SETTINGS = {"appendonly": "yes", "appendfsync": "always"}
"""The settings of a server that waits for the disk."""

_AS_MOST = {"default_transaction_isolation": "read committed"}
"""The tests' servers have another level, in which some changes take two round trips more."""
_REDIS_TITLE = "Redis: runs step by step, the bare client's time divided by ours"

_READ = "Right of the line Threadmark is better; the scale is logarithmic."


def main() -> int:
    """Measure, write the report, and name the missed musts."""
    parser = argparse.ArgumentParser(description="Threadmark beside LangGraph's own savers.")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--full", action="store_true", help="everything, which takes an hour and a half")
    kinds.add_argument("--smoke", action="store_true", help="everything, so small that no figure means anything")
    parser.add_argument("--backend", choices=[*TITLES], help="only this backend's part of --full")
    parser.add_argument("--rounds", type=int, help="of each comparison, instead of 5")
    parser.add_argument("--output", type=Path, default=_FOLDER, help="where report.md and charts/ are written")
    parser.add_argument("--postgres", metavar="URL", help="of a server; by default one of its own")
    asked = parser.parse_args()
    chosen = plan.full() if asked.full else plan.smoke() if asked.smoke else plan.quick()
    if asked.backend:
        chosen = chosen.of(asked.backend)
    if asked.rounds:
        chosen = chosen._replace(rounds=asked.rounds)
    backends = {each.backend for each in chosen.comparisons}
    with _servers(backends, asked.postgres, durable=not chosen.smoke) as servers:
        if chosen.smoke:
            found = measure_together(chosen.comparisons, servers)
        else:
            found = list(measure(chosen.comparisons, chosen.rounds, servers, _note))
        sizes, long = _counted(chosen)
        failures = [] if chosen.smoke else missed(found, sizes, chosen)
        text = "\n".join(_report(chosen, found, sizes, long, failures, servers))
    _write(asked.output, text, found, sizes)
    if chosen.complete:
        versions.note(asked.output / "versions.md", threadmark.__version__, found)
    print(f"{asked.output / 'report.md'} is written")
    for line in failures:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if failures else 0


@contextmanager
def _servers(backends: set[str], postgres: str | None, *, durable: bool) -> Iterator[dict[str, str]]:
    """The URLs of the servers that are needed."""
    sys.path.insert(0, str(_FOLDER.parent / "tests"))
    from postgres.cluster import Cluster
    from redis_backend.processes import RedisProcess

    servers: dict[str, str] = {}
    with ExitStack() as running:
        if POSTGRES in backends:
            servers[POSTGRES] = postgres or running.enter_context(Cluster(durable=durable, settings=_AS_MOST)).url
        if REDIS in backends:
            servers[REDIS] = running.enter_context(RedisProcess(REDIS_SETTINGS).start()).url
        yield servers


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _counted(chosen: Plan) -> tuple[list[Sizes], list[str]]:
    """Bytes on disk of each workload, and the table about a long conversation."""
    if chosen.smoke:
        return [], []
    with tempfile.TemporaryDirectory() as folder:
        _note("bytes on disk")
        sizes = [storage.sizes(workload, Path(folder)) for workload in WORKLOADS]
        return sizes, list(lengths.report(lengths.LENGTHS, Path(folder)))


def _report(
    chosen: Plan,
    found: Sequence[Measured],
    sizes: Sequence[Sizes],
    long: Sequence[str],
    failures: Sequence[str],
    servers: Mapping[str, str],
) -> Iterator[str]:
    yield from ("# Threadmark beside LangGraph's savers", "")
    yield from machine.description(servers)
    yield from ("", _HOW.format(rounds=chosen.rounds), "")
    if chosen.smoke:
        yield "This was a smoke run, whose figures mean nothing."
    elif failures:
        yield from ("Missed:", "", *(f"* {line}" for line in failures))
    else:
        yield f"Nothing of what must be reached (`musts.py`) is missed by more than {chosen.margin:.0%}."
    for title, lines in _sections(found):
        yield from ("", f"## {title}", "", *lines)
    if sizes:
        yield from ("", "## Bytes on SQLite's disk", "", *storage.HEAD, *map(storage.row, sizes))
        yield from ("", "## A long conversation on SQLite, stored by Threadmark", "", *long)
    yield from ("", "## Times in milliseconds", "", *tables.times(found), "")


def _sections(found: Sequence[Measured]) -> Iterator[tuple[str, Iterator[str]]]:
    """Title and table of each section that anything was measured of."""
    for backend in (SQLITE, POSTGRES, MEMORY):
        if of_backend := tables.chosen(found, STEPS, backend=backend, only=is_main):
            title = f"{TITLES[backend].capitalize() if backend == MEMORY else TITLES[backend]}: runs step by step"
            yield title, tables.ratios(of_backend, tables.RUN, tables.workload_of, stored=backend != MEMORY)
    if of_redis := tables.chosen(found, STEPS, backend=REDIS):
        yield _REDIS_TITLE, tables.ratios(of_redis, tables.STORED, tables.workload_of, against=FLOOR)
    if others := tables.chosen(found, STEPS, only=lambda each: not is_main(each)):
        yield "Short and long chats", tables.ratios(others, tables.RUN, tables.way_of)
    if crowds := tables.chosen(found, CROWD):
        title = "A step of 1, 8 and 32 runs at once, in threads or asyncio tasks, in chats of so many messages"
        yield title, tables.ratios(crowds, tables.CROWD, tables.way_of)
    if turns := tables.chosen(found, TURNS):
        yield "Whole runs through LangGraph", tables.ratios(turns, tables.TURN, tables.way_of, stored=True)
    if long := tables.chosen(found, LONG):
        title = "The end of a long chat through LangGraph, without and with a delta channel"
        yield title, tables.ratios(long, tables.LONG, tables.way_of)


def _write(folder: Path, text: str, found: Sequence[Measured], sizes: Sequence[Sizes]) -> None:
    charts = folder / "charts"
    charts.mkdir(parents=True, exist_ok=True)
    (folder / "report.md").write_text(text)
    for name, chart in _charts(found, sizes):
        (charts / f"{name}.svg").write_text(chart)


def _charts(found: Sequence[Measured], sizes: Sequence[Sizes]) -> Iterator[tuple[str, str]]:
    """The name and the text of each chart."""
    titles = {operation: title for title, operation, _ in tables.RUN}
    for backend in (SQLITE, POSTGRES, MEMORY):
        groups = [
            Group(
                tables.workload_of(each.comparison),
                [
                    (titles[name], ratio.median)
                    for name, clock in COLUMNS
                    if (ratio := each.ratio(name, clock)) is not None
                ],
            )
            for each in tables.chosen(found, STEPS, backend=backend, only=is_main)
        ]
        if groups:
            title = f"Steps, {TITLES[backend]}: times faster than LangGraph's saver"
            yield f"steps-{backend}", ratios(title, f"Late in a run. {_READ}", groups)
    turns = [
        (tables.way_of(each.comparison), ratio.median)
        for each in tables.chosen(found, TURNS)
        if (ratio := each.ratio("turn", WALL)) is not None
    ]
    if turns:
        title = "Whole runs through LangGraph: times faster than with LangGraph's savers"
        yield "turns", ratios(title, _READ, [Group("", turns)])
    if sizes:
        bars = [(f"{each.workload}, {each.steps - 1:,} steps", each.ratio) for each in sizes]
        yield "bytes", ratios("Bytes on SQLite's disk: times less than LangGraph's saver", _READ, [Group("", bars)])


if __name__ == "__main__":
    sys.exit(main())
