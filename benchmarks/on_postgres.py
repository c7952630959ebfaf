"""Threadmark beside LangGraph's saver on one Postgres server: bytes, speed of long runs, and many runs at once.

    python benchmarks/on_postgres.py [--url URL] [--rounds N]

Without a URL it starts a server of its own with the tests' cluster (fsync on). Both savers have databases of their
own, the same data and a pool of 16 connections; they take turns, and a ratio is the median over the rounds of two
measurements that follow each other. Bytes are those of tables and indexes after VACUUM.

A saver that has just stored a run remembers the end of it; one of another process has read nothing yet when it lists
(it remembers what it gets, and not what it lists).

Many at once are 32 conversations, each in a thread or an asyncio task of its own: a step is the pending write of its
task and then the checkpoint, which holds one more message of 600 letters. They go on from a checkpoint that the saver
has just stored, outside the measured time, as every step of a run but the first does.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver as PeerSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as AsyncPeerSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

import workloads
from threadmark_postgres import PostgresSaver
from workloads import Step

_POOL = 16
_AT_ONCE = 32
_EACH = 10  # steps of each of the runs at once
_MESSAGES = (20, 200, 500)  # that their conversations hold already
_LAST = 50  # steps of the long run that are timed
_READS = 20
_LISTED = 50
_PEER_OPTIONS = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)
FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT LIKE '%migration%'
"""


class Savers(NamedTuple):
    """The two that are compared; blocking for the one, and for asyncio for the other API."""

    peer: Any
    ours: Any


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Threadmark beside LangGraph's saver on one Postgres server.")
    parser.add_argument("--url", help="of a database whose owner may create others; by default a server of its own")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    if asked.url:
        _report(asked.url, asked.rounds)
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres.cluster import Cluster

    with Cluster(durable=True) as cluster:
        _report(cluster.url, asked.rounds)


def _report(server: str, rounds: int) -> None:
    urls = [_database(server, name) for name in ("bench_peer", "bench_ours")]
    peer_options: Any = {"kwargs": _PEER_OPTIONS, "max_size": _POOL, "min_size": _POOL}
    with (
        ConnectionPool(urls[0], **peer_options, open=True) as pool,
        PostgresSaver(urls[1], pool_size=_POOL) as ours,
    ):
        savers = Savers(PeerSaver(pool), ours)
        savers.peer.setup()
        savers.ours.setup()
        for line in (*_storage(savers, urls), "", *_long_run(savers, urls[1], rounds), *_at_once(savers, rounds)):
            print(line, flush=True)
    for line in asyncio.run(_at_once_asyncio(urls, rounds)):
        print(line, flush=True)


def _storage(savers: Savers, urls: Sequence[str]) -> Iterator[str]:
    yield "| workload | langgraph-checkpoint-postgres | threadmark-postgres | times less |"
    yield "|---|---:|---:|---:|"
    for name, workload in workloads.WORKLOADS.items():
        grown = []
        for saver, url in zip(savers, urls, strict=True):
            before = _size(url)
            config = workloads.drive(saver, workloads.thread(name), workload(saver.get_next_version))
            grown.append(_size(url) - before)
            *_, last = workload(saver.get_next_version)
            if saver.get_tuple(config).checkpoint["channel_values"] != last.checkpoint["channel_values"]:
                raise AssertionError(f"{name}: what was read is not what was put")
        peer, ours = grown
        yield f"| {name} | {peer:,} | {ours:,} | {peer / ours:.0f}x |"


def _long_run(savers: Savers, url: str, rounds: int) -> Iterator[str]:
    """The end of a long chat: putting, listing, getting."""
    yield "| operation | langgraph-checkpoint-postgres | threadmark-postgres | times faster |"
    yield "|---|---:|---:|---:|"

    def put(saver: Any, number: int) -> float:
        *_, before = workloads.chat(saver.get_next_version, 500 - _LAST)
        steps = list(workloads.chat(saver.get_next_version, 500))[-_LAST:]
        start = saver.put(
            workloads.thread(f"put {number}"), before.checkpoint, before.metadata, before.checkpoint["channel_versions"]
        )
        return _seconds(lambda: workloads.drive(saver, start, [step._replace(tasks=()) for step in steps]))

    yield _compared(f"put, the last {_LAST} of 500", _LAST, put, savers, rounds)
    with PostgresSaver(url) as other:
        others = savers._replace(ours=other)
        for kind, run in (("plain dictionaries", workloads.chat), ("LangChain messages", workloads.langchain_chat)):
            config = workloads.thread(kind)
            for saver in savers:
                workloads.drive(saver, config, run(saver.get_next_version))
            get, listing = partial(_get, config), partial(_list, config)
            yield _compared(f"list of {_LISTED}, 500 {kind}", 1, listing, savers, rounds)
            yield _compared("the same by another process", 1, listing, others, rounds)
            yield _compared(f"get of the newest, 500 {kind}", _READS, get, savers, rounds)


def _get(config: Mapping[str, Any], saver: Any, _: int) -> float:
    return _seconds(lambda: [saver.get_tuple(config) for _ in range(_READS)])


def _list(config: Mapping[str, Any], saver: Any, _: int) -> float:
    return _seconds(lambda: list(saver.list(config, limit=_LISTED)))


def _at_once(savers: Savers, rounds: int) -> Iterator[str]:
    for messages in _MESSAGES:

        def threads(saver: Any, number: int, messages: int = messages) -> float:
            runs = [(saver.put(*start), steps) for start, steps in _runs(saver, f"{messages} {number}", messages)]
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                return _seconds(lambda: list(pool.map(lambda run: workloads.drive(saver, *run), runs)))

        yield _compared(_name("threads", messages), _AT_ONCE * _EACH, threads, savers, rounds)


async def _at_once_asyncio(urls: Sequence[str], rounds: int) -> list[str]:
    peer_options: Any = {"kwargs": _PEER_OPTIONS, "max_size": _POOL, "min_size": _POOL, "open": False}
    async with (
        AsyncConnectionPool(urls[0], **peer_options) as pool,
        PostgresSaver(urls[1], pool_size=_POOL) as ours,
    ):
        savers = Savers(AsyncPeerSaver(pool), ours)
        lines = []
        for messages in _MESSAGES:
            taken = [
                [await _tasks(saver, f"tasks {messages} {number}", messages) for saver in savers]
                for number in range(rounds + 1)
            ]
            lines.append(_line(_name("asyncio tasks", messages), _AT_ONCE * _EACH, taken[1:]))
    return lines


async def _tasks(saver: Any, name: str, messages: int) -> float:
    runs = [(await saver.aput(*start), steps) for start, steps in _runs(saver, name, messages)]
    begun = time.perf_counter()
    await asyncio.gather(*(workloads.adrive(saver, *run) for run in runs))
    return time.perf_counter() - begun


def _runs(saver: Any, name: str, messages: int) -> Iterator[tuple[tuple[Any, ...], list[Step]]]:
    """For each run the arguments of the put that it goes on from, and its steps."""
    before, *steps = list(workloads.chat(saver.get_next_version, messages + _EACH))[-_EACH - 1 :]
    for run in range(_AT_ONCE):
        start = (before.checkpoint, before.metadata, before.checkpoint["channel_versions"])
        yield (workloads.thread(f"{name} {run}"), *start), steps


def _name(callers: str, messages: int) -> str:
    return f"steps in {_AT_ONCE} {callers}, {messages} messages"


def _compared(name: str, operations: int, measure: Callable[[Any, int], float], savers: Savers, rounds: int) -> str:
    """The same rounds on both, in turns; the first warms up and is not counted."""
    taken = [[measure(saver, number) for saver in savers] for number in range(rounds + 1)]
    return _line(name, operations, taken[1:])


def _line(name: str, operations: int, taken: Sequence[Sequence[float]]) -> str:
    peers, ours = (operations / statistics.median(of_one) for of_one in zip(*taken, strict=True))
    ratio = statistics.median(theirs / mine for theirs, mine in taken)
    return f"| {name} | {peers:,.0f}/s | {ours:,.0f}/s | {ratio:.1f}x |"


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _database(server: str, name: str) -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    return psycopg.conninfo.make_conninfo(server, dbname=name)


def _size(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")
        ((size,),) = connection.execute(_SIZE.encode()).fetchall()
        return int(size)


if __name__ == "__main__":
    main()
