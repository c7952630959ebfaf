"""The cost of operations among very many threads on one Postgres server, and the remains of an hour of puts.

    python benchmarks/scale.py [--threads 10000 1000000] [--updates 360000]

Each thread has ten checkpoints. Printed for each number of threads: the median time of a call, and the 8 kB blocks it
touches, counted by the server (a time depends on the machine, blocks do not); then the sizes of tables and indexes. On
the largest, four clients then put `--updates` checkpoints to the ten thousand newest threads, which is an hour at 100 a
second, with the server's usual autovacuum. It prints the result: sizes, dead rows, and the calls' cost afterwards.
"""

import argparse
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parent))

from many_threads import CHECKPOINTS, copy_in_postgres, small_step, store_first
from servers import postgres
from threadmark_postgres import PostgresSaver

_TIMES = 200
_CLIENTS = 4
_ACTIVE = 10_000

_Call = Callable[[PostgresSaver, int], object]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Very many threads on one Postgres server.")
    parser.add_argument("--threads", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--updates", type=int, default=360_000)
    asked = parser.parse_args()
    counts = sorted(asked.threads)
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for count in counts:
        with postgres(None) as url:
            _load(url, count)
            sizes = _sizes(url)
            found[f"{count:,}"] = _measured(url, count)
            if count == counts[-1]:
                _print_sizes(count, sizes)
                _update(url, count, asked.updates)
                found[f"{count:,} later"] = _measured(url, count, again=True)
                _print_sizes(count, _sizes(url), sizes)
                _print_dead(url)
    _print_calls(found)


def _load(url: str, count: int) -> None:
    with PostgresSaver(url) as saver:
        store_first(saver)
    copy_in_postgres(url, count)


def _newest(saver: PostgresSaver, number: int) -> dict[str, Any]:
    found = saver.get_tuple(_thread(number))
    if found is None:
        raise SystemExit(f"there is no thread {number}")
    return dict(found.config)


def _thread(number: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": f"{number:09}", "checkpoint_ns": ""}}


def _measured(url: str, count: int, *, again: bool = False) -> dict[str, tuple[float, float]]:
    """The median milliseconds and the blocks of each kind of call."""
    chosen = random.Random(count + again).sample(range(count // 2, count), min(_TIMES, count // 4))
    first = _TIMES if again else 0
    places: dict[int, dict[str, Any]] = {}

    def put(saver: PostgresSaver, number: int) -> None:
        places[number] = saver.put(places[number], *small_step(CHECKPOINTS))

    def hot(saver: PostgresSaver, _: int) -> None:
        places[-1] = saver.put(places[-1], *small_step(CHECKPOINTS))

    with PostgresSaver(url) as saver:
        places.update((number, _newest(saver, number)) for number in chosen)
        places[-1] = _newest(saver, chosen[0])
    calls: dict[str, _Call] = {
        "get of the newest": lambda saver, number: saver.get_tuple(_thread(number)),
        "put to a thread not seen before": put,
        "put to the same thread again": hot,
        "put_writes": lambda saver, number: saver.put_writes(places[number], [("count", 1)], "task"),
        "first put of a thread": lambda saver, number: saver.put(_thread(count + number), *small_step(0)),
        "list of 10 checkpoints": lambda saver, number: list(saver.list(_thread(number), limit=10)),
        "first page of 20 threads": lambda saver, _: saver.list_threads(limit=20),
        "page of one owner": lambda saver, number: saver.list_threads(limit=20, owner=f"owner {number % 1000}"),
        "one thread by its id": lambda saver, number: saver.get_thread(f"{number:09}"),
        "verify of one thread": lambda saver, number: saver.verify(f"{number:09}"),
        "prune of one thread": lambda saver, number: saver.prune([f"{number:09}"], keep_last=2),
        "delete": lambda saver, number: saver.delete_thread(f"{count + number:09}"),
    }
    found = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for name, call in calls.items():
            with _counted(connection, len(chosen)) as taken:
                taken.times = _timed(url, call, chosen)
            found[name] = (statistics.median(taken.times) * 1000, taken.blocks)
        for name, idle in (("retention, for each thread removed", 100), ("retention that removes nothing", 0)):
            rule = {"idle_for": _idle_for(connection, first + idle)} if idle else {"idle_for": timedelta(days=20_000)}
            with _counted(connection, max(idle, 1)) as taken:
                taken.times = _timed(url, lambda saver, _, rule=rule: saver.apply_retention(**rule), [0])  # type: ignore[misc]  # bound at once
            found[name] = (taken.times[0] * 1000 / max(idle, 1), taken.blocks)
    return found


class _Taken:
    times: list[float]
    blocks: float


@contextmanager
def _counted(connection: psycopg.Connection, calls: int) -> Iterator[_Taken]:
    """A block of which the server counts the blocks that it touches, for each call. Its sessions must be over."""
    taken = _Taken()
    before = _blocks(connection)
    yield taken
    taken.blocks = (_blocks(connection) - before) / calls


def _blocks(connection: psycopg.Connection) -> int:
    time.sleep(1.5)  # the server notes what a session counted when it ends, and other sessions' each second
    connection.execute("SELECT pg_stat_clear_snapshot()")
    query = """SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
        + coalesce(toast_blks_read + toast_blks_hit + tidx_blks_read + tidx_blks_hit, 0))
        FROM pg_statio_user_tables"""
    ((number,),) = connection.execute(query).fetchall()
    return int(number)


def _timed(url: str, call: _Call, numbers: list[int]) -> list[float]:
    times = []
    with PostgresSaver(url) as saver:
        saver.has_tables()
        for number in numbers:
            begun = time.perf_counter()
            call(saver, number)
            times.append(time.perf_counter() - begun)
    return times


def _idle_for(connection: psycopg.Connection, threads: int) -> timedelta:
    """So long that about so many threads have been idle for it."""
    query = "SELECT updated_at FROM threadmark_head ORDER BY updated_at OFFSET %s LIMIT 1"
    ((updated_at,),) = connection.execute(query, (threads,)).fetchall()
    return datetime.now(UTC) - datetime.fromtimestamp(updated_at / 1_000_000, UTC)


def _update(url: str, count: int, updates: int) -> None:
    """Put so many checkpoints to the newest threads, by a few clients at once."""

    def client(own: int) -> None:
        numbers = list(range(count - min(_ACTIVE, count // 2) + own, count, _CLIENTS))
        with PostgresSaver(url) as saver:
            places: dict[int, dict[str, Any]] = {}
            for step in range(updates // _CLIENTS):
                number = numbers[step % len(numbers)]
                place = places.get(number) or _newest(saver, number)
                places[number] = saver.put(place, *small_step(step))

    begun = time.monotonic()
    clients = [threading.Thread(target=client, args=(own,)) for own in range(_CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    seconds = time.monotonic() - begun
    print(f"\n{updates:,} puts by {_CLIENTS} clients in one process took {seconds:.0f} s: {updates / seconds:,.0f}/s\n")


def _sizes(url: str) -> dict[str, int]:
    query = """SELECT c.relname, CASE c.relkind WHEN 'r' THEN pg_table_size(c.oid) ELSE pg_relation_size(c.oid) END
        FROM pg_class AS c WHERE c.relname LIKE 'threadmark%' AND c.relkind IN ('r', 'i') ORDER BY 2 DESC, 1"""
    with psycopg.connect(url) as connection:
        return {name: size for name, size in connection.execute(query).fetchall() if size > 1 << 20}


def _print_sizes(count: int, sizes: dict[str, int], before: dict[str, int] | None = None) -> None:
    before = before or {}
    print(f"\n| {count:,} threads: table or index | MB |{' before |' if before else ''}")
    print("|---|---:|" + ("---:|" if before else ""))
    for name, size in sizes.items():
        print(f"| {name} | {size / 1e6:,.0f} |" + (f" {before.get(name, 0) / 1e6:,.0f} |" if before else ""))
    total, was = sum(sizes.values()), sum(before.values())
    print(f"| together | {total / 1e6:,.0f} |" + (f" {was / 1e6:,.0f} |" if before else ""), flush=True)


def _print_dead(url: str) -> None:
    print("\n| table | rows | dead | updates | of them in place (HOT) | vacuumed |\n|---|---:|---:|---:|---:|---:|")
    query = """SELECT relname, n_live_tup, n_dead_tup, n_tup_upd, n_tup_hot_upd, autovacuum_count
        FROM pg_stat_user_tables WHERE n_tup_upd > 0 ORDER BY n_tup_upd DESC"""
    with psycopg.connect(url) as connection:
        for name, live, dead, updated, hot, vacuumed in connection.execute(query).fetchall():
            print(f"| {name} | {live:,} | {dead:,} | {updated:,} | {hot / updated:.0%} | {vacuumed} |", flush=True)


def _print_calls(found: dict[str, dict[str, tuple[float, float]]]) -> None:
    print("\n| ms, and blocks, of a call | " + " | ".join(f"{name} threads" for name in found) + " |")
    print("|---|" + "---:|" * len(found))
    for call in next(iter(found.values())):
        cells = (f"{found[name][call][0]:.2f}, {found[name][call][1]:.0f}" for name in found)
        print(f"| {call} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
