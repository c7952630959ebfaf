"""The gain and the cost of a cache: a get of the newest checkpoint with and without one, on Postgres that is far away.

    python benchmarks/cache_cost.py [--smoke] [--rounds N] [--latency MILLISECONDS]

The script's own Postgres stands behind a proxy that holds everything back for the latency, half of it in each
direction. The cache is the script's own Redis, without latency, or the memory of the process. No saver remembers
anything between two gets (`cache_bytes=0`), as in a process that has just started. The sides take turns in each round:

    bare    a saver without a cache
    cold    a cache that has nothing of the thread
    warm    a cache that has everything
    behind  a cache that has everything but the additions since the last step but one

Next to the median times it prints the round trips to Postgres, and the bytes from there, for one get. The
chat has 500 messages (about 350 KB), the tiny state a few short values.
"""

import argparse
import queue
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import workloads
from threadmark import MemoryCache, Saver, cached
from threadmark.caching import Cache
from threadmark.types import CachedSaver
from threadmark_postgres import PostgresSaver
from threadmark_redis import RedisCache

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from ends import Listener, received
from postgres.cluster import Cluster
from redis_backend.processes import RedisProcess

_PATIENCE = 10.0
"""Seconds to wait for the cache: the figures are about the cache, not its absence."""


class Distance:
    """A proxy that forwards everything after a while, and counts what goes through."""

    def __init__(self, port: int, seconds: float) -> None:
        self._server = ("127.0.0.1", port)
        self._delay = seconds / 2
        self.round_trips = 0
        self.bytes_answered = 0
        self._listener = Listener(self._accepted)
        self.port: int = self._listener.port

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accepted(self, client: socket.socket) -> None:
        server = socket.create_connection(self._server)
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        spoken = threading.Event()
        spoken.set()

        def request(data: bytes) -> None:
            if data and spoken.is_set():
                spoken.clear()
                self.round_trips += 1

        def answer(data: bytes) -> None:
            spoken.set()
            self.bytes_answered += len(data)

        self._forward(client, server, request)
        self._forward(server, client, answer)

    def _forward(self, source: socket.socket, target: socket.socket, note: Callable[[bytes], None]) -> None:
        """Receive on one thread and send on another, so that bytes on their way hold nothing up behind them."""
        on_its_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

        def receive() -> None:
            data = b"begin"
            while data:
                data = received(source)
                note(data)
                on_its_way.put((time.perf_counter() + self._delay, data))

        def send() -> None:
            while True:
                due, data = on_its_way.get()
                time.sleep(max(due - time.perf_counter(), 0))
                try:
                    if not data:
                        target.shutdown(socket.SHUT_RDWR)
                        return
                    target.sendall(data)
                except OSError:
                    return

        for work in (receive, send):
            threading.Thread(target=work, daemon=True).start()


class Cost(NamedTuple):
    """The cost of one get."""

    seconds: float
    round_trips: int
    received: int


class Case(NamedTuple):
    """A side of the comparison."""

    name: str
    read: Callable[[], Any]
    prepare: Callable[[], Any] = lambda: None
    """The work before each get, which is not measured."""


def measure(cases: list[Case], distance: Distance, rounds: int) -> Iterator[tuple[str, list[Cost]]]:
    """Have the cases take turns. Yields the cost of each get of each case, without the first round."""
    found: dict[str, list[Cost]] = {case.name: [] for case in cases}
    for number in range(rounds + 1):
        for case in cases:
            case.prepare()
            before = distance.round_trips, distance.bytes_answered
            began = time.perf_counter()
            case.read()
            seconds = time.perf_counter() - began
            cost = Cost(seconds, distance.round_trips - before[0], distance.bytes_answered - before[1])
            if number:
                found[case.name].append(cost)
    yield from found.items()


def _cases(
    bare: Saver, caches: Mapping[str, Cache], config: Mapping[str, Any], behind: Mapping[str, Any]
) -> list[Case]:
    expected, earlier = bare.get(dict(config)), bare.get(dict(behind))

    def reading(saver: Saver) -> Callable[[], None]:
        def read() -> None:
            if saver.get(dict(config)) != expected:
                raise AssertionError("the cached saver reads something else")

        return read

    found = [Case("bare", reading(bare))]
    for name, cache in caches.items():
        saver = cached(bare, cache, wait=_PATIENCE)
        thread = config["configurable"]["thread_id"]

        def empty(saver: CachedSaver = saver, thread: str = thread, cache: Cache = cache) -> None:
            cache.forget([saver._driver._flows._cache_keys.key(thread)], _PATIENCE)  # type: ignore[attr-defined]  # noqa: SLF001 - no saver forgets stored threads

        def older(saver: CachedSaver = saver, empty: Callable[[], None] = empty) -> None:
            empty()
            if saver.get(dict(behind)) != earlier:
                raise AssertionError("the cached saver reads something else")

        found.append(Case(f"{name}, cold", reading(saver), empty))
        found.append(Case(f"{name}, warm", reading(saver), reading(saver)))
        found.append(Case(f"{name}, behind", reading(saver), older))
    return found


def report(rounds: int, steps: int, latency: float) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    yield f"| get of the newest, {latency:g} ms away | median | least | round trips | bytes received |"
    yield "|---|---:|---:|---:|---:|"
    with ExitStack() as stack:
        server, redis = stack.enter_context(Cluster()), stack.enter_context(RedisProcess({}).start())
        distance = stack.enter_context(closing(Distance(server.port, latency / 1000)))
        caches: dict[str, Cache] = {
            "Redis": stack.enter_context(closing(RedisCache(redis.url))),
            "memory": MemoryCache(),
        }
        near = stack.enter_context(PostgresSaver(server.url))
        far = stack.enter_context(
            PostgresSaver(server.url.replace(str(server.port), str(distance.port)), cache_bytes=0)
        )
        for name, run in (("chat", workloads.chat(near.get_next_version, steps)), ("tiny", _tiny(near))):
            whole = list(run)
            behind = workloads.drive(near, workloads.thread(name), whole[:-2])
            workloads.drive(near, behind, whole[-2:])
            for case, costs in measure(_cases(far, caches, workloads.newest(behind), behind), distance, rounds):
                yield _row(f"{name}: {case}", costs)


def _tiny(saver: Saver) -> Iterator[Any]:
    return workloads.tiny(saver.get_next_version, 3)


def _row(name: str, costs: list[Cost]) -> str:
    times = [1000 * each.seconds for each in costs]
    trips, received = (statistics.median_low(each) for each in zip(*(cost[1:] for cost in costs), strict=True))
    return f"| {name} | {statistics.median(times):.2f} ms | {min(times):.2f} ms | {trips:g} | {received:,.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="so little that the figures mean nothing")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--latency", type=float, default=1.0, help="milliseconds of a round trip (1)")
    asked = parser.parse_args()
    rounds, steps = (2, 12) if asked.smoke else (asked.rounds, 500)
    for line in report(rounds, steps, asked.latency):
        print(line, flush=True)


if __name__ == "__main__":
    main()
