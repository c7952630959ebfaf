"""Many runs at once leave nothing behind: memory, handles, threads and connections are flat, and a leak is noticed."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

import soak
from postgres.cluster import shared as shared_postgres
from redis_backend.processes import shared as shared_redis
from soaking.crowd import Size
from soaking.latencies import Latencies
from soaking.quantities import COUNT, MEMORY, RESIDENT, judged

CROWD, FEW = Size(runs=8, tasks=3, threads=2), Size(runs=2, tasks=1, threads=1)
OPTIONS = {"sqlite": {"durability": "normal"}, "postgres": {}, "redis": {"durability": "memory"}}
"""Options of a saver that does not wait for the disk."""
MEGABYTE = 1_000_000
OF_PROCESS = {"resident memory, MB", "traced memory, MB", "file handles", "threads", "asyncio tasks"}


@contextmanager
def _place(backend: str) -> Iterator[soak.Place]:
    """An empty database, on a server that other tests use as well."""
    with ExitStack() as opened:
        url = None
        if backend == "postgres":
            url = shared_postgres().database("soak")
            opened.callback(shared_postgres().execute, "DROP DATABASE soak WITH (FORCE)")
        elif backend == "redis":
            shared_redis().client.flushall()
            url = shared_redis().url
        yield opened.enter_context(soak.place(backend, url))._replace(options=OPTIONS[backend])


def _soaked(found: soak.Place, size: Size, after_round: Callable[[], object] = lambda: None) -> soak.Outcome:
    """Soak for as many rounds as a verdict needs. In each, every run goes to its end at least once."""
    return asyncio.run(soak.soak(found, size, length=0, judged=0, measured=0.01, after_round=after_round))


def _connect(url: str) -> Any:
    """Open another connection, which the server counts."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("SELECT count(*) FROM sqlite_master")
        return connection
    if url.startswith("redis"):
        client = redis.Redis.from_url(url)
        client.ping()
        return client
    return psycopg.connect(url)


@pytest.mark.parametrize("backend", soak.BACKENDS)
def test_runs_that_end_and_are_cancelled_leave_nothing_behind(backend: str) -> None:
    with _place(backend) as found:
        outcome = _soaked(found, CROWD)
        if outcome.rising:  # a pool may open its last connection late, and a leak is there the second time, too
            outcome = _soaked(found, CROWD)
    assert outcome.good, [*map(str, outcome.verdicts), outcome.lost, *outcome.problems]
    assert {each.quantity for each in outcome.verdicts} >= OF_PROCESS | found.of_backend.keys()
    assert outcome.finished > CROWD.runs
    assert outcome.cancelled
    assert any(line.startswith("| run |") for line in outcome.latencies.table())


@pytest.mark.parametrize("backend", soak.BACKENDS)
def test_each_kind_of_leak_is_noticed(backend: str) -> None:
    kept: list[bytes] = []
    tasks: list[asyncio.Task[bool]] = []
    over = threading.Event()
    with _place(backend) as found, ExitStack() as opened:
        opened.callback(over.set)

        def leak() -> None:
            """Keep a file, a thread, a task, a connection and a megabyte."""
            opened.enter_context(Path(__file__).open())
            threading.Thread(target=over.wait).start()
            tasks.append(asyncio.create_task(asyncio.Event().wait()))
            opened.enter_context(closing(_connect(found.url)))
            kept.append(b"x" * MEGABYTE)

        outcome = _soaked(found, FEW, leak)
    assert not outcome.good
    assert set(outcome.rising) >= (OF_PROCESS | found.of_backend.keys()) - {"resident memory, MB"}


TIMES = list(range(12))


@pytest.mark.parametrize(
    "values",
    [
        [5.0] * 12,
        [1.0, 5.0, 9.0, 12.0] + [12.0] * 8,
        [9.0] * 7 + [20.0] + [9.0] * 4,
        [20.0 - time for time in TIMES],
        [9.0 + time / 4 for time in TIMES],
    ],
    ids=["the same", "rises at first", "one stands out", "falls", "rises within the bound"],
)
def test_a_count_is_flat_if_its_last_two_thirds_do_not_rise(values: list[float]) -> None:
    assert judged("handles", TIMES, values, COUNT).flat


@pytest.mark.parametrize("unevenness", [0, 1])
def test_a_count_that_rises_is_not_flat(unevenness: int) -> None:
    values = [9.0 + time / 2 + unevenness * (time % 2) for time in TIMES]
    assert not judged("handles", TIMES, values, COUNT).flat


def test_memory_may_rise_by_a_share() -> None:
    rising = [100.0 + time * 0.3 for time in TIMES]
    assert judged("memory", TIMES, rising, MEMORY).flat
    assert not judged("memory", TIMES, [value / 50 * 10 + time for time, value in enumerate(rising)], MEMORY).flat
    assert not judged("memory", TIMES, [100.0 + 2 * time for time in TIMES], RESIDENT).flat


def test_latencies_are_within_two_percent() -> None:
    latencies = Latencies()
    for number in range(1, 1001):
        latencies.add("put", number / 1000)
    (line,) = latencies.table()[2:]
    times = [float(cell) for cell in line.strip("|").split("|")[2:]]
    assert times == pytest.approx([500, 990, 999, 1000], rel=0.021)
