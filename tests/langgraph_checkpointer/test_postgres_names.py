"""LangGraph's names for Postgres: a URL, a connection or a pool, on both APIs."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from langgraph_parity.backends import cluster
from threadmark import ConfigError, MissingDependencyError, StoreError
from threadmark.program import Program, Transaction
from threadmark_langgraph import AsyncPostgresSaver, Checkpointer, PostgresSaver
from threadmark_postgres.steps import Query

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A new database."""
    return cluster().database("names" + "".join(filter(str.isalnum, tmp_path.name)).lower())


def use_blocking(saver: Checkpointer) -> None:
    """A put and a get."""
    stored = saver.put(THREAD, empty_checkpoint(), {"step": 1}, {})
    assert saver.get_tuple(stored) is not None


async def use_asyncio(saver: Checkpointer) -> None:
    """Like `use_blocking`, for asyncio."""
    stored = await saver.aput(THREAD, empty_checkpoint(), {"step": 1}, {})
    assert await saver.aget_tuple(stored) is not None


def test_both_names_give_both_apis_from_a_url(url: str) -> None:
    async def run() -> None:
        async with AsyncPostgresSaver.from_conn_string(url, pipeline=True) as saver:
            await saver.setup()
            await use_asyncio(saver)
            await asyncio.to_thread(use_blocking, saver)

    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        use_blocking(saver)
        asyncio.run(use_asyncio(saver))
    asyncio.run(run())


def test_connection_and_pool_of_the_user_serve_both_apis(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, ConnectionPool(url, open=True) as pool:
        for given in (connection, pool):
            saver = PostgresSaver(given)
            use_blocking(saver)
            asyncio.run(use_asyncio(saver))
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_asyncio_pool_of_the_user_serves_blocking_calls_on_other_threads(url: str) -> None:
    async def run() -> None:
        async with AsyncConnectionPool(url, open=False) as pool:
            saver = AsyncPostgresSaver(pool)
            await asyncio.to_thread(use_blocking, saver)
            await use_asyncio(saver)
            with pytest.raises(ConfigError, match="start with 'a'"):
                saver.get_tuple(THREAD)

    asyncio.run(run())


def test_pipelines_are_accepted_as_langgraph_has_them(url: str) -> None:
    async def run() -> None:
        async with AsyncPostgresSaver.from_conn_string(url, pipeline=True) as saver:
            await use_asyncio(saver)

    with PostgresSaver.from_conn_string(url, pipeline=True) as saver:
        use_blocking(saver)
    asyncio.run(run())


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_connection_with_a_pipeline_of_the_user_serves_both_apis_and_keeps_it(url: str, *, autocommit: bool) -> None:
    async def run() -> None:
        async with (
            await psycopg.AsyncConnection.connect(url, autocommit=autocommit) as connection,
            connection.pipeline() as pipe,
        ):
            saver = AsyncPostgresSaver(connection, pipe)
            await saver.setup()
            await use_everything(saver)
            assert connection.autocommit == autocommit
            answer = await connection.execute("SELECT 1")
            assert await answer.fetchone() == (1,)
            await connection.rollback()

    with psycopg.connect(url, autocommit=autocommit) as connection, connection.pipeline() as pipe:
        saver = PostgresSaver(connection, pipe)
        saver.setup()
        use_blocking(saver)
        asyncio.run(use_everything(saver))
        assert connection.autocommit == autocommit
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.rollback()
    asyncio.run(run())


async def use_everything(saver: Checkpointer) -> None:
    """More than one statement in a transaction, an error in the middle of one, and a use after it."""
    await use_asyncio(saver)
    await saver.aput_writes(await saver.aput(THREAD, empty_checkpoint(), {}, {}), [("a", "x" * 5000)], "task")
    assert len([found async for found in saver.alist(THREAD)]) >= 2
    await saver.acopy_thread("1", "2")
    await saver.aprune(["1", "2"])
    with pytest.raises(StoreError, match="division by zero"):
        await saver.saver._driver.arun(Transaction(_failing, writes=True))  # type: ignore[attr-defined]  # a Saver's
    await use_asyncio(saver)
    await saver.adelete_thread("2")


def _failing() -> Program[None]:
    yield Query("SELECT 1")
    yield Query("SELECT 1 / 0")


def test_without_the_backend_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadmark_postgres", None)
    with pytest.raises(MissingDependencyError, match=r"threadmark-langgraph\[postgres\]"):
        PostgresSaver("postgresql://host/database")
