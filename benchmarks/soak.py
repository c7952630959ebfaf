"""A soak: 200 runs of a LangGraph graph at once in one process, for minutes; its memory and handles must be flat.

    python benchmarks/soak.py --backend sqlite|postgres|redis [--minutes 10] [--url URL]

50 asyncio tasks and 8 threads advance the runs in turns, and a twentieth of the steps is cancelled. The work is divided
into rounds. After each the process rests, and its memory, file handles, threads, tasks and connections are counted,
also by the server. A quantity is flat if it rises by less than a bound over the last two thirds of the rounds. The
rise is the median slope of all pairs of samples times the length of the two thirds. The bounds are

* 2 for things that are counted,
* 3 % or 1 MB for the memory that tracemalloc sees,
* 5 % or 3 MB for the memory that the C library has handed out, and
* 5 % or 8 MB for the resident memory, which also has the freed blocks between the used ones. All threads allocate
  from one heap, as with MALLOC_ARENA_MAX=1, because glibc would keep freed blocks in one for each thread.

The script fails if a quantity is not flat, if the state of a thread lacks a run that was finished, or if `verify` finds
a problem.

tracemalloc makes all slower, so the last fifth of the time is without it, and the latencies are of that part. Without a
URL the script starts a server that waits for the disk. The script needs Linux, for `/proc`.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import redis

import servers
import threadmark
from soaking.crowd import Crowd, Size
from soaking.latencies import Latencies
from soaking.quantities import FEWEST, OfBackend, Samples, Verdict, links, use_one_arena
from threadmark_langgraph import wrap

BACKENDS = ("sqlite", "postgres", "redis")
_ROUNDS = 45
"""Rounds in which the quantities are judged, at most."""
_SHORTEST = 1.0
"""Seconds of a round of a soak of minutes."""
_CACHE_BYTES = 1_000_000
"""The saver's cache is small, so that the first third fills it."""


class Place(NamedTuple):
    """A database, and the things to count about it."""

    url: str
    of_backend: OfBackend
    options: Mapping[str, Any] = {}
    """Options for the saver."""


class Outcome(NamedTuple):
    """The result of a soak."""

    verdicts: list[Verdict]
    finished: int
    cancelled: int
    lost: int
    """Finished runs that the state of their thread lacks."""
    problems: list[str]
    """Those that `verify` found afterwards."""
    latencies: Latencies

    @property
    def rising(self) -> list[str]:
        """The quantities that are not flat."""
        return [each.quantity for each in self.verdicts if not each.flat]

    @property
    def good(self) -> bool:
        """Whether all is as it must be."""
        return not (self.rising or self.lost or self.problems)


def main() -> None:
    """Print the table, and fail if something rises or is lost."""
    parser = argparse.ArgumentParser(description="Many runs at once for minutes: memory and handles must be flat.")
    parser.add_argument("--backend", choices=BACKENDS, required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--url", help="of an empty Postgres or Redis database; by default of a server that is started here"
    )
    asked = parser.parse_args()
    use_one_arena()
    with place(asked.backend, asked.url) as found:
        seconds = 60 * asked.minutes
        judged = 0.8 * seconds
        length = max(_SHORTEST, judged / _ROUNDS)
        outcome = asyncio.run(soak(found, Size(), length, judged, seconds - judged))
    print(f"{asked.backend}, {asked.minutes:g} minutes, {Size()}")
    print("| quantity at rest | after a third | two thirds | at the end | rise by the slope | bound | |")
    print("|---|---:|---:|---:|---:|---:|---|")
    print(*outcome.verdicts, "", *outcome.latencies.table(), "", sep="\n")
    print(f"runs finished: {outcome.finished:,}; steps cancelled: {outcome.cancelled:,}")
    print(
        f"not flat: {', '.join(outcome.rising) or 'nothing'}; lost runs: {outcome.lost}; problems: {outcome.problems}"
    )
    if not outcome.good:
        sys.exit(1)


async def soak(
    found: Place,
    size: Size,
    length: float,
    judged: float,
    measured: float,
    after_round: Callable[[], object] = lambda: None,
) -> Outcome:
    """Work in rounds of this length: first to judge the quantities, then to measure latencies, so many seconds each.

    The rounds become longer by the time in which the runs under way end. There are as many as a verdict needs.
    """
    samples, latencies = Samples(found.of_backend), Latencies()
    with threadmark.open(found.url, cache_bytes=_CACHE_BYTES, slow=None, **found.options) as saver:
        crowd = Crowd(wrap(saver), size, latencies)
        gc.freeze()  # the imported modules need not be searched after each round
        tracemalloc.start()
        try:
            until = time.monotonic() + judged
            while time.monotonic() < until or len(samples) < FEWEST:
                await crowd.round(length)
                after_round()
                samples.take(time.monotonic())
        finally:
            tracemalloc.stop()
            gc.unfreeze()
        latencies.forget()
        until = time.monotonic() + measured
        while time.monotonic() < until:
            await crowd.round(length)
        problems = list(map(str, saver.verify().problems))
    return Outcome(samples.verdicts(), crowd.finished, crowd.cancelled, crowd.lost, problems, latencies)


@contextmanager
def place(backend: str, url: str | None = None) -> Iterator[Place]:
    """An empty database. Without a URL it is in a new folder, or on a server that is started here."""
    if backend == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "soak.db"
            yield Place(f"sqlite:///{path}", {"handles of the database": lambda: links(str(path))})
    elif backend == "postgres":
        with servers.postgres(url) as address, psycopg.connect(address, autocommit=True) as connection:
            yield Place(address, {"sockets": _sockets, "connections at the server": lambda: _backends(connection)})
    else:
        with servers.redis(url) as address, redis.Redis.from_url(address) as client:
            yield Place(address, {"sockets": _sockets, "connections at the server": lambda: _clients(client)})


def _sockets() -> float:
    return links("socket:")


def _backends(connection: psycopg.Connection) -> float:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    return float(sum(count for (count,) in connection.execute(query)))


def _clients(client: redis.Redis) -> float:
    clients: dict[str, int] = client.info("clients")
    return float(clients["connected_clients"])


if __name__ == "__main__":
    main()
