"""A task that is cancelled: the user's connection is in order when the cancellation arrives."""

import asyncio
import gc
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
import psycopg_pool
import pytest
from psycopg.pq import TransactionStatus

from patience import wait_until
from postgres.steps import aplay, count, play, step, thread
from threadmark import Saver
from threadmark.runtime.workers import Workers
from threadmark_postgres import PostgresSaver
from threadmark_postgres.driver import cancellation

Call = Callable[[Saver, Any], Awaitable[Any]]

_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"
_BUSY = "LOCK TABLE threadmark_thread IN ACCESS EXCLUSIVE MODE"


async def put(saver: Saver, config: Any) -> None:
    await saver.aput(config, *step(3))


async def put_many(saver: Saver, config: Any) -> None:
    await asyncio.gather(*(saver.aput_writes(config, [("count", 1)], f"of many {n}") for n in range(4)))


async def prune(saver: Saver, _: Any) -> None:
    await saver.aprune(["one"])


async def get(saver: Saver, _: Any) -> None:
    await saver.aget(thread("one"))


@asynccontextmanager
async def nothing_unheard() -> AsyncIterator[None]:
    """No task fails in a way that only the event loop's log shows."""
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    yield
    gc.collect()
    await asyncio.sleep(0)
    assert reported == []


async def blocked(tables: psycopg.Connection, calls: Sequence[Awaitable[Any]]) -> list[asyncio.Future[Any]]:
    """The calls under way, when the server has made one wait."""
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(call) for call in calls]
    while not next(tables.execute(_WAITING))[0]:  # noqa: ASYNC110 - the server has no event for it
        await asyncio.sleep(0.01)
    return tasks


async def cancelled(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel all of them and wait."""
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError)


@pytest.mark.parametrize("call", [put, put_many, prune, get])
@pytest.mark.parametrize("autocommit", [True, False])
def test_a_connection_is_as_it_was_when_the_caller_hears(
    url: str, tables: psycopg.Connection, call: Call, *, autocommit: bool
) -> None:
    async def body() -> None:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=autocommit)
        async with connection, nothing_unheard():
            saver = PostgresSaver(connection)
            config = await aplay(saver, "one", 3)
            with tables.transaction():
                tables.execute(_BUSY)
                await cancelled(await blocked(tables, [call(saver, config)]))
                assert connection.autocommit is autocommit
                assert connection.info.transaction_status == TransactionStatus.IDLE
                await connection.execute("SELECT 1")
                await connection.rollback()
            await saver.aput(config, *step(3))
            assert await asyncio.to_thread(count, saver, "one") == 3

    asyncio.run(body())


@pytest.mark.parametrize("call", [put, prune, get])
@pytest.mark.parametrize("autocommit", [True, False])
def test_a_blocking_connection_is_as_it_was_when_the_caller_hears(
    url: str, tables: psycopg.Connection, call: Call, *, autocommit: bool
) -> None:
    async def body() -> None:
        with psycopg.connect(url, autocommit=autocommit) as connection:
            saver = PostgresSaver(connection)
            config = await aplay(saver, "one", 3)
            async with nothing_unheard():
                with tables.transaction():
                    tables.execute(_BUSY)
                    (task,) = await blocked(tables, [call(saver, config)])
                    others = [asyncio.ensure_future(call(saver, config)) for _ in range(2)]
                    following = asyncio.ensure_future(saver.aput(config, *step(3)))
                    for _ in range(5):  # an impatient caller has to wait, too
                        task.cancel()
                        await asyncio.sleep(0)
                    assert not task.done()
                await cancelled([task, *others])
                await following
            assert connection.autocommit is autocommit
            assert connection.info.transaction_status == TransactionStatus.IDLE
            connection.execute("SELECT 1")
            connection.rollback()
            assert count(saver, "one") == 3

    asyncio.run(body())


def test_nobody_waits_for_a_thread_that_has_a_connection_of_a_pool_to_itself(
    url: str, tables: psycopg.Connection
) -> None:
    async def body() -> None:
        with psycopg_pool.ConnectionPool(url, min_size=1, max_size=1, open=True) as pool:
            saver = PostgresSaver(pool)
            config = await aplay(saver, "one", 3)
            async with nothing_unheard():
                with tables.transaction():
                    tables.execute(_BUSY)
                    await cancelled(await blocked(tables, [prune(saver, None)]))
                await saver.aput(config, *step(3))
            assert count(saver, "one") == 3

    asyncio.run(body())


def test_what_no_thread_has_begun_is_not_begun_for_a_caller_that_is_gone() -> None:
    done: list[str] = []
    free = threading.Event()
    workers = Workers(1, "test")

    async def body() -> None:
        first = asyncio.ensure_future(cancellation.on_thread(workers, free.wait))
        second = asyncio.ensure_future(cancellation.on_thread(workers, lambda: done.append("second")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        free.set()
        await cancelled([second])
        assert await first

    asyncio.run(body())
    workers.close()
    assert done == []


def test_a_shared_statement_goes_on_for_the_others(url: str, tables: psycopg.Connection) -> None:
    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection, nothing_unheard():
            saver = PostgresSaver(connection)
            config = await aplay(saver, "one", 1)
            with tables.transaction():
                tables.execute(_BUSY)
                calls = [saver.aput_writes(config, [("count", 1)], f"of three {n}") for n in range(3)]
                first, *others = await blocked(tables, calls)
                await cancelled([first])
            await asyncio.gather(*others)
            assert connection.autocommit is False
            found = await saver.aget_tuple(thread("one"))
            assert found
            assert {task for task, _, _ in found.pending_writes or ()} >= {"of three 1", "of three 2"}

    asyncio.run(body())


@pytest.mark.parametrize("call", [put, put_many, prune, get])
def test_a_pool_has_its_connection_back(url: str, tables: psycopg.Connection, call: Call) -> None:
    async def body() -> None:
        async with psycopg_pool.AsyncConnectionPool(url, min_size=1, max_size=1, open=False) as pool, nothing_unheard():
            saver = PostgresSaver(pool)
            config = await aplay(saver, "one", 3)
            before = [connection async for connection in lent(pool)]
            with tables.transaction():
                tables.execute(_BUSY)
                await cancelled(await blocked(tables, [call(saver, config)]))
                assert [connection async for connection in lent(pool)] == before
            await saver.aput(config, *step(3))

    async def lent(pool: psycopg_pool.AsyncConnectionPool[Any]) -> AsyncIterator[Any]:
        async with pool.connection() as connection:
            assert connection.autocommit is False
            yield connection

    asyncio.run(body())


class _SlowToReturn(psycopg_pool.AsyncConnectionPool[Any]):
    """A pool that takes a connection back when it is allowed to, as if others had its lock."""

    def prepare(self) -> None:
        self.returning, self.allowed = asyncio.Event(), asyncio.Event()

    async def putconn(self, conn: Any) -> None:
        self.returning.set()
        await self.allowed.wait()
        await super().putconn(conn)


def test_a_pool_does_not_lose_the_connection_of_a_caller_who_is_cancelled_while_it_goes_back(url: str) -> None:
    async def body() -> None:
        async with _SlowToReturn(url, min_size=1, max_size=1, open=False) as pool, nothing_unheard():
            pool.prepare()
            pool.allowed.set()
            saver = PostgresSaver(pool)
            config = await aplay(saver, "one", 3)
            pool.prepare()
            task = asyncio.ensure_future(get(saver, None))
            await pool.returning.wait()
            task.cancel()
            asyncio.get_running_loop().call_soon(pool.allowed.set)
            await cancelled([task])
            assert pool.get_stats()["pool_available"] == 1
            await saver.aput(config, *step(3))

    asyncio.run(body())


def test_a_saver_from_a_url_works_on(url: str, tables: psycopg.Connection) -> None:
    async def body() -> None:
        async with PostgresSaver(url, pool_size=2) as saver, nothing_unheard():
            config = await aplay(saver, "one", 3)
            with tables.transaction():
                tables.execute(_BUSY)
                for call in (put, put_many, prune, get):
                    await cancelled(await blocked(tables, [call(saver, config)]))
            await saver.aput(config, *step(3))
            assert await asyncio.to_thread(count, saver, "one") == 3

    asyncio.run(body())


def test_who_is_cancelled_while_others_use_the_connection_does_not_wait_for_them(
    url: str, tables: psycopg.Connection
) -> None:
    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection, nothing_unheard():
            saver = PostgresSaver(connection)
            await aplay(saver, "one", 3)
            with tables.transaction():
                tables.execute(_BUSY)
                (waiting,) = await blocked(tables, [prune(saver, None)])
                second = asyncio.ensure_future(get(saver, None))
                await asyncio.sleep(0)
                await cancelled([second])
                assert not waiting.done()
            await waiting

    asyncio.run(body())


def test_a_loop_that_ends_leaves_a_connection_in_order(url: str, tables: psycopg.Connection) -> None:
    kept: list[psycopg.AsyncConnection[Any]] = []

    async def body() -> None:
        kept.append(await psycopg.AsyncConnection.connect(url))
        saver = PostgresSaver(kept[0])
        await aplay(saver, "one", 3)
        tables.execute(_BUSY)
        await blocked(tables, [prune(saver, None)])

    with tables.transaction():
        asyncio.run(body())
    (connection,) = kept
    assert connection.autocommit is False
    assert connection.info.transaction_status == TransactionStatus.IDLE
    connection.pgconn.finish()


def test_a_server_that_stops_nothing_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "_LONGEST", 0.01)
    asked: list[str] = []

    async def stubborn() -> None:
        for number in ("first", "second"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                asked.append(number)
        raise OSError("the connection was closed")

    async def body() -> None:
        async with nothing_unheard():
            task = asyncio.create_task(cancellation.in_order(stubborn()))
            await asyncio.sleep(0)
            await cancelled([task])
            assert asked == ["first", "second"]

    asyncio.run(body())


@contextmanager
def interrupted_when_blocked(url: str) -> Iterator[None]:
    """A KeyboardInterrupt comes in the main thread when the server has made it wait, and leaves with the block."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def strike() -> None:
        with psycopg.connect(url, autocommit=True) as other:
            wait_until(lambda: next(other.execute(_WAITING))[0], "nothing waits")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, interrupt)
    striking = threading.Thread(target=strike)
    striking.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        striking.join()
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("autocommit", [True, False])
def test_an_interrupt_stops_the_statement_and_leaves_a_connection_as_it_was(
    url: str, tables: psycopg.Connection, *, autocommit: bool
) -> None:
    with psycopg.connect(url, autocommit=autocommit) as connection:
        saver = PostgresSaver(connection)
        config = play(saver, "one", 3)
        with tables.transaction():
            tables.execute(_BUSY)
            with interrupted_when_blocked(url):
                saver.prune(["one"])
            assert connection.autocommit is autocommit
            assert connection.info.transaction_status == TransactionStatus.IDLE
            assert next(tables.execute(_WAITING))[0] == 0
        saver.put(config, *step(3))
        assert len(list(saver.list(thread("one")))) == 4


def test_what_an_interrupt_made_the_main_thread_leave_is_over_before_its_next_call(
    url: str, tables: psycopg.Connection
) -> None:
    with PostgresSaver(url) as saver:
        play(saver, "one", 3)
        with tables.transaction():
            tables.execute(_BUSY)
            with interrupted_when_blocked(url):
                saver.delete_thread("one")
        play(saver, "one", 2)
        assert count(saver, "one") == 1
        assert next(tables.execute(_WAITING))[0] == 0
