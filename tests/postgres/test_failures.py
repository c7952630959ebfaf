"""Broken connections, restarted servers and refusals: a bounded wait, then an error, and the saver stays usable."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from postgres.cluster import Cluster, PostgresServer
from postgres.proxy import Proxy
from postgres.steps import APIS, aplay, count, play, step, thread
from threadmark import Saver, StoreError, TransientStoreError
from threadmark.program import Program, Transaction
from threadmark_postgres import PostgresSaver
from threadmark_postgres.driver.failures import passes
from threadmark_postgres.steps import Query, Rows

_END_SESSIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database() AND application_name = 'threadmark'
"""


@pytest.mark.parametrize("api", APIS)
def test_sessions_that_the_server_ended_are_replaced(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            calls = api(saver)
            config = await aplay(calls, "one", 2)
            for number in range(2, 6):
                assert tables.execute(_END_SESSIONS).fetchall()
                config = await calls.aput(config, *step(number))
            assert tables.execute(_END_SESSIONS).fetchall()
            assert len([item async for item in saver.alist(thread("one"))]) == 6

    asyncio.run(body())


def test_nothing_acknowledged_is_lost_while_sessions_end_under_load(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url, pool_size=4) as saver:
        saver.setup()
        stored: list[str] = []
        stop = threading.Event()

        def work(name: str) -> None:
            config = thread(name)
            number = 0
            while not stop.is_set():
                config = saver.put(config, *step(number % 5))
                stored.append(config["configurable"]["checkpoint_id"])
                number += 1

        workers = [threading.Thread(target=work, args=(f"thread {number}",)) for number in range(4)]
        for worker in workers:
            worker.start()
        rounds = 0
        while rounds < 20 or (len(stored) <= 2 * len(workers) and rounds < 2000):
            tables.execute(_END_SESSIONS)
            time.sleep(0.02)
            rounds += 1
        stop.set()
        for worker in workers:
            worker.join()
        found = {item.config["configurable"]["checkpoint_id"] for item in saver.list(None)}
        assert len(stored) > len(workers)
        assert found == set(stored)


@pytest.mark.parametrize("api", APIS)
def test_connections_cut_without_a_word_are_replaced(
    cluster: PostgresServer, url: str, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with Proxy(cluster.port) as proxy:
            through = url.replace(f":{cluster.port}/", f":{proxy.port}/")
            async with PostgresSaver(through) as saver:
                calls = api(saver)
                config = await aplay(calls, "one", 2)
                proxy.cut()
                await calls.aput(config, *step(2))
                proxy.cut()
                found = await calls.aget(thread("one"))
                assert found["channel_values"]["count"] == 2

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_is_away_is_an_error_and_one_that_is_back_is_used(api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        with Cluster(durable=True) as own:
            async with PostgresSaver(own.url, timeout=0.3) as saver:
                calls = api(saver)
                config = await aplay(calls, "one", 3)
                own.stop()
                with pytest.raises(TransientStoreError, match=r"port=.*could not be used for 0.3 s"):
                    await calls.aget(thread("one"))
                own.start()
                found = await _in_time(lambda: calls.aget(thread("one")), "for 0.3 s")
                assert found["channel_values"]["count"] == 2
                own.restart()
                await _in_time(lambda: calls.aput(config, *step(3)), "for 0.3 s")
                assert (await calls.aget(thread("one")))["channel_values"]["count"] == 3

    asyncio.run(body())


def test_an_operation_waits_for_a_server_that_comes_back() -> None:
    with Cluster() as own, PostgresSaver(own.url, timeout=30) as saver:
        config = play(saver, "one", 2)
        own.stop()
        starting = threading.Timer(0.5, own.start)
        starting.start()
        saver.put(config, *step(2))
        starting.join()
        assert count(saver, "one") == 2


@pytest.mark.parametrize("host", ["database", "pool-1.internal"])
def test_a_server_that_refuses_for_now_is_tried_again_whatever_its_name_is(host: str) -> None:
    refused = f'connection to server at "{host}" (10.0.0.1), port 5432 failed: Connection refused'
    assert passes(psycopg.OperationalError(refused))


def test_a_closed_pool_of_the_user_is_an_error_at_once(url: str) -> None:
    with ConnectionPool(url, min_size=1) as pool:
        saver = PostgresSaver(pool)
        play(saver, "thread", 1)
    started = time.monotonic()
    with pytest.raises(StoreError, match="closed"):
        saver.get(thread("thread"))
    assert time.monotonic() - started < 10  # and not the 30 s for which it would wait for a server


def test_a_refused_role_is_an_error_at_once(url: str) -> None:
    with (
        PostgresSaver(url.replace("postgres@", "nobody_here@"), timeout=3600) as saver,
        pytest.raises(StoreError, match="does not exist"),
    ):
        saver.get(thread("one"))


@pytest.mark.parametrize("api", APIS)
def test_a_statement_that_takes_too_long_is_an_error_at_once(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        options = "?options=-c%20statement_timeout%3D50"
        async with PostgresSaver(url) as saver, PostgresSaver(url + options, timeout=3600) as hurried:
            config = await aplay(saver, "one", 2)
            calls = api(hurried)
            with tables.transaction():
                tables.execute("SELECT FROM threadmark_thread FOR UPDATE")
                with pytest.raises(StoreError, match="statement_timeout"):
                    await calls.aput(config, *step(2))
            assert count(saver, "one") == 1
            await _in_time(lambda: calls.aput(config, *step(2)), "statement_timeout")
            assert count(saver, "one") == 2

    asyncio.run(body())


async def _in_time(call: Callable[[], Awaitable[Any]], out_of_time: str) -> Any:
    """Repeat a call for as long as its error says `out_of_time`: on a busy machine any call may be too slow."""
    while True:
        try:
            return await call()
        except StoreError as error:
            if out_of_time not in str(error):
                raise


def test_a_plan_that_fits_no_more_is_made_again_and_what_the_server_cannot_do_is_an_error_at_once(
    url: str, tables: psycopg.Connection
) -> None:
    tried: list[str] = []

    def run(statement: str) -> Rows:
        def program() -> Program[Rows]:
            tried.append(statement)
            rows: Rows = yield Query(statement)
            return rows

        return saver._driver.run(Transaction(program, writes=True))

    tables.execute("CREATE TABLE changing (one int)")
    tables.commit()
    with PostgresSaver(url, timeout=60) as saver:
        for _ in range(3):
            assert run("SELECT * FROM changing") == []
        tables.execute("ALTER TABLE changing ADD two int")
        tables.execute("INSERT INTO changing VALUES (1, 2)")
        tables.commit()
        assert run("SELECT * FROM changing") == [(1, 2)]
        assert len(tried) == 5
        with pytest.raises(StoreError, match="FOR UPDATE is not allowed with DISTINCT"):
            run("SELECT DISTINCT one FROM changing FOR UPDATE")
        assert len(tried) == 6


def test_an_id_that_is_too_long_for_an_index_is_refused(url: str) -> None:
    import random

    name = "".join(chr(random.randrange(0x4E00, 0x9FFF)) for _ in range(5000))
    with PostgresSaver(url) as saver:
        with pytest.raises(ValueError, match="has 15000 bytes, and at most 512 are allowed"):
            saver.put(thread(name), *step(0))
        play(saver, "one", 1)
        assert count(saver, "one") == 0


def test_an_exhausted_pool_is_an_error(url: str, tables: psycopg.Connection) -> None:
    with PostgresSaver(url, pool_size=1, timeout=0.3) as saver:
        config = play(saver, "one", 1)
        with tables.transaction():
            tables.execute("SELECT FROM threadmark_thread FOR UPDATE")
            waiting = threading.Thread(target=saver.put, args=(config, *step(1)))
            waiting.start()
            while not next(tables.execute("SELECT count(*) FROM pg_locks WHERE NOT granted"))[0]:
                time.sleep(0.01)
            with pytest.raises(TransientStoreError, match="pool_size"):
                saver.get(thread("one"))
        waiting.join()
        assert count(saver, "one") == 1
