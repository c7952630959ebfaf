"""How often a saver asks its servers: counted on the wire, not assumed."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from postgres.steps import APIS, aplay, play, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.cluster import RedisCluster
from redis_backend.processes import DURABLE, RedisProcess
from redis_backend.proxy import Proxy
from threadmark import Saver
from threadmark_conformance.recording import Recording
from threadmark_redis import RedisSaver


class Counted:
    """Servers behind proxies."""

    def __init__(self, url: str, proxies: Sequence[Proxy]) -> None:
        self.url = url
        self._proxies = proxies

    @property
    def round_trips(self) -> int:
        """The round trips of all connections to all of them."""
        return sum(proxy.round_trips for proxy in self._proxies)


@pytest.fixture(scope="module", params=["single", "durable", "cluster"])
def counted(request: pytest.FixtureRequest) -> Iterator[Counted]:
    """A server, with and without the settings for `durability="full"`, and a cluster."""
    if request.param == "cluster":
        with RedisCluster(masters=3, replicas=0, behind_proxies=True) as cluster:
            yield Counted(cluster.url, cluster.proxies)
    else:
        settings = DURABLE if request.param == "durable" else {}
        with RedisProcess(settings).start() as server, Proxy(server.port) as proxy:
            yield Counted(proxy.url, [proxy])


@pytest.fixture
def options(request: pytest.FixtureRequest, prefix: str) -> dict[str, Any]:
    """The options of a saver on each of them."""
    durable = "durable" in request.node.callspec.id
    return {**OPTIONS, "prefix": prefix, "durability": "full" if durable else "memory"}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("lifetime", [{}, {"ttl": timedelta(hours=1)}])
def test_a_step_of_a_run_takes_one_round_trip_for_each_call(
    counted: Counted, options: dict[str, Any], api: Callable[[Saver], Any], lifetime: dict[str, Any]
) -> None:
    async def body() -> None:
        async with RedisSaver(counted.url, **options, **lifetime) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 12, 100)
            await calls.aget_tuple(thread("one"))  # which brings the script to a server that does not know it
            before = counted.round_trips
            config = await calls.aput(config, *step(12, 100))
            assert counted.round_trips - before == 1
            await calls.aput_writes(config, [("messages", "a write " * 1000), ("count", 1)], "task")
            assert counted.round_trips - before == 2
            newest = await calls.aget_tuple(thread("one"))
            assert counted.round_trips - before == 3
            assert newest.checkpoint["channel_values"]["count"] == 12

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_the_newest_checkpoint_takes_one_round_trip_when_nothing_is_remembered(
    counted: Counted, options: dict[str, Any], api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with RedisSaver(counted.url, **options) as other:
            play(other, "one", 12, 100)
            expected = other.get_tuple(thread("one"))
        async with RedisSaver(counted.url, **options, cache_bytes=0) as saver:
            calls = api(saver)
            await calls.aget_tuple(thread("one"))
            before = counted.round_trips
            found = await calls.aget_tuple(thread("one"))
            assert counted.round_trips - before == 1
            assert found == expected
            assert found.pending_writes

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_new_thread_starts_with_one_round_trip_and_on_a_cluster_one_for_the_index_of_threads(
    counted: Counted, options: dict[str, Any], api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with RedisSaver(counted.url, **options) as saver:
            calls = api(saver)
            await aplay(calls, "new", 1)
            await calls.adelete_thread("new")
            before = counted.round_trips
            await calls.aput(thread("new"), *step(3))
            assert counted.round_trips - before == (2 if counted.url.startswith("redis+cluster") else 1)

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_call_of_a_replicated_saver_takes_one_round_trip_and_two_more_on_a_cluster(
    counted: Counted, options: dict[str, Any], api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with RedisSaver(counted.url, **options) as saver:
            saver._store = Recording(1).store(saver._store)
            saver._context = saver._new_context()
            calls = api(saver)
            config = await aplay(calls, "replicated", 12, 100)
            await calls.aput_writes(config, [("messages", "a write")], "another task")
            each = 3 if counted.url.startswith("redis+cluster") else 1
            before = counted.round_trips
            config = await calls.aput(config, *step(12, 100))
            assert counted.round_trips - before == each
            await calls.aput_writes(config, [("messages", "a write " * 1000), ("count", 1)], "task")
            assert counted.round_trips - before == 2 * each

    asyncio.run(body())
