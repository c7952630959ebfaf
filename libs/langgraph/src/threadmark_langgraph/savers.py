"""The savers under the names, constructors and context managers that LangGraph gives its own."""

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self

from langgraph.checkpoint.serde.base import SerializerProtocol

from threadmark import MemorySaver as MemoryBackend
from threadmark import Saver
from threadmark_langgraph.checkpointer import Checkpointer

if TYPE_CHECKING:
    import aiosqlite

_NOWHERE: dict[str, Any] = {"configurable": {"thread_id": ""}}


class InMemorySaver(Checkpointer):
    """Keeps everything in this process. It stores encoded bytes as the databases do, and answers alike."""

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(MemoryBackend(), serde=serde)


class SqliteSaver(Checkpointer):
    """Keeps everything in a SQLite file, for any number of threads, event loops and processes.

    `conn` is a connection, as LangGraph's saver takes it, or simply a path. Of a connection to a file only
    the path is used. The options are those of `threadmark_sqlite.SqliteSaver`.
    """

    def __init__(
        self,
        conn: sqlite3.Connection | str | os.PathLike[str],
        *,
        serde: SerializerProtocol | None = None,
        **options: Any,
    ) -> None:
        super().__init__(_sqlite(conn, options), serde=serde)
        self.conn = conn

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, **options: Any) -> Iterator[Self]:
        """A saver for the file with this path, or `:memory:`, closed in the end."""
        with cls(conn_string, **options) as saver:
            yield saver

    def setup(self) -> None:
        """Make the tables now. Needed by nobody: the first operation makes them."""
        self.saver.get_tuple(_NOWHERE)


class AsyncSqliteSaver(Checkpointer):
    """`SqliteSaver` under LangGraph's asyncio name; `conn` may also be an aiosqlite connection."""

    def __init__(
        self,
        conn: "aiosqlite.Connection | sqlite3.Connection | str | os.PathLike[str]",
        *,
        serde: SerializerProtocol | None = None,
        **options: Any,
    ) -> None:
        super().__init__(_sqlite(conn, options), serde=serde)
        self.conn = conn

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str, **options: Any) -> AsyncIterator[Self]:
        """A saver for the file with this path, or `:memory:`, closed in the end."""
        async with cls(conn_string, **options) as saver:
            yield saver

    async def setup(self) -> None:
        """Make the tables now. Needed by nobody: the first operation makes them."""
        await self.saver.aget_tuple(_NOWHERE)


def _sqlite(database: Any, options: dict[str, Any]) -> Saver:
    from threadmark_sqlite import SqliteSaver as SqliteBackend

    return SqliteBackend(database, **options)
