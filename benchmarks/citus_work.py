"""How the work of the same calls divides over the workers of a cluster of Citus: counted, not timed.

    THREADMARK_CITUS=1 python benchmarks/citus_work.py [--workers 1 2 3]

For each number of workers a new cluster, on which 240 threads are begun and stepped, read, leased and pruned, from the
coordinator. Printed for the worker with the most and the one with least: rows stored or changed, and blocks touched;
for the coordinator: its own blocks, which say if it keeps anything that grows. Then the processor's time that a put
takes on the coordinator and on the workers, from which docs/explanation/scale.md reckons larger clusters. Citus must be
installed with Postgres (docs/how-to/citus.md).
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from citus.nodes import Nodes
from postgres.cluster import Cluster, processes
from postgres.steps import play, step, thread
from threadmark_postgres import PostgresSaver

_THREADS = 240
_SHARDS = 24
_PUTS = 4_000


class _Work(NamedTuple):
    """The work of a server."""

    rows: int
    blocks: int

    def since(self, before: "_Work") -> "_Work":
        return _Work(self.rows - before.rows, self.blocks - before.blocks)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How work divides over the workers of a cluster of Citus.")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3])
    columns = ("rows of the busiest", "of the idlest", "blocks of the busiest", "of the idlest", "of the coordinator")
    print("| workers |", *(f"{column} |" for column in columns), "ms of a put on the coordinator | on the workers |")
    print("|---:|" + "---:|" * (len(columns) + 2))
    asked = parser.parse_args()
    with Cluster() as alone:
        print(f"| none: one server | | | | | | {_cpu_of_a_put(alone, ())[0]:.2f} | |", flush=True)
    for number in asked.workers:
        with Nodes(workers=number, shards=_SHARDS) as nodes:
            with PostgresSaver(nodes.url) as saver:
                saver.setup(distribute="citus")
            servers = [nodes.coordinator.url, *(worker.url for worker in nodes.workers)]
            before = [_work(url) for url in servers]
            _use(nodes.url)
            coordinator, *workers = (_work(url).since(was) for url, was in zip(servers, before, strict=True))
            on_coordinator, on_workers = _cpu_of_a_put(nodes.coordinator, nodes.workers)
        rows, blocks = sorted(each.rows for each in workers), sorted(each.blocks for each in workers)
        counts = " | ".join(f"{each:,}" for each in (rows[-1], rows[0], blocks[-1], blocks[0], coordinator.blocks))
        print(f"| {number} | {counts} | {on_coordinator:.2f} | {on_workers:.2f} |", flush=True)


def _use(url: str) -> None:
    with PostgresSaver(url) as saver:
        for number in range(_THREADS):
            name = f"thread {number}"
            play(saver, name, 10)
            saver.get_tuple(thread(name))
            list(saver.list(thread(name), limit=5))
            with saver.lease(name):
                pass
            saver.prune([name], keep_last=3)


def _cpu_of_a_put(coordinator: Cluster, workers: Sequence[Cluster]) -> tuple[float, float]:
    """The milliseconds of the processor that a put takes on the coordinator, and on the workers."""
    with PostgresSaver(coordinator.url) as saver:
        places = {name: play(saver, name, 1) for name in (f"hot {number}" for number in range(24))}
        before = _cpu(coordinator), sum(map(_cpu, workers))
        for number in range(_PUTS):
            name = f"hot {number % len(places)}"
            places[name] = saver.put(places[name], *step(1, size=2))
        after = _cpu(coordinator), sum(map(_cpu, workers))
    return 1000 * (after[0] - before[0]) / _PUTS, 1000 * (after[1] - before[1]) / _PUTS


def _cpu(cluster: Cluster) -> float:
    """The seconds that a server's processes have taken so far."""
    ticks = 0
    for number, process in enumerate(processes(cluster.data)):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11 : 13 if number else 15]))  # the first one's with those of its ended children
    return ticks / os.sysconf("SC_CLK_TCK")


def _work(url: str) -> _Work:
    time.sleep(1.5)  # the server notes what a session counted when it ends, and other sessions' each second
    query = """SELECT
        (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables),
        (SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))
            FROM pg_statio_user_tables)"""
    with psycopg.connect(url) as connection:
        connection.execute("SET citus.override_table_visibility = off")  # or shards are hidden
        ((rows, blocks),) = connection.execute(query).fetchall()
    return _Work(int(rows or 0), int(blocks or 0))


if __name__ == "__main__":
    main()
