"""Callers that leave before their reply comes, forks, and event loops: no reply ever reaches another caller."""

import asyncio
import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from patience import wait_until
from redis_backend.drivers import adding, driver_of, echoing, members
from redis_backend.processes import FORGETFUL, RedisProcess
from redis_backend.proxy import Proxy
from threadmark_redis.driver import RedisDriver


def _requested(proxy: Proxy) -> None:
    """Forget the requests that have come, so that the next one is noticed."""
    while proxy.requested.acquire(blocking=False):
        pass


def test_cancelled_tasks_leave_no_reply_to_others(proxy: Proxy, key: bytes) -> None:
    """Some are cancelled while they connect, some while they send or wait, some when their reply has come."""
    driver = driver_of(proxy.url, pool_size=3)

    async def ask(number: int, after: float | None) -> None:
        text = f"reply {number}".encode()
        try:
            async with asyncio.timeout(after):
                assert await driver.arun(echoing(key, text)) == text
        except TimeoutError:
            pass

    async def body() -> None:
        for round_ in range(40):
            after = [None, *(step * 0.0002 for step in range(1, 8))]
            await asyncio.gather(*(ask(10 * round_ + number, each) for number, each in enumerate(after)))
        await driver.aclose()

    asyncio.run(body())


def test_a_task_that_is_cancelled_while_the_server_is_silent_gives_its_connection_up(proxy: Proxy, key: bytes) -> None:
    driver = driver_of(proxy.url, pool_size=1)

    async def body() -> None:
        await driver.arun(echoing(key, b"first"))
        before = proxy.connections
        with proxy.holding():
            _requested(proxy)
            waiting = asyncio.create_task(driver.arun(echoing(key, b"nobody's")))
            await asyncio.to_thread(proxy.requested.acquire)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert await driver.arun(echoing(key, b"mine")) == b"mine"
        assert proxy.connections == before + 1
        await driver.aclose()

    asyncio.run(body())


@contextmanager
def _interrupted_when_requested(proxy: Proxy) -> Iterator[None]:
    """Interrupt the main thread, as Ctrl-C does, when its request has come here."""
    _requested(proxy)

    def interrupt() -> None:
        proxy.requested.acquire()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_an_interrupted_call_leaves_no_reply_to_the_next_one(proxy: Proxy, key: bytes) -> None:
    driver = driver_of(proxy.url, pool_size=1)
    assert driver.run(echoing(key, b"first")) == b"first"
    for number in range(5):
        with proxy.holding(), pytest.raises(KeyboardInterrupt), _interrupted_when_requested(proxy):
            driver.run(echoing(key, b"nobody's"))
        text = f"mine {number}".encode()
        assert driver.run(echoing(key, text)) == text
    driver.close()


# A connection that is being opened has no owner yet: the interpreter closes it, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts_at_any_instant_harm_no_later_call(server: RedisProcess, key: bytes) -> None:
    driver = driver_of(server.url, pool_size=1)
    ended = threading.Event()
    asked = threading.Semaphore(0)

    def interrupt() -> None:
        delay = 0.0
        while asked.acquire() and not ended.is_set():
            time.sleep(delay)
            delay = (delay + 0.000_07) % 0.002
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    interrupted = 0
    try:
        for number in range(60):
            try:
                asked.release()
                for count in itertools.count():  # until the interrupt comes
                    text = f"{number} {count}".encode()
                    assert driver.run(echoing(key, text)) == text
            except KeyboardInterrupt:
                interrupted += 1
        assert driver.run(echoing(key, b"last")) == b"last"
    finally:
        ended.set()
        asked.release()
        thread.join()
    assert interrupted == 60
    results: list[bytes] = []
    other = threading.Thread(target=lambda: results.append(driver.run(echoing(key, b"of a thread"))))
    other.start()
    other.join(30)
    assert results == [b"of a thread"], "the threads' own connections are not held for ever"
    driver.close()


def test_a_call_does_not_block_its_event_loop(server: RedisProcess, key: bytes) -> None:
    with Proxy(server.port) as proxy:
        driver = driver_of(proxy.url)

        async def body() -> None:
            await driver.arun(adding(key, 1))
            with proxy.holding():
                _requested(proxy)
                waiting = asyncio.create_task(driver.arun(adding(key, 2)))
                await asyncio.to_thread(proxy.requested.acquire)
                assert not waiting.done()  # and the loop runs, or this would never be reached
            assert await waiting == 1
            await driver.aclose()

        asyncio.run(body())


def test_one_driver_serves_several_event_loops_and_threads_at_once(server: RedisProcess, key: bytes) -> None:
    driver = driver_of(server.url, pool_size=2)

    async def on_a_loop(first: int) -> None:
        await asyncio.gather(*(driver.arun(adding(key, first + number)) for number in range(50)))

    def on_a_thread(first: int) -> None:
        for number in range(50):
            driver.run(adding(key, first + number))

    threads = [threading.Thread(target=asyncio.run, args=(on_a_loop(100 * each),)) for each in range(3)]
    threads += [threading.Thread(target=on_a_thread, args=(1000 * each,)) for each in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for _ in range(2):
        asyncio.run(on_a_loop(50_000))
    assert server.client.scard(key) == 50 * 8
    driver.close()


def _in_a_child(driver: RedisDriver, key: bytes, number: int) -> int:
    """Use the driver in a fork of this process. Returns the status that the child ended with, 0 if all was well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            text = f"child {number}".encode()
            right = all(driver.run(echoing(key, text)) == text for _ in range(50))
            right = right and asyncio.run(driver.arun(echoing(key, text))) == text
            status = 0 if right else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_child_of_a_fork_has_connections_of_its_own(key: bytes) -> None:
    with RedisProcess(FORGETFUL) as server:
        server.start()
        driver = driver_of(server.url)
        assert driver.run(echoing(key, b"parent")) == b"parent"
        before = server.information("stats")["total_connections_received"]
        assert [_in_a_child(driver, key, number) for number in range(3)] == [0, 0, 0]
        assert server.information("stats")["total_connections_received"] >= before + 6
        assert driver.run(echoing(key, b"parent")) == b"parent"
        assert driver.run(members(key)) == [[]]
        driver.close()


def test_a_loop_that_ends_leaves_no_connection_behind(key: bytes) -> None:
    with RedisProcess(FORGETFUL) as server:
        server.start()
        driver = driver_of(server.url)

        async def body() -> None:
            await asyncio.gather(*(driver.arun(echoing(key, b"x")) for _ in range(4)))

        for _ in range(3):
            asyncio.run(body())
        wait_until(lambda: server.information("clients")["connected_clients"] == 1, "a connection is left")
        driver.close()
