"""LangGraph's names for Redis: called as the saver of langgraph-checkpoint-redis is, on both APIs."""

import asyncio
import itertools
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypedDict

import pytest
import redis
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from redis import asyncio as aioredis

from redis_backend import cluster, processes
from redis_backend.processes import DURABLE, HOST, RedisProcess
from threadmark import ConfigError, MissingDependencyError
from threadmark_langgraph import AsyncRedisSaver, Checkpointer, RedisSaver

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
MEMORY: Any = {"durability": "memory"}
"""The URL of the server that all tests share."""

_numbers = itertools.count()


@pytest.fixture
def prefix() -> str:
    """A prefix of the test's own."""
    return f"names{next(_numbers)}:"


def use_blocking(saver: Checkpointer) -> None:
    """A put and a get."""
    stored = saver.put(THREAD, empty_checkpoint(), {"step": 1}, {})
    assert saver.get_tuple(stored) is not None


async def use_asyncio(saver: Checkpointer) -> None:
    """Like `use_blocking`, for asyncio."""
    stored = await saver.aput(THREAD, empty_checkpoint(), {"step": 1}, {})
    assert await saver.aget_tuple(stored) is not None


def test_both_names_give_both_apis_from_a_url_with_a_ttl() -> None:
    ttl = {"default_ttl": 60, "refresh_on_read": True}
    with RedisProcess(DURABLE) as server:
        server.start()

        async def run() -> None:
            async with AsyncRedisSaver.from_conn_string(server.url, ttl=ttl) as saver:
                await saver.setup()
                await saver.asetup()
                await use_asyncio(saver)
                await asyncio.to_thread(use_blocking, saver)

        with RedisSaver.from_conn_string(server.url, ttl=ttl) as saver:
            saver.setup()
            use_blocking(saver)
            asyncio.run(use_asyncio(saver))
        asyncio.run(run())
        left = [server.client.ttl(key) for key in server.client.keys("threadmark:{*")]
        assert any(0 < seconds <= 5 * 3600 for seconds in left), "the keys of the thread have an expiry"


def test_they_are_context_managers_themselves(prefix: str) -> None:
    url = processes.shared().url

    async def run() -> None:
        async with AsyncRedisSaver(url, prefix=prefix, **MEMORY) as saver:
            await use_asyncio(saver)

    with RedisSaver(redis_url=url, prefix=prefix, **MEMORY) as saver:
        use_blocking(saver)
    asyncio.run(run())


@pytest.mark.parametrize(
    "client",
    [
        lambda: redis.Redis(host=HOST, port=processes.shared().port, decode_responses=True),
        lambda: aioredis.Redis(host=HOST, port=processes.shared().port, decode_responses=True),
        lambda: cluster.shared().client(),
    ],
)
def test_clients_of_the_user_serve_both_apis(client: Callable[[], Any], prefix: str) -> None:
    for name in (RedisSaver, AsyncRedisSaver):
        saver = name(redis_client=client(), prefix=prefix, **MEMORY)
        use_blocking(saver)
        asyncio.run(use_asyncio(saver))
        saver.close()


def test_arguments_for_the_connection_are_those_of_redis_py(prefix: str) -> None:
    server = processes.shared()
    saver = RedisSaver(server.url, connection_args={"db": 3}, checkpoint_prefix=prefix, **MEMORY)
    use_blocking(saver)
    with redis.Redis(host=HOST, port=server.port, db=3) as client:
        assert client.keys(f"{prefix}:*")
    saver.close()
    with pytest.raises(ConfigError, match="when it is made"):
        RedisSaver(redis_client=client, connection_args={"db": 3})


class State(TypedDict):
    """A counter."""

    count: int


@pytest.mark.parametrize("name", [RedisSaver, AsyncRedisSaver])
def test_a_graph_runs_and_goes_on(name: Any, prefix: str) -> None:
    def add(state: State) -> State:
        return {"count": state["count"] + 1}

    builder = StateGraph(State)
    builder.add_node("add", add)
    builder.add_edge(START, "add")
    builder.add_edge("add", END)
    with name(processes.shared().url, prefix=prefix, **MEMORY) as saver:
        graph = builder.compile(checkpointer=saver)
        assert graph.invoke({"count": 1}, THREAD)["count"] == 2
        assert asyncio.run(graph.ainvoke({"count": 5}, THREAD))["count"] == 6
        assert len(list(graph.get_state_history(THREAD))) == 6


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "redis_url or redis_client"),
        ({"redis_url": "redis://h", "redis_client": 1}, "redis_url or redis_client"),
        ({"redis_url": "redis://h", "ttl": 60}, "timedelta"),
        ({"redis_url": "redis://h", "ttl": {"default_ttl": "60"}}, "minutes"),
        ({"redis_url": "redis://h", "ttl": {"default_ttl": 0}}, "minutes"),
        ({"redis_url": "redis://h", "ttl": {"ttl": 60}}, "default_ttl"),
        ({"redis_url": "redis://h", "ttl": {"default_ttl": 1, "refresh_on_read": 1}}, "refresh_on_read"),
        ({"redis_client": 6379}, "client"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        RedisSaver(**arguments)


@pytest.mark.parametrize("ttl", [None, {}, {"default_ttl": -1}, {"default_ttl": 0.5}, timedelta(hours=1)])
def test_a_ttl_may_be_for_ever_or_exact(ttl: Any) -> None:
    RedisSaver("redis://h", ttl=ttl).close()


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadmark_redis", None)
    with pytest.raises(MissingDependencyError, match=r"threadmark-langgraph\[redis\]"):
        RedisSaver("redis://h")
