"""Broken connections, lost replies, restarted and hanging servers: a bounded wait, and the saver stays usable."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from client_log import Load, all_faults
from outages import (
    SHORT,
    cut_connections_are_replaced,
    ended_sessions_are_replaced,
    in_time,
    is_an_error_while_it_is_away,
    is_waited_for,
)
from patience import wait_until
from postgres.steps import APIS, aplay, count, play, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.cluster import RedisCluster
from redis_backend.places import PLACES, saver_at
from redis_backend.processes import DURABLE, RedisProcess
from redis_backend.proxy import Proxy
from threadmark import Saver, StoreError, TransientStoreError
from threadmark_redis import RedisSaver


@pytest.mark.parametrize("api", APIS)
def test_connections_cut_without_a_word_are_replaced(proxy: Proxy, prefix: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with RedisSaver(proxy.url, prefix=prefix, **OPTIONS) as saver:
            await cut_connections_are_replaced(api(saver), proxy.cut)

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_connections_that_the_server_closed_are_replaced(
    server: RedisProcess, prefix: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with RedisSaver(server.url, prefix=prefix, **OPTIONS) as saver:
            kill = partial(server.command, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await ended_sessions_are_replaced(api(saver), kill)

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_put_whose_reply_was_lost_is_stored_once(proxy: Proxy, prefix: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with RedisSaver(proxy.url, prefix=prefix, **OPTIONS) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 2, 100)
            proxy.lose_reply("EVALSHA")
            config = await calls.aput(config, *step(2, 100))
            proxy.lose_reply("EVALSHA")
            await calls.aput_writes(config, [("messages", "text " * 500), ("__interrupt__", "text " * 500)], "task")
            found = await calls.aget_tuple(thread("one"))
            assert found.config == config
            assert len(found.pending_writes) == 2
            assert len([item async for item in saver.alist(thread("one"))]) == 3
            assert (await calls.averify("one", decode=True)).problems == []

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_removal_whose_reply_was_lost_is_done(proxy: Proxy, prefix: str, api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        async with RedisSaver(proxy.url, prefix=prefix, **OPTIONS) as saver:
            calls = api(saver)
            await aplay(calls, "one", 6)
            proxy.lose_reply("EVALSHA")
            await calls.aprune(["one"])
            assert len([item async for item in saver.alist(thread("one"))]) == 1
            proxy.lose_reply("EVALSHA")
            await calls.adelete_thread("one")
            assert await calls.aget(thread("one")) is None

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_is_away_is_an_error_and_one_that_is_back_is_used(api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        with RedisProcess(DURABLE).start() as own:
            async with RedisSaver(own.url, timeout=SHORT) as saver:
                await is_an_error_while_it_is_away(api(saver), own)

    asyncio.run(body())


def test_an_operation_waits_for_a_server_that_comes_back() -> None:
    with RedisProcess(DURABLE).start() as own, RedisSaver(own.url, timeout=120) as saver:
        is_waited_for(saver, own)


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_hangs_is_an_error_in_time(api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        with RedisProcess(DURABLE).start() as own:
            with RedisSaver(own.url) as patient:
                play(patient, "one", 3)
            async with RedisSaver(f"{own.url}?socket_timeout=0.2", timeout=SHORT) as saver:
                calls = api(saver)
                await in_time(lambda: calls.aget(thread("one")), f"for {SHORT} s", "Timeout")
                own.suspend()
                with pytest.raises(TransientStoreError):
                    await calls.aget(thread("one"))
                own.resume()
                found = await in_time(lambda: calls.aget(thread("one")), f"for {SHORT} s")
                assert found["channel_values"]["count"] == 2

    asyncio.run(body())


def test_a_server_whose_memory_is_full_says_so_and_is_used_when_there_is_room() -> None:
    with RedisProcess({"maxmemory-policy": "noeviction"}).start() as own, RedisSaver(own.url, **OPTIONS) as saver:
        config = play(saver, "one", 2)
        own.command("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreError, match="maxmemory"):
            saver.put(config, *step(2))
        assert count(saver, "one") == 1
        own.command("CONFIG", "SET", "maxmemory", "0")
        saver.put(config, *step(2))
        assert count(saver, "one") == 2


def test_a_server_whose_memory_is_full_lets_go_of_what_is_removed() -> None:
    with RedisProcess({"maxmemory-policy": "noeviction"}).start() as own, RedisSaver(own.url, **OPTIONS) as saver:
        newest = [play(saver, name, 9, 100) for name in ("one", "two", "three")]
        own.command("CONFIG", "SET", "maxmemory", "1")
        assert saver.prune(["one"], keep_last=2).checkpoints == 7
        assert saver.delete_checkpoint(newest[1])
        assert saver.delete_thread("three")
        saver.rename_thread("two", "two again")
        with pytest.raises(StoreError, match="maxmemory"):
            saver.copy_thread("one", "copy")
        own.command("CONFIG", "SET", "maxmemory", "0")
        assert [count(saver, name) for name in ("one", "two again")] == [8, 7]
        assert {each.id for each in saver.list_threads().threads} == {"one", "two again"}
        assert saver.verify(decode=True).problems == []


@pytest.mark.parametrize("place", PLACES)
def test_scripts_that_the_server_forgets_are_sent_again(place: str, prefix: str) -> None:
    """A restart forgets all scripts, and so does SCRIPT FLUSH, at any moment."""
    from redis_backend import cluster, processes, sentinel

    nodes = {
        "single": lambda: [processes.shared()],
        "cluster": lambda: list(cluster.shared().masters),
        "sentinel": lambda: [sentinel.shared().master],
    }[place]()
    with saver_at(place, prefix, timeout=120) as saver:
        load = Load(saver, "load", 4)
        with load.running():
            for _ in range(25):
                for node in nodes:
                    node.command("SCRIPT", "FLUSH")
                load.wait_for(1)
        assert all_faults(load.logs, saver) == []


def test_a_client_that_was_refused_waits_until_there_is_room_for_it() -> None:
    with RedisProcess({"maxclients": "3"}).start() as own, RedisSaver(own.url, **{**OPTIONS, "timeout": 60}) as saver:
        first = [RedisSaver(own.url, **OPTIONS) for _ in range(2)]
        for number, each in enumerate(first):
            play(each, f"thread {number}", 1)  # with the tests' own connection that makes three
        waiting = threading.Thread(target=play, args=(saver, "one", 1))
        waiting.start()
        wait_until(lambda: own.information("stats")["rejected_connections"] > 0, "nobody was refused")
        for each in first:
            each.close()
        waiting.join(60)
        assert count(saver, "one") == 0


_CHANGES: dict[str, tuple[Callable[[Saver], Any], str]] = {
    "a prune": (lambda saver: saver.prune(["one"]).checkpoints, "one"),
    "a copy": (lambda saver: saver.copy_thread("one", "two"), "two"),
    "a renaming": (lambda saver: saver.rename_thread("one", "two"), "two"),
    "a new thread": (lambda saver: saver.create_thread("two").id, "two"),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_a_change_of_several_steps_whose_reply_was_lost_is_made_once_and_listed(
    proxy: Proxy, prefix: str, name: str
) -> None:
    change, changed = _CHANGES[name]
    results = []
    for number, lost in enumerate([None, *range(1, 7)]):
        with RedisSaver(proxy.url, prefix=f"{prefix}{number}:", **OPTIONS) as saver:
            play(saver, "one", 5)
            if lost is not None:
                proxy.lose_reply("EVALSHA", after=lost - 1)
            results.append(change(saver))
            proxy.lose_reply("")
            assert changed in [info.id for info in saver.list_threads().threads]
    assert results == [results[0]] * len(results)


def test_a_thread_whose_first_reply_a_cluster_lost_is_listed(prefix: str) -> None:
    names = [f"thread {number}" for number in range(12)]
    with (
        RedisCluster(masters=3, replicas=0, behind_proxies=True) as cluster,
        RedisSaver(cluster.url, prefix=prefix, **OPTIONS) as saver,
    ):
        for number, name in enumerate(names):
            for each in cluster.proxies:
                each.lose_reply("EVALSHA" if number > 8 else "")  # by then every master knows the script
            saver.put(thread(name), *step(0))
        for each in cluster.proxies:
            each.lose_reply("")
        assert sorted(info.id for info in saver.list_threads().threads) == sorted(names)
