"""A cancelled task leaves no connection whose next reply belongs to another caller, and nothing half done."""

import asyncio
import random

import pytest

from patience import wait_until
from postgres.steps import aplay, step, thread
from redis_backend.backends import OPTIONS
from redis_backend.places import PLACES, saver_at
from redis_backend.processes import RedisProcess
from redis_backend.proxy import Proxy
from threadmark_redis import RedisSaver

_THREADS = 6


async def _own_texts(saver: RedisSaver, number: int) -> None:
    """Fail unless a thread's newest checkpoint and its listing are its own."""
    found = await saver.aget(thread(f"thread {number}"))
    assert found
    assert found["channel_values"]["count"] == number
    assert [item.metadata["step"] async for item in saver.alist(thread(f"thread {number}"))] == [number]


def _wait_for_command(proxy: Proxy, after: int) -> None:
    wait_until(lambda: len(proxy.commands) > after, "no command comes")


async def _prepared(saver: RedisSaver) -> None:
    for number in range(_THREADS):
        await saver.aput(thread(f"thread {number}"), *step(number))


def test_a_reply_that_comes_after_its_task_was_cancelled_is_nobodys(proxy: Proxy, prefix: str) -> None:
    async def body() -> None:
        async with RedisSaver(proxy.url, prefix=prefix, **{**OPTIONS, "pool_size": 1}) as saver:
            await _prepared(saver)
            for number in range(_THREADS):
                asked = len(proxy.commands)
                with proxy.holding():
                    task = asyncio.create_task(saver.aget(thread(f"thread {number}")))
                    await asyncio.to_thread(_wait_for_command, proxy, asked)
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                await _own_texts(saver, (number + 1) % _THREADS)

    asyncio.run(body())


@pytest.mark.parametrize("place", PLACES)
def test_whoever_is_cancelled_the_others_get_their_own_replies(place: str, prefix: str) -> None:
    chance = random.Random(place)

    async def cancelled(saver: RedisSaver, number: int) -> None:
        calls = [
            saver.aget(thread(f"thread {number}")),
            saver.aput(thread(f"other {number}"), *step(number, 50)),
            saver.aput_writes(thread(f"other {number}", "1"), [("messages", "text " * 50)], "task"),
        ]
        tasks = [asyncio.create_task(call) for call in calls]
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def body() -> None:
        async with saver_at(place, prefix, pool_size=3) as saver:
            await _prepared(saver)
            for _ in range(40):
                victims = [cancelled(saver, number) for number in range(_THREADS)]
                readers = [_own_texts(saver, number) for number in range(_THREADS)]
                await asyncio.gather(*victims, *readers)
            # On a cluster the index of threads is best effort: a cancelled caller may leave it behind.
            problems = (await saver.averify(None, decode=True)).problems
            assert {problem.location for problem in problems} <= {"the index of threads"}

    asyncio.run(body())


def test_a_connection_whose_task_was_cancelled_is_given_back_or_closed(server: RedisProcess, prefix: str) -> None:
    async def body() -> None:
        async with RedisSaver(server.url, prefix=prefix, **{**OPTIONS, "pool_size": 2}) as saver:
            await aplay(saver, "one", 2)
            for number in range(50):
                task = asyncio.create_task(saver.aget(thread("one")))
                for _ in range(number % 10):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            found = await asyncio.gather(*(saver.aget(thread("one")) for _ in range(8)))
            assert all(each and each["channel_values"]["count"] == 1 for each in found)

    asyncio.run(body())
