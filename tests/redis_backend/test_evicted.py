"""A server that evicts keys of a thread, or lets them expire: the thread is there whole, or an error says it is not."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from postgres.steps import APIS, count, play, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.processes import RedisProcess
from threadmark import CorruptDataError, Saver, StoreError
from threadmark_conformance.engine import at, checkpoint
from threadmark_redis import RedisSaver
from threadmark_redis.keys import ThreadKeys, thread_keys

COMPANIONS = [name for name in ThreadKeys._fields if name != "head"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("companion", COMPANIONS)
def test_a_thread_that_lacks_a_key_is_an_error_that_says_so(
    server: RedisProcess, prefix: str, companion: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with (
            RedisSaver(server.url, prefix=prefix, **OPTIONS) as saver,
            RedisSaver(server.url, prefix=prefix, **OPTIONS, cache_bytes=0) as cold,
        ):
            config = play(saver, "one", 3, 100)
            play(saver, "other", 3, 100)
            key = getattr(thread_keys(prefix.encode(), "one"), companion)
            assert server.client.delete(key) == 1
            for each in (saver, cold):
                calls = api(each)
                for asked in (calls.aget_tuple(thread("one")), calls.aget_tuple(config), calls.aput(config, *step(3))):
                    with pytest.raises((StoreError, CorruptDataError), match="evicted"):
                        await asked
                with pytest.raises((StoreError, CorruptDataError), match="evicted"):
                    await calls.aput_writes(config, [("messages", "text")], "another task")
                with pytest.raises((StoreError, CorruptDataError), match="evicted"):
                    _ = (
                        [item async for item in calls.alist(thread("one"))]
                        if api is not APIS[0]
                        else list(each.list(thread("one")))
                    )
                assert (await calls.aget(thread("other")))["channel_values"]["count"] == 2
            await api(saver).adelete_thread("one")
            assert await api(saver).aget(thread("one")) is None
            play(saver, "one", 2)
            assert count(cold, "one") == 1

    asyncio.run(body())


def test_what_a_write_counts_on_is_stored_again_where_the_server_has_lost_it(server: RedisProcess, prefix: str) -> None:
    chance = Random(3)
    value, other = chance.randbytes(3000).hex(), chance.randbytes(3000).hex()
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as saver:
        config = saver.put(at("one"), checkpoint({"a": value}), {}, {"a": 1})
        segments = thread_keys(prefix.encode(), "one").segments
        lost = server.client.hkeys(segments)
        saver.put_writes(config, [("b", other)], "first task")
        assert server.client.hdel(segments, *lost) == len(lost) > 0
        saver.put_writes(config, [("a", value)], "second task")
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as saver:
        found = saver.get_tuple(at("one"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": value}
        assert [(channel, written) for _, channel, written in found.pending_writes or []] == [
            ("b", other),
            ("a", value),
        ]


def test_a_thread_whose_head_was_evicted_is_gone_or_an_error_and_never_a_half(
    server: RedisProcess, prefix: str
) -> None:
    with RedisSaver(server.url, prefix=prefix, **OPTIONS) as saver:
        config = play(saver, "one", 3, 100)
        server.client.delete(thread_keys(prefix.encode(), "one").head)
        try:
            saver.put(config, *step(3, 100))
        except CorruptDataError as error:
            assert "evicted" in str(error)
            saver.delete_thread("one")
            play(saver, "one", 4, 100)
        assert saver.verify("one", decode=True).problems == []
        assert count(saver, "one") == 3


def test_all_keys_of_a_thread_expire_at_once(server: RedisProcess, prefix: str) -> None:
    keys = thread_keys(prefix.encode(), "one")
    with RedisSaver(server.url, prefix=prefix, ttl=timedelta(hours=1), **OPTIONS) as saver:
        config = play(saver, "one", 3, 100)
        for change in (
            lambda: saver.put(config, *step(3)),
            lambda: saver.put_writes(config, [("messages", "text" * 500)], "one more"),
            lambda: saver.prune(["one"], keep_last=2),
        ):
            server.client.pexpire(keys.head, 1_000_000_000)
            change()
            began = time.monotonic()
            left = [server.client.pttl(key) for key in keys if server.client.exists(key)]
            assert len(left) > 2
            assert 3_600_000 < min(left) <= max(left) <= 4_600_000  # the ttl, a quarter of it, and a minute
            assert max(left) - min(left) <= 1000 * (time.monotonic() - began) + 1
        saver.copy_thread("one", "copy")
        copied = thread_keys(prefix.encode(), "copy")
        assert all(server.client.pttl(key) > 0 for key in copied if server.client.exists(key))
        saver.update_thread("one", expires_at=None)
        assert {server.client.pttl(key) for key in keys if server.client.exists(key)} == {-1}


def test_a_server_short_of_memory_loses_whole_threads_or_says_so() -> None:
    """Under load, with a policy that evicts any key: each thread is whole, gone, or an error."""
    settings = {"maxmemory": "1800kb", "maxmemory-policy": "allkeys-random", "maxmemory-samples": "1"}
    with RedisProcess(settings).start() as server, RedisSaver(server.url, **OPTIONS) as saver:
        outcomes = {"whole": 0, "gone": 0, "evicted": 0}
        for number in range(150):
            try:
                play(saver, f"thread {number}", 3, 200)
            except (StoreError, CorruptDataError) as error:
                assert "evicted" in str(error)
        for number in range(150):
            try:
                found = saver.get(thread(f"thread {number}"))
            except (StoreError, CorruptDataError) as error:
                assert "evicted" in str(error)
                outcomes["evicted"] += 1
            else:
                outcomes["whole" if found else "gone"] += 1
                assert found is None or found["channel_values"]["count"] in (0, 1, 2)
        assert min(outcomes["evicted"], outcomes["whole"] + outcomes["gone"]) > 0, outcomes
