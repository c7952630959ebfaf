"""Retention of many threads: how long it takes, the memory it needs, and its longest transaction.

    python benchmarks/retention_rounds.py [--threads N] [--url URL]

On a SQLite file and on a Postgres server (without a URL a separate one, with fsync). Each thread has eight checkpoints;
a tenth of them has expired. The first round prunes the others to two checkpoints each, the second finds nothing to do,
the third removes whole threads until the rest takes half of the space. During the second, another saver puts to threads
all the time, and the longest of its puts is printed. The memory is the peak of Python's allocations, counted in a
separate round because counting is slow.
"""

import argparse
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import servers
from threadmark import Checkpoint, Saver, new_id
from threadmark.program import Transaction
from threadmark.types import RetentionReport
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_CHECKPOINTS = 8
_TEXT = "some words of a conversation, never the same: "


def main() -> None:
    """Print a table for each database."""
    parser = argparse.ArgumentParser(description="Time, memory and longest transaction of a retention.")
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--url", help="of an empty Postgres database; by default a server of its own")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threads.db"
        _measure("SQLite", lambda: SqliteSaver(path), asked.threads)
    with servers.postgres(asked.url) as url:
        _measure("Postgres", lambda: PostgresSaver(url), asked.threads)


def _measure(name: str, open_saver: Callable[[], Saver], threads: int) -> None:
    with open_saver() as saver, open_saver() as other:
        begun = time.perf_counter()
        _fill(saver, threads)
        seconds = time.perf_counter() - begun
        print(f"{name}: {threads:,} threads of {_CHECKPOINTS} checkpoints, stored in {seconds:.0f} s", flush=True)
        print("| round | seconds | threads/s | longest transaction |")
        print("|---|---:|---:|---:|")
        _round("expired and pruned to 2", saver, threads, keep_last=2)
        with _putting(other) as longest:
            _round("nothing to do, beside a writer", saver, threads, keep_last=2)
        print(f"longest put of the writer: {1000 * max(longest):.0f} ms of {len(longest):,} puts")
        tracemalloc.start()
        saver.apply_retention(keep_last=2)
        print(f"peak memory: {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB")
        tracemalloc.stop()
        total = sum(each.bytes for each in _threads(saver))
        _round("half of the space", saver, threads, max_bytes=total // 2)


def _round(name: str, saver: Saver, threads: int, **rules: Any) -> None:
    longest = 0.0
    driver: Any = saver._driver  # noqa: SLF001 - a transaction is timed in the driver
    run = driver.run

    def timed(transaction: Transaction[Any]) -> Any:
        nonlocal longest
        begun = time.perf_counter()
        result = run(transaction)
        if transaction.writes:
            longest = max(longest, time.perf_counter() - begun)
        return result

    driver.run = timed
    try:
        report: RetentionReport = saver.apply_retention(**rules)
    finally:
        del driver.run
    print(f"| {name} | {report.seconds:.1f} | {threads / report.seconds:,.0f} | {1000 * longest:.0f} ms |")
    print(f"  {report}")


@contextmanager
def _putting(saver: Saver) -> Iterator[list[float]]:
    """Put to a few threads all the time, and time each put."""
    taken: list[float] = []
    over = threading.Event()

    def put() -> None:
        config: dict[str, Any] = {"configurable": {"thread_id": "writer", "checkpoint_ns": ""}}
        while not over.is_set():
            begun = time.perf_counter()
            config = saver.put(config, _checkpoint("writer", len(taken)), {}, {"text": len(taken)})
            taken.append(time.perf_counter() - begun)
            time.sleep(0.001)

    writer = threading.Thread(target=put)
    writer.start()
    try:
        yield taken
    finally:
        over.set()
        writer.join()


def _fill(saver: Saver, threads: int) -> None:
    """Eight writers at once, because each commit waits for the disk."""

    def fill(first: int) -> None:
        for number in range(first, threads, 8):
            name = f"thread {number:06}"
            config: dict[str, Any] = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
            for step in range(_CHECKPOINTS):
                config = saver.put(config, _checkpoint(name, step), {"step": step}, {"text": step})
            if number % 10 == 0:
                saver.update_thread(name, expires_at=-timedelta(days=1))

    writers = [threading.Thread(target=fill, args=(first,)) for first in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def _checkpoint(name: str, step: int) -> Checkpoint:
    text = " ".join(f"{_TEXT}{name} {step} {word}" for word in range(20))
    return {
        "v": 4,
        "id": new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"text": text},
        "channel_versions": {"text": step},
        "versions_seen": {},
    }


def _threads(saver: Saver) -> Iterator[Any]:
    cursor = None
    while True:
        page = saver.list_threads(limit=500, cursor=cursor)
        yield from page.threads
        cursor = page.cursor
        if cursor is None:
            return


if __name__ == "__main__":
    main()
