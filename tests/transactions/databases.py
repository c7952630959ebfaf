"""The databases that these tests run on, calls of either API, and connections of the user's own."""

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg

import threadmark
from postgres.cluster import shared
from threadmark import MemorySaver, Saver
from threadmark_postgres import PostgresSaver
from threadmark_sqlite import SqliteSaver

PLACES = ("memory", "sqlite file", "sqlite memory", "postgres")
OF_USERS = ("sqlite file", "postgres")
"""The databases to which a user can have a connection of their own."""
APIS = ("blocking", "asyncio")

THREAD = {"configurable": {"thread_id": "trip", "checkpoint_ns": ""}}
_numbers = itertools.count()


@contextmanager
def opened(place: str, folder: Path, **options: Any) -> Iterator[Saver]:
    """A saver on an empty database that has its tables."""
    if place == "postgres":
        name = f"transactions_{next(_numbers)}"
        with PostgresSaver(shared().database(name), **options) as saver:
            saver.setup()
            yield saver
        shared().execute(f"DROP DATABASE {name} WITH (FORCE)")
        return
    made: Saver
    if place == "memory":
        made = MemorySaver(**options)
    else:
        database = folder / "threads.db" if place == "sqlite file" else ":memory:"
        made = SqliteSaver(database, **{"durability": "normal", **options})
    with made as saver:
        saver.setup()
        yield saver


class LeftError(Exception):
    """Raised to leave a block."""


class Calls:
    """Calls with one API, on the thread of the event loop."""

    def __init__(self, api: str) -> None:
        self.is_blocking = api == "blocking"

    async def __call__(self, saver: Any, name: str, /, *arguments: Any, **options: Any) -> Any:
        """Call a method, or its twin for asyncio."""
        if self.is_blocking:
            return getattr(saver, name)(*arguments, **options)
        return await getattr(saver, f"a{name}")(*arguments, **options)

    @asynccontextmanager
    async def block(self, saver: Any) -> AsyncIterator[Any]:
        """The block of a transaction."""
        if self.is_blocking:
            with saver.transaction() as tx:
                yield tx
        else:
            async with saver.transaction() as tx:
                yield tx

    async def put(self, saver: Saver, text: str, config: Mapping[str, Any] = THREAD, *, version: int = 1) -> Any:
        """Store a checkpoint with one long channel. Returns its configuration."""
        return await self(saver, "put", config, checkpoint(text, version), {}, {"text": version})

    async def text(self, saver: Saver, config: Mapping[str, Any] = THREAD) -> str | None:
        """The text of the newest checkpoint, without its padding."""
        found = await self(saver, "get", config)
        return found and str(found["channel_values"]["text"]).rstrip(".")

    @asynccontextmanager
    async def connection(self, saver: Saver, *, autocommit: bool = False) -> AsyncIterator["Mine"]:
        """A connection of the user's own to the saver's database, with a table of theirs."""
        mine = Mine(await self._connect(saver, autocommit=autocommit), is_blocking=self.is_blocking)
        await mine.execute("CREATE TABLE orders (number integer)")
        await mine.commit()
        try:
            yield mine
        finally:
            await mine.call("close")

    async def _connect(self, saver: Saver, *, autocommit: bool) -> Any:
        if isinstance(saver, PostgresSaver):
            # The test server's default is another isolation level.
            if self.is_blocking:
                connection = psycopg.connect(url_of(saver), autocommit=autocommit)
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                return connection
            on_loop = await psycopg.AsyncConnection.connect(url_of(saver), autocommit=autocommit)
            await on_loop.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
            return on_loop
        options: dict[str, Any] = {"isolation_level": None} if autocommit else {}
        if self.is_blocking:
            return sqlite3.connect(path_of(saver), **options)
        return await aiosqlite.connect(path_of(saver), **options)


class Mine:
    """A connection of the user's own, of any kind."""

    def __init__(self, connection: Any, *, is_blocking: bool) -> None:
        self.connection = connection
        self._is_blocking = is_blocking

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the connection."""
        result = getattr(self.connection, name)(*arguments)
        return result if self._is_blocking else await result

    async def execute(self, statement: str) -> Any:
        """Execute a statement."""
        return await self.call("execute", statement)

    async def order(self, number: int) -> None:
        """Store a row in the user's table. It opens a transaction, if none is open."""
        await self.execute(f"INSERT INTO orders VALUES ({number})")

    async def commit(self) -> None:
        """Commit the user's transaction."""
        await self.call("commit")

    async def rollback(self) -> None:
        """Roll the user's transaction back."""
        await self.call("rollback")

    async def orders(self) -> list[int]:
        """The numbers in the user's table."""
        found = (await self.execute("SELECT number FROM orders ORDER BY number")).fetchall()
        return [row[0] for row in (found if self._is_blocking else await found)]


def checkpoint(text: str, version: int = 1) -> Any:
    """A checkpoint with a channel that is long enough to be stored in segments."""
    return {
        "v": 1,
        "id": threadmark.new_id(),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"text": text.ljust(2000, ".")},
        "channel_versions": {"text": version},
        "versions_seen": {},
    }


def path_of(saver: Saver) -> str:
    """The path of a SQLite saver's file."""
    return str(saver._driver.settings.path)  # type: ignore[attr-defined]  # the driver of a file has them


def url_of(saver: Saver) -> str:
    """The connection string of a Postgres saver."""
    assert isinstance(saver, PostgresSaver)
    return saver._postgres.settings.conninfo


def run(case: Any) -> None:
    """Run a coroutine to its end."""
    asyncio.run(case)
