"""The cost of Redis: memory of a step compared with whole states, and operations a second with bare scripts.

    python benchmarks/redis_cost.py [--smoke] [--rounds N]

The script's own servers keep everything in memory and write nothing to disk. The memory is the MEMORY USAGE
of every key, of our saver and of one that stores each state whole, as LangGraph's savers did, with the same encoding.

The speed is that of a chat, a put and a put_writes for each step, on a single server and on clusters of one, two and
three masters: one task, 32 tasks, 32 threads, each with a separate thread. It is compared with as many scripts that
do nothing but store the same number of bytes, sent by redis-py. Both sides take turns, and the figure is the median of
the ratios of the rounds: 1 would be a saver that takes no time at all for itself.
"""

import argparse
import asyncio
import secrets
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import redis
from redis import asyncio as aioredis

import workloads
from storage import verify
from threadmark.serde import Serde
from threadmark_redis import RedisSaver
from workloads import WORKLOADS, Step

_AT_ONCE = 32
_POOL = 16
_MASTERS = (1, 2, 3)
_BARE = "return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])"


class Sizes(NamedTuple):
    """How much is measured."""

    rounds: int
    states: int | None
    """Steps of each workload whose memory is measured; None is all of them."""
    steps: int
    """Steps of each thread in a round."""
    alone: int
    """Steps of a thread that has the server for itself."""
    at_once: int = _AT_ONCE


FULL, SMOKE = Sizes(5, None, 20, 200), Sizes(1, 3, 1, 2, at_once=2)


class Memory(NamedTuple):
    """The memory of a workload."""

    workload: str
    steps: int
    ours: int
    whole: int


class Way(NamedTuple):
    """How many callers there are, and of which API."""

    name: str
    at_once: int
    asyncio: bool


WAYS = (
    Way("1 task", 1, asyncio=True),
    Way("32 tasks", _AT_ONCE, asyncio=True),
    Way("32 threads", _AT_ONCE, asyncio=False),
)


class Server(Protocol):
    """A server, or a cluster, of the script's own."""

    @property
    def url(self) -> str:
        """Its URL."""


class WholeStates:
    """A saver that stores each state and each write whole, under a separate key."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._serde = Serde()

    def get_next_version(self, current: Any, _: None) -> int:
        """The version after `current`."""
        return int(current or 0) + 1

    def put(self, config: Any, checkpoint: Any, metadata: Any, _: Any) -> Any:
        """Store a checkpoint; the configuration that names it."""
        self._set(checkpoint["id"], (checkpoint, metadata))
        return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Store a task's writes."""
        for number, write in enumerate(writes):
            self._set(f"{config['configurable']['checkpoint_id']}:{task_id}:{number}", (task_path, write))

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Like `put`, for asyncio."""
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """Like `put_writes`, for asyncio."""
        self.put_writes(config, writes, task_id, task_path)

    def _set(self, key: str, value: Any) -> None:
        self._client.set(f"whole:{key}", self._serde.dumps_typed(value)[1])


def memory(server: Server, workload: str, steps: int | None) -> Memory:
    """Store a workload in both ways; ours is read back and compared first."""
    with (
        redis.Redis.from_url(server.url) as client,
        RedisSaver(server.url, durability="memory") as saver,
        RedisSaver(server.url, durability="memory", cache_bytes=0) as cold,
    ):
        sides: Mapping[str, Any] = {"ours": saver, "whole": WholeStates(client)}
        used: dict[str, int] = {}
        for name, side in sides.items():
            client.flushall()
            run = list(islice(WORKLOADS[workload](side.get_next_version), steps))
            workloads.drive(side, workloads.thread(workload), run)
            if side is saver:
                verify(cold, workloads.thread(workload), run)
            used[name] = sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(count=1000))
        return Memory(workload, len(run), used["ours"], used["whole"])


def speed(server: Server, way: Way, sizes: Sizes) -> list[float]:
    """Bare scripts' time divided by our saver's, of each round."""
    way = way._replace(at_once=min(way.at_once, sizes.at_once))
    clustered = server.url.startswith("redis+cluster")
    each = sizes.alone if way.at_once == 1 else sizes.steps
    with RedisSaver(server.url, durability="memory", pool_size=_POOL) as saver:
        run = list(islice(workloads.chat(saver.get_next_version), each + 1))
    calls = sum(1 + len(step.tasks) for step in run)
    size = _bytes_of_a_call(server, run, calls)
    ratios = []
    for _ in range(sizes.rounds):
        ours = _ours_by_tasks(server, way, run) if way.asyncio else _ours_by_threads(server, way, run)
        bare = _bare_by_tasks if way.asyncio else _bare_by_threads
        ratios.append(bare(server.url, way, calls, size, clustered=clustered) / ours)
    return ratios


def _bytes_of_a_call(server: Server, run: Sequence[Step], calls: int) -> int:
    """The bytes that one call of our saver sends, in the mean."""
    with RedisSaver(server.url, durability="memory") as saver:
        saver.setup()
        before = _received(server.url)
        workloads.drive(saver, _own_thread(), run)
        return (_received(server.url) - before) // calls


def _received(url: str) -> int:
    """Bytes that all servers have received from clients."""
    client: Any = _client(url)
    with client:
        nodes: list[Any] = client.get_primaries() if url.startswith("redis+cluster") else [None]
        found: list[Any] = [client.info("stats", target_nodes=node) if node else client.info("stats") for node in nodes]
        return sum(int(each["total_net_input_bytes"]) for each in found)


def _ours_by_tasks(server: Server, way: Way, run: Sequence[Step]) -> float:
    async def body() -> float:
        async with RedisSaver(server.url, durability="memory", pool_size=_POOL) as saver:
            await asyncio.gather(*(workloads.adrive(saver, _own_thread(), run[:1]) for _ in range(way.at_once)))
            began = time.perf_counter()
            await asyncio.gather(*(workloads.adrive(saver, _own_thread(), run) for _ in range(way.at_once)))
            return time.perf_counter() - began

    return asyncio.run(body())


def _ours_by_threads(server: Server, way: Way, run: Sequence[Step]) -> float:
    with (
        RedisSaver(server.url, durability="memory", pool_size=_POOL) as saver,
        ThreadPoolExecutor(way.at_once) as threads,
    ):

        def drive(steps: Sequence[Step]) -> None:
            workloads.drive(saver, _own_thread(), steps)

        list(threads.map(drive, [run[:1]] * way.at_once))
        began = time.perf_counter()
        list(threads.map(drive, [run] * way.at_once))
        return time.perf_counter() - began


def _bare_by_tasks(url: str, way: Way, calls: int, size: int, *, clustered: bool) -> float:
    async def body() -> float:
        client: Any
        if clustered:
            client = aioredis.RedisCluster.from_url(_plain(url), max_connections=_AT_ONCE)
        else:
            client = aioredis.Redis.from_pool(aioredis.BlockingConnectionPool.from_url(url, max_connections=_POOL))
        data = secrets.token_bytes(size)

        async def store(times: int) -> None:
            key = secrets.token_hex(8)
            for number in range(times):
                await client.evalsha(sha, 1, key, number, data)

        try:
            sha = await client.script_load(_BARE)
            await asyncio.gather(*(store(1) for _ in range(way.at_once)))
            began = time.perf_counter()
            await asyncio.gather(*(store(calls) for _ in range(way.at_once)))
            return time.perf_counter() - began
        finally:
            await client.aclose()

    return asyncio.run(body())


def _bare_by_threads(url: str, way: Way, calls: int, size: int, *, clustered: bool) -> float:
    client: Any
    if clustered:
        client = _client(url)
    else:
        client = redis.Redis.from_pool(redis.BlockingConnectionPool.from_url(url, max_connections=_POOL))
    data = secrets.token_bytes(size)
    with client, ThreadPoolExecutor(way.at_once) as threads:
        sha = client.script_load(_BARE)

        def store(times: int) -> None:
            key = secrets.token_hex(8)
            for number in range(times):
                client.evalsha(sha, 1, key, number, data)

        list(threads.map(store, [1] * way.at_once))
        began = time.perf_counter()
        list(threads.map(store, [calls] * way.at_once))
        return time.perf_counter() - began


def _client(url: str) -> Any:
    if url.startswith("redis+cluster"):
        return redis.RedisCluster.from_url(_plain(url))
    return redis.Redis.from_url(url)


def _plain(url: str) -> str:
    """The URL of a cluster as redis-py has it, which names one node."""
    return url.replace("redis+cluster", "redis").partition(",")[0]


def _own_thread() -> Mapping[str, Any]:
    return workloads.thread(secrets.token_hex(8))


def report(sizes: Sizes) -> Iterator[str]:
    """The lines of both tables, in Markdown."""
    from redis_backend.cluster import RedisCluster
    from redis_backend.processes import RedisProcess

    yield "| workload | steps | whole states | ours | a step | less by |\n|---|---:|---:|---:|---:|---:|"
    with RedisProcess({}).start() as single:
        for workload in WORKLOADS:
            yield _memory_row(memory(single, workload, sizes.states))
        yield f"\n| calls a second, bare script = 1 | {' | '.join(way.name for way in WAYS)} |\n|---|---:|---:|---:|"
        yield _speed_row("single server", single, sizes)
    for masters in _MASTERS:
        with RedisCluster(masters, replicas=0) as cluster:
            yield _speed_row(f"cluster, {masters} master{'s' * (masters > 1)}", cluster, sizes)


def _memory_row(each: Memory) -> str:
    return (
        f"| {each.workload} | {each.steps:,} | {each.whole / 1e6:.2f} MB | {each.ours / 1e6:.3f} MB "
        f"| {each.ours / each.steps:,.0f} bytes | {each.whole / each.ours:.1f}x |"
    )


def _speed_row(name: str, server: Server, sizes: Sizes) -> str:
    return f"| {name} | {' | '.join(_ratio(speed(server, way, sizes)) for way in WAYS)} |"


def _ratio(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="so little that the figures mean nothing")
    parser.add_argument("--rounds", type=int, help=f"{FULL.rounds} by default")
    asked = parser.parse_args()
    sizes = SMOKE if asked.smoke else FULL
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    for line in report(sizes._replace(rounds=asked.rounds) if asked.rounds else sizes):
        print(line, flush=True)


if __name__ == "__main__":
    main()
