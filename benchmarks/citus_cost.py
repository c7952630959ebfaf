"""The cost of a call on a cluster of Citus, compared with one server: medians in milliseconds, and ratios.

    THREADMARK_CITUS=1 python benchmarks/citus_cost.py [--rounds 3]

It starts a server, and a coordinator with two workers, all with fsync, on this machine; Citus must be installed with
Postgres (docs/how-to/citus.md). The columns are one server, the coordinator, and a worker. Run it on an idle machine.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from threadmark import Saver
from threadmark_postgres import PostgresSaver


def measure(saver: Saver, tag: str) -> dict[str, float]:
    """The median milliseconds of each kind of call, on threads whose names begin with the tag."""
    from postgres.steps import play, step, thread

    medians: dict[str, float] = {}

    def timed(name: str, call: Callable[[int], object], times: int) -> None:
        taken = []
        for number in range(times):
            begun = perf_counter()
            call(number)
            taken.append(perf_counter() - begun)
        medians[name] = 1000 * statistics.median(taken)

    place: dict[str, Any] = play(saver, f"{tag} long", 20)

    def put(number: int) -> None:
        nonlocal place
        place = saver.put(place, *step(number % 60))

    def lease(number: int) -> None:
        with saver.lease(f"{tag} {number}"):
            pass

    timed("put", put, 200)
    timed("get of the newest", lambda _: saver.get_tuple(thread(f"{tag} long")), 100)
    timed("put_writes", lambda number: saver.put_writes(place, [("a", number)], f"task {number}"), 200)
    timed("first put of a thread", lambda number: saver.put(thread(f"{tag} {number}"), *step(1)), 100)
    timed("list of 20 checkpoints", lambda _: list(saver.list(thread(f"{tag} long"), limit=20)), 30)
    timed("page of 20 threads", lambda _: saver.list_threads(limit=20), 30)
    timed("lease, taken and given back", lease, 50)
    for number in range(20):
        play(saver, f"{tag} pruned {number}", 10)
    timed("prune of 8 checkpoints", lambda number: saver.prune([f"{tag} pruned {number}"], keep_last=2), 20)
    timed("delete", lambda number: saver.delete_thread(f"{tag} {number}"), 100)
    return medians


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from citus.nodes import Nodes
    from postgres.cluster import Cluster

    with Cluster(durable=True) as plain, Nodes(durable=True) as nodes:
        with PostgresSaver(nodes.url) as saver:
            saver.setup(distribute="citus")
        ways = {"one server": plain.url, "coordinator": nodes.url, "worker": nodes.workers[0].url}
        found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
        for number in range(asked.rounds):
            for name, url in ways.items():
                with PostgresSaver(url) as saver:
                    found[name].append(measure(saver, f"{name} {number}"))
    print("| | " + " | ".join(ways) + " |")
    print("|---|" + "---:|" * len(ways))
    for call in found["one server"][0]:
        alone, *others = (statistics.median(each[call] for each in found[name]) for name in ways)
        cells = " | ".join(f"{other:.1f} ({other / alone:.1f}x)" for other in others)
        print(f"| {call} | {alone:.1f} | {cells} |")


if __name__ == "__main__":
    main()
