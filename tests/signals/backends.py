"""The databases that interrupted calls are made on, each opened in the process that is interrupted."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import aiosqlite
import psycopg
import psycopg_pool

from threadmark import MemorySaver, Saver
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver


@contextmanager
def memory(_: str, __: asyncio.Runner) -> Iterator[Saver]:
    """Dictionaries."""
    with MemorySaver() as saver:
        yield saver


@contextmanager
def sqlite_file(path: str, _: asyncio.Runner) -> Iterator[Saver]:
    """A file."""
    with SqliteSaver(path, durability="normal") as saver:
        yield saver


@contextmanager
def sqlite_memory(_: str, __: asyncio.Runner) -> Iterator[Saver]:
    """A database in memory."""
    with SqliteSaver(":memory:") as saver:
        yield saver


@contextmanager
def sqlite_given(_: str, __: asyncio.Runner) -> Iterator[Saver]:
    """A user's connection, to a database in memory."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.text_factory = bytes
    with SqliteSaver(connection) as saver:
        yield saver
    assert connection.text_factory is bytes
    assert not connection.in_transaction
    connection.close()


@contextmanager
def aiosqlite_given(path: str, _: asyncio.Runner) -> Iterator[Saver]:
    """A user's aiosqlite connection."""

    async def connect() -> aiosqlite.Connection:
        return await aiosqlite.connect(path)

    connection = asyncio.run(connect())
    yield SqliteSaver(connection, durability="normal")
    asyncio.run(connection.close())


@contextmanager
def postgres(url: str, _: asyncio.Runner) -> Iterator[Saver]:
    """A saver with its own connections."""
    with PostgresSaver(url, pool_size=3) as saver:
        yield saver


@contextmanager
def postgres_pool(url: str, _: asyncio.Runner) -> Iterator[Saver]:
    """A user's pool."""
    with psycopg_pool.ConnectionPool(url, min_size=1, max_size=2, open=True, timeout=10) as pool:
        yield PostgresSaver(pool)


@contextmanager
def postgres_connection(url: str, _: asyncio.Runner) -> Iterator[Saver]:
    """A user's connection."""
    with psycopg.connect(url) as connection:
        yield PostgresSaver(connection)
        assert not connection.autocommit
        assert connection.execute("SELECT 1").fetchone() == (1,)


@contextmanager
def postgres_asyncio_pool(url: str, runner: asyncio.Runner) -> Iterator[Saver]:
    """A user's pool for asyncio."""

    async def connect() -> psycopg_pool.AsyncConnectionPool[Any]:
        pool = psycopg_pool.AsyncConnectionPool(url, min_size=1, max_size=2, open=False, timeout=10)
        await pool.open()
        return pool

    pool = runner.run(connect())
    yield PostgresSaver(pool)
    runner.run(pool.close())


@contextmanager
def postgres_asyncio_connection(url: str, runner: asyncio.Runner) -> Iterator[Saver]:
    """A user's connection for asyncio."""

    async def connect() -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(url)

    connection = runner.run(connect())
    yield PostgresSaver(connection)
    assert not connection.autocommit
    runner.run(connection.close())


BACKENDS: dict[str, Callable[[str, asyncio.Runner], Any]] = {
    "memory": memory,
    "sqlite file": sqlite_file,
    "sqlite memory": sqlite_memory,
    "sqlite given": sqlite_given,
    "aiosqlite given": aiosqlite_given,
    "postgres url": postgres,
    "postgres pool": postgres_pool,
    "postgres connection": postgres_connection,
    "postgres asyncio pool": postgres_asyncio_pool,
    "postgres asyncio connection": postgres_asyncio_connection,
}
