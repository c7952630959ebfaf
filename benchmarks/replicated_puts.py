"""The cost of a put through a pair, compared with the same put through its primary alone: ratios, measured in turns.

    python benchmarks/replicated_puts.py [--puts 300] [--rounds 5] [--servers]

A pair of SQLite files, and with --servers one of a Postgres and a Redis as well, which the script starts. Both write
everything to the disk before they answer. Run it on an idle machine.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import threadmark
from threadmark import Checkpoint, SaverProtocol

Opened = tuple[str, Callable[[], SaverProtocol]]


def seconds_for(saver: SaverProtocol, thread_id: str, puts: int) -> float:
    """How long so many puts take, each of which continues the one before."""
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    begun = perf_counter()
    for number in range(puts):
        checkpoint: Checkpoint = {
            "id": threadmark.new_id(),
            "channel_values": {"messages": [f"message {each} of a conversation" for each in range(number % 50)]},
            "channel_versions": {"messages": number + 1},
        }
        config = saver.put(config, checkpoint, {"step": number}, {"messages": number + 1})
    return perf_counter() - begun


def measure(title: str, ways: list[Opened], puts: int, rounds: int) -> None:
    """Print how long a put takes each way, and its ratio to the first one."""
    savers = {name: make() for name, make in ways}
    times: dict[str, list[float]] = {name: [] for name in savers}
    for turn in range(rounds + 1):
        for name, saver in savers.items():
            taken = seconds_for(saver, threadmark.new_id(), puts)
            if turn:  # the first round makes tables, pools and pairs
                times[name].append(taken / puts)
    for saver in savers.values():
        saver.close()
    bare = statistics.median(times[ways[0][0]])
    for name, each in times.items():
        median = statistics.median(each)
        print(f"{title:18} {name:6} {median * 1e6:8.0f} us a put  {median / bare:5.2f} of bare")


def ways_of(alone: str, sync: tuple[str, str], asynchronous: tuple[str, str]) -> list[Opened]:
    """A saver on one database, and pairs of both modes, each on separate databases."""
    return [
        ("bare", lambda: threadmark.open(alone)),
        ("sync", lambda: threadmark.replicated(*sync)),
        ("async", lambda: threadmark.replicated(*asynchronous, mode="async", max_lag=1_000_000)),
    ]


def main() -> None:
    """Measure the chosen pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puts", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", action="store_true", help="measure a Postgres with a Redis as well")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = [f"sqlite:///{Path(folder) / name}.db" for name in ("alone", "s1", "s2", "a1", "a2")]
        ways = ways_of(files[0], (files[1], files[2]), (files[3], files[4]))
        measure("SQLite + SQLite", ways, given.puts, given.rounds)
    if given.servers:
        measure_servers(given.puts, given.rounds)


def measure_servers(puts: int, rounds: int) -> None:
    """Measure a Postgres with a Redis."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from postgres.cluster import Cluster
    from redis_backend.processes import DURABLE, RedisProcess

    with Cluster(durable=True) as postgres, RedisProcess(DURABLE).start() as redis:
        # One pair, opened in both modes: two databases can belong to one pair only.
        pair = (postgres.url, redis.url)
        measure("Postgres + Redis", ways_of(postgres.url, pair, pair), puts, rounds)


if __name__ == "__main__":
    main()
