"""The two savers that are compared, opened in the same way: both wait for the disk at every commit.

A side gives a saver for a place, for blocking callers or for asyncio. The third side, the bare driver, is in `floor`.
"""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, closing, contextmanager
from typing import Any, Protocol

import aiosqlite
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.postgres import PostgresSaver as TheirPostgres
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver as TheirAsyncPostgres
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver as TheirAsyncSqlite
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from measuring.jobs import MEMORY, REDIS, SQLITE
from measuring.places import Place
from threadmark_langgraph import (
    AsyncPostgresSaver,
    AsyncRedisSaver,
    AsyncSqliteSaver,
    InMemorySaver,
    PostgresSaver,
    RedisSaver,
    SqliteSaver,
)
from workloads import Step

_THEIR_CONNECTION = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
_SYNCHRONOUS = "PRAGMA synchronous=FULL"


class Side(Protocol):
    """A saver that can store a run."""

    def next_version(self, current: Any, channel: None) -> Any:
        """The version of a channel after `current`."""

    def learn(self, place: Place, server: str, before: Sequence[Step], timed: Sequence[Step]) -> None:
        """See the run, and which steps at its end are timed, before it is measured."""

    def blocking(self, place: Place) -> AbstractContextManager[Any]:
        """A saver at this place."""

    def asyncio(self, place: Place) -> AbstractAsyncContextManager[Any]:
        """Like `blocking`, for asyncio."""


class Ours:
    """Threadmark's savers under LangGraph's names, as a graph would have them."""

    def next_version(self, current: Any, channel: None) -> Any:
        """The version of a channel after `current`."""
        return InMemorySaver().get_next_version(current, channel)

    def learn(self, place: Place, server: str, before: Sequence[Step], timed: Sequence[Step]) -> None:
        """A saver need not know a run beforehand."""

    @contextmanager
    def blocking(self, place: Place) -> Iterator[Any]:
        """A saver at this place."""
        if place.backend == MEMORY:
            yield InMemorySaver()
        elif place.backend == SQLITE:
            with SqliteSaver.from_conn_string(place.at) as saver:
                yield saver
        elif place.backend == REDIS:
            with RedisSaver.from_conn_string(place.at, checkpoint_prefix=place.prefix) as keys:
                yield keys
        else:
            with PostgresSaver.from_conn_string(place.at, **_our_options(place)) as server:
                if not place.has_tables:
                    server.setup()
                yield server

    @asynccontextmanager
    async def asyncio(self, place: Place) -> AsyncIterator[Any]:
        """Like `blocking`, for asyncio."""
        if place.backend == MEMORY:
            yield InMemorySaver()
        elif place.backend == SQLITE:
            async with AsyncSqliteSaver.from_conn_string(place.at) as saver:
                yield saver
        elif place.backend == REDIS:
            async with AsyncRedisSaver.from_conn_string(place.at, checkpoint_prefix=place.prefix) as keys:
                yield keys
        else:
            async with AsyncPostgresSaver.from_conn_string(place.at, **_our_options(place)) as server:
                if not place.has_tables:
                    await server.setup()
                yield server


class Theirs:
    """LangGraph's own savers."""

    def next_version(self, current: Any, channel: None) -> Any:
        """The version of a channel after `current`."""
        return TheirMemory().get_next_version(current, channel)

    def learn(self, place: Place, server: str, before: Sequence[Step], timed: Sequence[Step]) -> None:
        """A saver need not know a run beforehand."""

    @contextmanager
    def blocking(self, place: Place) -> Iterator[Any]:
        """A saver at this place."""
        if place.backend == MEMORY:
            yield TheirMemory()
        elif place.backend == SQLITE:
            with closing(sqlite3.connect(place.at, check_same_thread=False)) as connection:
                connection.execute(_SYNCHRONOUS)
                yield TheirSqlite(connection)
        elif place.connections:
            with ConnectionPool(place.at, **_pool_options(place), open=True) as pool:
                pooled: Any = TheirPostgres(pool)
                if not place.has_tables:
                    pooled.setup()
                yield pooled
        else:
            with TheirPostgres.from_conn_string(place.at) as saver:
                if not place.has_tables:
                    saver.setup()
                yield saver

    @asynccontextmanager
    async def asyncio(self, place: Place) -> AsyncIterator[Any]:
        """Like `blocking`, for asyncio."""
        if place.backend == MEMORY:
            yield TheirMemory()
        elif place.backend == SQLITE:
            async with aiosqlite.connect(place.at) as connection:
                await connection.execute(_SYNCHRONOUS)
                yield TheirAsyncSqlite(connection)
        elif place.connections:
            async with AsyncConnectionPool(place.at, **_pool_options(place), open=False) as pool:
                pooled: Any = TheirAsyncPostgres(pool)
                if not place.has_tables:
                    await pooled.setup()
                yield pooled
        else:
            async with TheirAsyncPostgres.from_conn_string(place.at) as saver:
                if not place.has_tables:
                    await saver.setup()
                yield saver


def _our_options(place: Place) -> dict[str, Any]:
    return {"pool_size": place.connections} if place.connections else {}


def _pool_options(place: Place) -> dict[str, Any]:
    return {"kwargs": _THEIR_CONNECTION, "min_size": place.connections, "max_size": place.connections}
