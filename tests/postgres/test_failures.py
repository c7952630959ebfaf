"""Broken connections, restarted servers and refusals: a bounded wait, then an error, and the saver stays usable."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from outages import (
    SHORT,
    cut_connections_are_replaced,
    ended_sessions_are_replaced,
    in_time,
    is_an_error_while_it_is_away,
    is_waited_for,
)
from patience import wait_until
from postgres.cluster import Cluster, PostgresServer
from postgres.proxy import Proxy
from postgres.sessions import END_SESSIONS
from postgres.steps import APIS, aplay, count, play, step, thread
from threadmark import Saver, StoreError, TransientStoreError
from threadmark.program import Program, Transaction
from threadmark_postgres import PostgresSaver, adding
from threadmark_postgres.driver import blocking
from threadmark_postgres.driver.failures import passes
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query, Rows


@pytest.mark.parametrize("api", APIS)
def test_sessions_that_the_server_ended_are_replaced(
    url: str, tables: psycopg.Connection, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        async with PostgresSaver(url) as saver:
            await ended_sessions_are_replaced(api(saver), lambda: tables.execute(END_SESSIONS).fetchall())

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
            tables.execute(END_SESSIONS)
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
                await cut_connections_are_replaced(api(saver), proxy.cut)

    asyncio.run(body())


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_is_away_is_an_error_and_one_that_is_back_is_used(api: Callable[[Saver], Any]) -> None:
    async def body() -> None:
        with Cluster(durable=True) as own:
            async with PostgresSaver(own.url, timeout=SHORT) as saver:
                await is_an_error_while_it_is_away(api(saver), own)

    asyncio.run(body())


def test_an_operation_waits_for_a_server_that_comes_back() -> None:
    with Cluster() as own, PostgresSaver(own.url, timeout=30) as saver:
        is_waited_for(saver, own)


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
            await in_time(lambda: calls.aput(config, *step(2)), "statement_timeout")
            assert count(saver, "one") == 2

    asyncio.run(body())


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


@pytest.mark.parametrize("crash", ["of the server", "of a session"])
def test_a_commit_that_a_crash_has_lost_is_not_mistaken_for_one_that_got_its_number_since(
    crash: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[int] = []

    def is_back() -> bool:
        with suppress(psycopg.Error):
            for _ in range(40):
                own.execute("SELECT pg_current_xact_id()")
            return True
        return False

    def send(connection: psycopg.Connection[Any], batch: Sequence[Query], *, prepare: bool) -> list[Rows]:
        if batch[0].sql == connections.COMMIT and not lost:
            lost.append(connection.info.backend_pid)
            if crash == "of the server":
                own.crash()
                own.start()
            else:
                os.kill(lost[0], signal.SIGKILL)
            wait_until(is_back, "the server did not come back")
        return send_to_server(connection, batch, prepare=prepare)

    send_to_server = blocking.send
    # The log of a change is written with its commit, and not before.
    with Cluster(durable=True, settings={"wal_writer_delay": "10s"}) as own, PostgresSaver(own.url) as saver:
        play(saver, "one", 1)
        own.execute("CHECKPOINT")
        monkeypatch.setattr(blocking, "send", send)
        assert saver.update_thread("one", title="new").title == "new"
        assert lost
        found = saver.get_thread("one")
        assert found is not None
        assert found.title == "new"


_TABLES = ("thread", "segment", "checkpoint", "head", "write")


@pytest.mark.parametrize("is_put", [True, False])
def test_a_saver_relies_on_nothing_that_a_server_has_lost_when_it_starts_again(*, is_put: bool) -> None:
    """As after the failover to a standby that had not received the last steps, or a crash without durable commits."""
    with Cluster() as own, PostgresSaver(own.url) as saver:
        config = play(saver, "one", 3, size=20)
        before = saver.put(config, *step(3, size=20))
        for table in _TABLES:
            own.execute(f"CREATE TABLE kept_{table} AS SELECT * FROM threadmark_{table}")
        text = "neither the server nor another thread has this" * 100
        if is_put:
            lost, *others = step(4, size=20)
            lost["channel_values"]["messages"].append(text)
            last = saver.put(before, lost, *others)
        else:
            last = before
            saver.put_writes(before, [("messages", [text])], "task")
        for table in _TABLES:
            own.execute(f"TRUNCATE threadmark_{table}")
            own.execute(f"INSERT INTO threadmark_{table} SELECT * FROM kept_{table}")
        own.restart()
        following, *others = step(5, size=20)
        following["channel_values"]["messages"].append(text)
        end = saver.put(last, following, *others)
        with PostgresSaver(own.url) as other:
            assert other.verify(decode=True).problems == []
            assert other.get(end) == following
        epochs = [saver._driver.run(Transaction(saver._context.store.epoch, ("one",)))]
        for number in (6, 7):
            end = saver.put(end, *step(number, size=20))
            epochs.append(saver._driver.run(Transaction(saver._context.store.epoch, ("one",))))
        assert len({*epochs}) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_change_that_no_message_of_postgres_holds_is_refused_before_it_is_sent(
    cluster: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch, api: Callable[[Saver], Any]
) -> None:
    async def body() -> None:
        with Proxy(cluster.port) as proxy:
            async with PostgresSaver(url.replace(f":{cluster.port}/", f":{proxy.port}/")) as saver:
                calls = api(saver)
                config = await aplay(calls, "one", 2)
                before = proxy.round_trips
                monkeypatch.setattr(adding, "_LARGEST", 100_000)
                stored, *others = step(2)
                stored["channel_values"]["messages"] = os.urandom(100_000)
                for call in (
                    partial(calls.aput, config, stored, *others),
                    partial(calls.aput, config, stored, *others, expect_newest=True),
                    partial(calls.aput_writes, config, [("messages", os.urandom(100_000))], "task"),
                ):
                    with pytest.raises(StoreError, match="less than 1 GiB") as refusal:
                        await call()
                    assert not isinstance(refusal.value, TransientStoreError)
                assert proxy.round_trips == before
                await calls.aput(config, *step(2))

    asyncio.run(body())
