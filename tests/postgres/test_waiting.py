"""Tasks that wait: for an answer of the server, for a connection of the pool, for the end of a turn of the loop."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait

from threadmark.errors import TransientStoreError
from threadmark_postgres import PostgresSaver
from threadmark_postgres.driver.aio import StatementBatcher
from threadmark_postgres.driver.exchange import exchange
from threadmark_postgres.driver.loop_pool import LoopPool
from threadmark_postgres.driver.waiting import answered
from threadmark_postgres.steps import Query, Rows

_LARGE = 30_000_000
_STATEMENTS_UNDER_WAY = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    async with connection:
        yield connection


async def asked(connection: psycopg.AsyncConnection[Any], statement: str, *params: Any) -> Rows:
    (rows,) = await answered(connection, exchange(connection, [Query(statement, params)], prepare=True))
    return rows


def test_statements_and_answers_that_no_socket_takes_at_once(url: str) -> None:
    async def body() -> None:
        async with connected(url) as connection:
            assert await asked(connection, "SELECT length($1::bytea)", bytes(_LARGE)) == [(_LARGE,)]
            ((text,),) = await asked(connection, "SELECT repeat('x', $1::integer)", _LARGE.to_bytes(4))
            assert len(text) == _LARGE

    asyncio.run(body())


def test_the_statement_of_a_cancelled_task_is_stopped_and_its_connection_is_free(url: str) -> None:
    async def body() -> None:
        async with connected(url) as connection, connected(url) as other:
            task = asyncio.create_task(asked(connection, "SELECT pg_sleep(600)"))
            while await asked(other, _STATEMENTS_UNDER_WAY) == [(0,)]:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert connection.pgconn.transaction_status == TransactionStatus.IDLE
            assert await asked(connection, "SELECT 1") == [(1,)]

    asyncio.run(body())


def test_of_a_socket_that_cannot_be_watched_psycopg_tells(url: str) -> None:
    def statement(socket: int) -> Generator[Wait, Ready | int, None]:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), socket)
        yield Wait.R

    async def body() -> None:
        async with connected(url) as connection:
            with pytest.raises(psycopg.OperationalError, match="socket"):
                await answered(connection, statement(connection.pgconn.socket))

    asyncio.run(body())


def test_a_right_to_a_connection_that_a_cancelled_task_was_given_goes_on_to_the_next(url: str) -> None:
    came: list[int] = []

    async def work(pool: LoopPool, number: int) -> None:
        async with pool.lend():
            came.append(number)

    async def body() -> None:
        async with PostgresSaver(url, pool_size=1, timeout=5) as saver:
            pool = saver._postgres._source_of_loop()
            assert isinstance(pool, LoopPool)
            async with pool.lend():
                tasks = [asyncio.create_task(work(pool, number)) for number in range(4)]
                await asyncio.sleep(0)
                tasks[1].cancel()  # while it waits
            tasks[0].cancel()  # when its turn has come, which it does not know yet
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2 + [type(None)] * 2
            assert came == [2, 3]
            async with pool.lend():
                pass

    asyncio.run(body())


def test_who_waits_in_vain_for_a_connection_takes_none_from_the_others(url: str) -> None:
    async def body() -> None:
        async with PostgresSaver(url, pool_size=2, timeout=0.05) as saver:
            pool = saver._postgres._source_of_loop()
            async with pool.lend(), pool.lend():
                with pytest.raises(TransientStoreError, match="pool_size"):
                    async with pool.lend():
                        pass
            async with pool.lend(), pool.lend():
                pass

    asyncio.run(body())


def change(number: int) -> Query:
    return Query("ADD", (number,), likely_last=True)


@pytest.mark.parametrize(
    ("leaving", "statements"),
    [([0], [[1, 2]]), ([2], [[0, 1, 2]]), ([0, 1], [[2]]), ([0, 1, 2], [])],
    ids=["the first", "the last, which the first takes along", "all but one", "all"],
)
def test_who_is_cancelled_before_the_turn_ends_leads_nobody(leaving: list[int], statements: list[list[int]]) -> None:
    seen: list[list[int]] = []

    async def ask(queries: Sequence[Query]) -> list[Rows]:
        seen.append([query.params[0] for query in queries])
        return [[tuple(query.params)] for query in queries]

    async def body() -> None:
        batcher = StatementBatcher(ask)
        tasks = [asyncio.create_task(batcher.rows(change(number))) for number in range(3)]
        asyncio.get_running_loop().call_soon(lambda: [tasks[number].cancel() for number in leaving])
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for number, outcome in enumerate(outcomes):
            assert isinstance(outcome, asyncio.CancelledError) if number in leaving else outcome == [(number,)]
        assert seen == statements
        assert await batcher.rows(change(7)) == [(7,)]
        assert not batcher._waiting

    asyncio.run(body())


def test_who_is_cancelled_when_another_has_taken_the_change_along_leaves_the_others_theirs() -> None:
    begun = 0

    async def body() -> None:
        tasks: list[asyncio.Task[Rows]] = []

        async def ask(queries: Sequence[Query]) -> list[Rows]:
            nonlocal begun
            begun += 1
            await asyncio.sleep(0.01)
            return [[tuple(query.params)] for query in queries]

        class Batcher(StatementBatcher):
            def _set_out(self, members: Any) -> None:
                super()._set_out(members)
                tasks[1].cancel()  # it has not gone on since the turn ended

        batcher = Batcher(ask)
        tasks += [asyncio.create_task(batcher.rows(change(number))) for number in range(3)]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(outcomes[1], asyncio.CancelledError)
        assert [outcomes[0], outcomes[2]] == [[(0,)], [(2,)]]
        assert begun == 1

    asyncio.run(body())


def test_where_an_interrupt_strikes_who_leads_the_others_go_alone() -> None:
    seen: list[list[int]] = []

    async def ask(queries: Sequence[Query]) -> list[Rows]:
        seen.append([query.params[0] for query in queries])
        return [[tuple(query.params)] for query in queries]

    class Batcher(StatementBatcher):
        def _set_out(self, members: Any) -> None:  # noqa: ARG002 - it is struck before it looks at them
            raise KeyboardInterrupt

    batcher = Batcher(ask)
    loop = asyncio.new_event_loop()
    try:
        tasks = [loop.create_task(batcher.rows(change(number))) for number in range(3)]
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(asyncio.wait(tasks))
        assert loop.run_until_complete(asyncio.gather(*tasks[1:])) == [[(1,)], [(2,)]]
        assert seen == [[1], [2]]
        with pytest.raises(KeyboardInterrupt):
            tasks[0].result()
    finally:
        loop.close()
