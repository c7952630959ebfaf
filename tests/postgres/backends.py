"""Postgres as the suite sees it: from a URL, from pools and from single connections, of both kinds.

A new session of the server compiles the functions and reads the catalogs, which takes longer than most cases. So pools
and connections of the user's own are kept from case to case, as those of a program are kept from call to call. A saver
on a URL opens its own.
"""

import asyncio
import atexit
import functools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import psycopg_pool
from psycopg.pq import TransactionStatus

from postgres.bouncer import shared_bouncer
from postgres.cluster import shared
from threadmark import Saver
from threadmark.sealing import Keyring
from threadmark_conformance import Opener
from threadmark_postgres import PostgresSaver

_TABLES = ("thread", "segment", "checkpoint", "head", "write", "outbox", "position", "copied", "replica")
_OF_STORES = """
DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '{0}' AND tablename LIKE 'threadmark_store%' LOOP
        EXECUTE 'DELETE FROM {0}.' || name;
    END LOOP;
END $$
"""


@functools.cache
def _connection() -> psycopg.Connection[Any]:
    """The connection that empties the tables before each case."""
    connection = psycopg.connect(shared().url, autocommit=True)
    atexit.register(connection.close)
    return connection


@functools.cache
def _prepared(partitions: int | None) -> str:
    """A schema with tables in it; making them takes longer than a case."""
    name = f"suite_{partitions or 0}"
    with PostgresSaver(shared().url, schema=name) as saver:
        saver.setup(partitions=partitions)
    return name


@contextmanager
def _schema(partitions: int | None = None) -> Iterator[str]:
    """A schema with empty tables."""
    name = _prepared(partitions)
    deletions = [f"DELETE FROM {name}.threadmark_{table}" for table in _TABLES]
    _connection().execute("; ".join([*deletions, _OF_STORES.format(name)]).encode())
    yield name


@contextmanager
def from_url(_: Path) -> Iterator[Opener]:
    """A saver with its own connections."""
    with _schema() as schema:

        def open_saver(**options: Any) -> Saver:
            return PostgresSaver(shared().url, schema=schema, pool_size=4, **options)

        yield open_saver


@contextmanager
def pgbouncer(_: Path) -> Iterator[Opener]:
    """A PgBouncer in transaction mode, older than its support of prepared statements."""
    bouncer = shared_bouncer()
    with _schema() as schema:

        def open_saver(**options: Any) -> Saver:
            return PostgresSaver(bouncer.url, schema=schema, pool_size=4, prepare=False, **options)

        yield open_saver


@functools.cache
def _pool() -> psycopg_pool.ConnectionPool[Any]:
    """The pool of a run, as a program has one."""
    pool = psycopg_pool.ConnectionPool(shared().url, min_size=1, max_size=4, open=True)
    atexit.register(pool.close)
    return pool


@contextmanager
def from_pool(_: Path) -> Iterator[Opener]:
    """A pool that the savers share."""
    with _schema() as schema:
        yield partial(PostgresSaver, _pool(), schema=schema)


_free: list[psycopg.Connection[Any]] = []
"""Connections that no saver has now."""


@contextmanager
def from_connection(_: Path) -> Iterator[Opener]:
    """A single connection for each saver."""
    lent: list[psycopg.Connection[Any]] = []
    with _schema() as schema:

        def open_saver(**options: Any) -> Saver:
            lent.append(_free.pop() if _free else psycopg.connect(shared().url))
            return PostgresSaver(lent[-1], schema=schema, **options)

        try:
            yield open_saver
        finally:
            for connection in lent:
                if _is_idle(connection):
                    _free.append(connection)
                else:
                    connection.close()


class _Kept(psycopg.AsyncConnection[Any]):
    """A connection that a pool closes and the next pool opens, without a new session of the server."""

    free: "ClassVar[list[_Kept]]" = []

    @classmethod
    async def connect(cls, *arguments: Any, **options: Any) -> "_Kept":
        if not cls.free:
            return await super().connect(*arguments, **options)
        connection = cls.free.pop()
        connection.lock = asyncio.Lock()  # the other one belongs to the loop of another case
        return connection

    async def close(self) -> None:
        if _is_idle(self):
            self.free.append(self)
        else:
            await super().close()


def _is_idle(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return connection.info.transaction_status == TransactionStatus.IDLE


@atexit.register
def _end_sessions() -> None:
    for connection in (*_free, *_Kept.free):
        connection.pgconn.finish()


class _OnAwait(psycopg_pool.AsyncConnectionPool[_Kept]):
    """A pool that is opened when it is first used, because the suite opens savers without awaiting."""

    @asynccontextmanager
    async def connection(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the pool's own signature
    ) -> AsyncIterator[_Kept]:
        await self.open()
        async with super().connection(timeout) as connection:
            yield connection


class _ClosesPool(PostgresSaver):
    """Closes its pool with itself, in the loop that used it."""

    pool: _OnAwait

    async def aclose(self) -> None:
        await super().aclose()
        await self.pool.close()


@contextmanager
def from_asyncio_pool(_: Path) -> Iterator[Opener]:
    """A pool for asyncio for each saver, with hardly a connection in it."""
    with _schema() as schema:

        def open_saver(**options: Any) -> Saver:
            pool = _OnAwait(shared().url, connection_class=_Kept, min_size=1, max_size=2, open=False)
            saver = _ClosesPool(pool, schema=schema, **options)
            saver.pool = pool
            return saver

        yield open_saver


@contextmanager
def partitioned(_: Path) -> Iterator[Opener]:
    """Tables in parts, and no prepared statements."""
    with _schema(partitions=3) as schema:
        yield partial(PostgresSaver, _pool(), schema=schema, prepare=False)


@contextmanager
def sealed(_: Path) -> Iterator[Opener]:
    """Rows that SQL cannot look into."""
    keyring = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))
    with _schema() as schema:
        yield partial(PostgresSaver, _pool(), schema=schema, keyring=keyring)


BACKENDS = {
    "url": from_url,
    "partitioned": partitioned,
    "pgbouncer": pgbouncer,
    "sealed": sealed,
    "pool": from_pool,
    "connection": from_connection,
    "asyncio pool": from_asyncio_pool,
}
