"""Connections and pools that the user opened: used as they are, and left as they were."""

import asyncio
import math
import threading
from contextlib import nullcontext
from typing import Any

import psycopg
import psycopg_pool
import pytest
from psycopg.adapt import Loader
from psycopg.pq import Format
from psycopg.rows import dict_row, namedtuple_row

from postgres.steps import aplay, count, play, step, thread
from threadmark import ClosedError, ConfigError, StoreError
from threadmark_postgres import PostgresSaver
from threadmark_postgres.driver import aio, blocking


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_connection_is_left_as_it_was(url: str, *, autocommit: bool) -> None:
    with psycopg.connect(url, autocommit=autocommit, row_factory=dict_row, prepare_threshold=2) as connection:
        with PostgresSaver(connection) as saver:
            config = play(saver, "one", 4)
            saver.copy_thread("one", "two")
            assert (count(saver, "one"), count(saver, "two")) == (3, 3)
            asyncio.run(saver.aput(config, *step(4)))
            assert count(saver, "one") == 4
        assert not connection.closed
        assert connection.autocommit is autocommit
        assert connection.row_factory is dict_row
        assert connection.execute("SELECT 1 AS one").fetchall() == [{"one": 1}]


@pytest.mark.parametrize("autocommit", [True, False])
def test_an_asyncio_connection_is_left_as_it_was(url: str, *, autocommit: bool) -> None:
    async def body() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=autocommit, row_factory=namedtuple_row)
        async with connection:
            async with PostgresSaver(connection) as saver:
                config = await aplay(saver, "one", 4)
                await asyncio.gather(*(saver.aput_writes(config, [("count", 1)], f"t{n}") for n in range(10)))
                found = await saver.aget_tuple(thread("one"))
                assert found
                assert len(found.pending_writes or ()) == 11
                with pytest.raises(ConfigError, match="give a URL"):
                    saver.get(thread("one"))
            assert not connection.closed
            assert connection.autocommit is autocommit
            await connection.execute("SELECT 1")

    asyncio.run(body())


def test_a_pool_serves_many_threads(url: str) -> None:
    options = {"autocommit": False, "row_factory": dict_row}
    with (
        psycopg_pool.ConnectionPool(url, kwargs=options, min_size=1, max_size=3, open=True) as pool,
        PostgresSaver(pool) as saver,
    ):
        play(saver, "one", 4)
        asyncio.run(aplay(saver, "two", 4))
        assert (count(saver, "one"), count(saver, "two")) == (3, 3)
        with pool.connection() as connection:
            assert connection.autocommit is False


def test_an_asyncio_pool_serves_many_tasks(url: str) -> None:
    async def body() -> None:
        async with (
            psycopg_pool.AsyncConnectionPool(url, min_size=1, max_size=3, open=False) as pool,
            PostgresSaver(pool) as saver,
        ):
            await asyncio.gather(*(aplay(saver, str(number), 3) for number in range(8)))
            assert len([item async for item in saver.alist(None)]) == 24

    asyncio.run(body())


def test_a_pool_that_is_not_open_is_an_error_at_once(url: str) -> None:
    pool = psycopg_pool.ConnectionPool(url, open=False)
    with PostgresSaver(pool, timeout=3600) as saver, pytest.raises(StoreError, match="pool"):
        saver.get(thread("one"))


class _CountingPool(psycopg_pool.ConnectionPool[Any]):
    """Counts how often a connection was asked for."""

    asked = 0

    def connection(self, timeout: float | None = None) -> Any:
        self.asked += 1
        return super().connection(timeout)


class _CountingAsyncPool(psycopg_pool.AsyncConnectionPool[Any]):
    """Like `_CountingPool`, for asyncio."""

    asked = 0

    def connection(self, timeout: float | None = None) -> Any:
        self.asked += 1
        return super().connection(timeout)


def end_sessions(tables: psycopg.Connection) -> None:
    """End all other sessions of the database, and wait until they are gone."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    tables.execute(f"SELECT pg_terminate_backend(pid) {others}".encode())
    while next(tables.execute(f"SELECT count(*) {others}".encode()))[0]:
        pass


def test_the_dead_connections_of_a_pool_are_not_met_one_by_one(url: str, tables: psycopg.Connection) -> None:
    with _CountingPool(url, min_size=20, open=True) as pool, PostgresSaver(pool) as saver:
        pool.wait()
        config = play(saver, "one", 2)
        end_sessions(tables)
        pool.asked = 0
        saver.put(config, *step(2))
        assert pool.asked <= 3
        assert count(saver, "one") == 2


def test_the_dead_connections_of_an_asyncio_pool_are_not_met_one_by_one(url: str, tables: psycopg.Connection) -> None:
    async def body() -> None:
        async with _CountingAsyncPool(url, min_size=20, open=False) as pool, PostgresSaver(pool) as saver:
            await pool.wait()
            config = await aplay(saver, "one", 2)
            end_sessions(tables)
            pool.asked = 0
            await saver.aput(config, *step(2))
            assert pool.asked <= 3
            found = await saver.aget(thread("one"))
            assert found
            assert found["channel_values"]["count"] == 2

    asyncio.run(body())


@pytest.mark.parametrize("longest", [0.01, math.inf])
def test_a_look_at_a_pool_goes_on_when_it_is_not_waited_for_any_longer(longest: float) -> None:
    known, over = threading.Event(), threading.Event()

    def check() -> None:
        known.wait(60)
        over.set()

    if longest == math.inf:
        known.set()
    blocking.BorrowedConnection(nullcontext, check).forget_idle(longest)
    assert over.is_set() is known.is_set()
    known.set()
    assert over.wait(60)


@pytest.mark.parametrize("longest", [0.01, math.inf])
def test_a_look_at_an_asyncio_pool_goes_on_when_it_is_not_waited_for_any_longer(longest: float) -> None:
    async def body() -> None:
        known, over = asyncio.Event(), asyncio.Event()

        async def check() -> None:
            await asyncio.wait_for(known.wait(), 60)
            over.set()

        given = aio.BorrowedConnection(nullcontext, check)
        if longest == math.inf:
            known.set()
        await given.forget_idle(longest)
        assert over.is_set() is known.is_set()
        known.set()
        await asyncio.wait_for(over.wait(), 60)

    asyncio.run(body())


def test_an_open_transaction_is_not_joined(url: str) -> None:
    with psycopg.connect(url) as connection, PostgresSaver(connection) as saver:
        connection.execute("SELECT 1")
        with pytest.raises(StoreError, match="open transaction"):
            saver.get(thread("one"))
        connection.rollback()
        assert saver.get(thread("one")) is None


def test_a_connection_that_was_closed_is_an_error(url: str) -> None:
    with psycopg.connect(url) as connection:
        saver = PostgresSaver(connection)
        play(saver, "one", 1)
    with pytest.raises(ClosedError, match="URL"):
        saver.get(thread("one"))


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_client_encoding_that_holds_not_every_text_is_named(url: str, encoding: str) -> None:
    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(url, client_encoding=encoding) as connection:
            saver = PostgresSaver(connection)
            with pytest.raises(ConfigError, match="client_encoding"):
                await saver.aput(thread("日本"), *step(0))
            assert connection.autocommit is False
            await connection.execute("SELECT 1")

    asyncio.run(body())
    with psycopg.connect(url, client_encoding=encoding) as connection, PostgresSaver(connection) as saver:
        with pytest.raises(ConfigError, match="client_encoding"):
            saver.put(thread("日本"), *step(0))
        with pytest.raises(ConfigError, match="client_encoding"):
            saver.get(thread("日本"))
        if encoding == "LATIN1":
            play(saver, "Größe", 2)
            assert count(saver, "Größe") == 1


def test_one_text_that_a_connection_cannot_send_fails_alone(url: str) -> None:
    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(url, client_encoding="LATIN1") as connection:
            saver = PostgresSaver(connection)
            names = ["one", "日本", "two"]
            outcomes = await asyncio.gather(
                *(saver.aput(thread(name), *step(0)) for name in names), return_exceptions=True
            )
            assert [isinstance(outcome, ConfigError) for outcome in outcomes] == [False, True, False]

    asyncio.run(body())


def test_an_asyncio_connection_in_another_loop_is_an_error(url: str) -> None:
    async def start() -> PostgresSaver:
        connection = await psycopg.AsyncConnection.connect(url)
        saver = PostgresSaver(connection)
        await aplay(saver, "one", 1)
        await connection.close()
        return saver

    saver = asyncio.run(start())
    with pytest.raises(ConfigError, match="another event loop"):
        asyncio.run(saver.aget(thread("one")))


def test_a_failed_operation_leaves_a_given_connection_usable(url: str) -> None:
    with psycopg.connect(url) as connection, PostgresSaver(connection) as saver:
        config = play(saver, "one", 2)
        connection.execute("UPDATE threadmark_checkpoint SET header = header || '\\x00'::bytea")
        connection.commit()
        with pytest.raises(ValueError, match="keep_last"):
            saver.prune(["one"], keep_last=0)
        with pytest.raises(Exception, match="not as it was written"):
            saver.prune(["one"])
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        saver.put(config, *step(2))
        assert count(saver, "one") == 2


@pytest.mark.parametrize("prepare", [True, False])
def test_nothing_is_prepared_where_that_is_not_wanted(url: str, *, prepare: bool) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        with PostgresSaver(connection, prepare=prepare) as saver:
            play(saver, "one", 12)
        prepared = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
        assert prepared
        assert (prepared[0] > 0) is prepare


def test_statements_that_a_proxy_forgot_are_prepared_anew(url: str) -> None:
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        saver = PostgresSaver(connection, prepare=False)
        config = play(saver, "one", 3)
        connection.execute("DEALLOCATE ALL")
        saver.put(config, *step(3))
        assert count(saver, "one") == 3


class _AsText(Loader):
    """Reads every column as an application would that has other classes for it."""

    format = Format.BINARY

    def load(self, data: Any) -> str:
        return f"read by the application: {bytes(data)!r}"


@pytest.mark.parametrize("encoding", ["UTF8", "LATIN1"])
def test_loaders_of_the_application_are_not_used(url: str, encoding: str) -> None:
    def read_as_it_likes(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        for name in ("bool", "bytea", "int4", "int8", "text", "name", "numeric"):
            connection.adapters.register_loader(name, _AsText)

    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(url, client_encoding=encoding) as connection:
            read_as_it_likes(connection)
            saver = PostgresSaver(connection)
            await aplay(saver, "two", 3)
            assert (await saver.aget_tuple(thread("two"))) == other.get_tuple(thread("two"))

    with psycopg.connect(url, client_encoding=encoding) as connection, PostgresSaver(url) as other:
        read_as_it_likes(connection)
        saver = PostgresSaver(connection)
        config = play(saver, "one", 4)
        saver.put_writes(config, [("count", 1)], "task")
        assert list(saver.list(None)) == list(other.list(None))
        assert saver.list_threads() == other.list_threads()
        assert saver.stats() == other.stats()
        assert saver.verify() == other.verify()
        assert saver.report() == other.report()
        asyncio.run(body())
        saver.prune(["one"], keep_last=1)
        saver.delete_thread("one")
        result = connection.execute("SELECT 1::bigint", binary=True).fetchall()
        assert "application" in result[0][0]
