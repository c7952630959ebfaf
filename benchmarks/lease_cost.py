"""The cost of a lease for a put, and of a thread in bytes, on a SQLite file and on a separate Postgres server.

    python benchmarks/lease_cost.py [--puts N] [--threads N]

Puts with the token of a lease and puts without one take turns, each in a separate thread, so that other work of the
machine hits both alike; the ratio is that of the medians, of wall time and of this process's processor time. The
bytes are those by which the file, or tables and indexes, grow with threads that have an owner, a title and metadata and
no checkpoint.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadmark import Checkpoint, Saver, new_id
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

_WARM = 50
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)
FROM pg_class
WHERE relkind = 'r' AND relname LIKE 'threadmark%'
"""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What a lease costs a put, and what a thread costs in bytes.")
    parser.add_argument("--puts", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=5000)
    asked = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres.cluster import Cluster

    print("| put | without (us) | with a lease (us) | ratio | processor time, ratio |\n|---|---:|---:|---:|---:|")
    grown: list[str] = []
    with tempfile.TemporaryDirectory() as folder, Cluster(durable=True) as cluster:
        path = Path(folder) / "threads.db"
        with SqliteSaver(path) as saver:
            print(_compared("SQLite", saver, asked.puts), flush=True)
            grown.append(_grown("SQLite", saver, asked.threads, lambda: _file_size(path)))
        with PostgresSaver(cluster.url) as saver:
            print(_compared("Postgres", saver, asked.puts), flush=True)
            grown.append(_grown("Postgres", saver, asked.threads, lambda: _server_size(cluster.url)))
    print("\n| a thread without checkpoints | bytes |\n|---|---:|")
    print("\n".join(grown))


def _compared(name: str, saver: Saver, puts: int) -> str:
    wall: tuple[list[float], list[float]] = ([], [])
    busy: tuple[list[float], list[float]] = ([], [])
    with saver.lease("leased", ttl=600) as lease:
        configs: list[Any] = [{"configurable": {"thread_id": "free"}}, lease.config]
        for number in range(puts + _WARM):
            checkpoint: Checkpoint = {
                "v": 4,
                "id": new_id(),
                "ts": "2026-01-01T00:00:00+00:00",
                "channel_values": {"count": number, "text": f"step {number}"},
                "channel_versions": {"count": number + 1, "text": number + 1},
                "versions_seen": {},
            }
            for side in (0, 1) if number % 2 else (1, 0):
                begun, began = time.perf_counter(), time.process_time()
                configs[side] = saver.put(configs[side], checkpoint, {"step": number}, checkpoint["channel_versions"])
                if number >= _WARM:
                    busy[side].append(time.process_time() - began)
                    wall[side].append(time.perf_counter() - begun)
    free, leased = (statistics.median(side) * 1e6 for side in wall)
    free_busy, leased_busy = (statistics.median(side) for side in busy)
    return f"| {name} | {free:.0f} | {leased:.0f} | {leased / free:.3f} | {leased_busy / free_busy:.3f} |"


def _grown(name: str, saver: Saver, threads: int, size: Callable[[], int]) -> str:
    before = size()
    for number in range(threads):
        about = {"graph": "agent", "number": number}
        saver.create_thread(new_id(), title=f"A conversation, number {number}", owner="ada", metadata=about)
    return f"| {name} | {(size() - before) / threads:.0f} |"


def _file_size(path: Path) -> int:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count")
        ((bytes_each,),) = connection.execute("PRAGMA page_size")
    return int(pages * bytes_each)


def _server_size(url: str) -> int:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        row = connection.execute(_SIZE).fetchone()
    return int(row[0]) if row else 0


if __name__ == "__main__":
    main()
