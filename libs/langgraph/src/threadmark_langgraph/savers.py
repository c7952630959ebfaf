"""The memory and SQLite savers with LangGraph's names, constructors and context managers."""

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Self, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from threadmark import MemorySaver as MemoryBackend
from threadmark import Saver
from threadmark.types import PruneReport
from threadmark_langgraph.checkpointer import Checkpointer
from threadmark_langgraph.unmoved import split_options

if TYPE_CHECKING:
    import aiosqlite
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from threadmark_langgraph.options import PruneRule, SqliteOptions


class InMemorySaver(Checkpointer):
    """Keeps everything in this process. It stores encoded bytes as the databases do, and answers alike.

    The asyncio methods call the blocking ones, which never wait, as LangGraph's do: if your subclass overrides `put`,
    both APIs use it.
    """

    def __init__(self, *, serde: "SerializerProtocol | None" = None) -> None:
        super().__init__(MemoryBackend(), serde=serde)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Like `list`, for asyncio."""
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Like `put`, for asyncio."""
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like `put_writes`, for asyncio."""
        self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Like `delete_thread`, for asyncio."""
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like `delete_for_runs`, for asyncio."""
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like `copy_thread`, for asyncio."""
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(  # type: ignore[override]  # as `Checkpointer.prune`
        self, thread_ids: Sequence[str] | None, *, strategy: str = "keep_latest", **rule: "Unpack[PruneRule]"
    ) -> PruneReport:
        """Like `prune`, for asyncio."""
        return self.prune(thread_ids, strategy=strategy, **rule)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`, for asyncio."""
        return self.get_delta_channel_history(config=config, channels=channels)


MemorySaver = InMemorySaver
"""LangGraph's other name for `InMemorySaver`."""


class SqliteSaver(Checkpointer):
    """Keeps everything in a SQLite file, for any number of threads, event loops and processes.

    `conn` is a path, or a connection, as LangGraph's saver takes it; of a connection to a file only the path is used.
    The options are those of `threadmark_sqlite.SqliteSaver`, and `on_unmoved`: with "raise", threads of LangGraph's own
    saver that were not moved raise an error instead of a warning.
    """

    def __init__(
        self,
        conn: sqlite3.Connection | str | os.PathLike[str],
        *,
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[SqliteOptions]",
    ) -> None:
        on_unmoved, rest = split_options(options)
        super().__init__(_sqlite(conn, rest), serde=serde, on_unmoved=on_unmoved)
        self.conn = conn

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, serde: "SerializerProtocol | None" = None, **options: "Unpack[SqliteOptions]"
    ) -> Iterator[Self]:
        """Open a saver for the file with this path, or `:memory:`, and close it at the end of the block."""
        with cls(conn_string, serde=serde, **options) as saver:
            yield saver


class AsyncSqliteSaver(Checkpointer):
    """`SqliteSaver` under LangGraph's asyncio name. `conn` may also be an aiosqlite connection."""

    def __init__(
        self,
        conn: "aiosqlite.Connection | sqlite3.Connection | str | os.PathLike[str]",
        *,
        serde: "SerializerProtocol | None" = None,
        **options: "Unpack[SqliteOptions]",
    ) -> None:
        on_unmoved, rest = split_options(options)
        super().__init__(_sqlite(conn, rest), serde=serde, on_unmoved=on_unmoved)
        self.conn = conn

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, serde: "SerializerProtocol | None" = None, **options: "Unpack[SqliteOptions]"
    ) -> AsyncIterator[Self]:
        """Open a saver for the file with this path, or `:memory:`, and close it at the end of the block."""
        async with cls(conn_string, serde=serde, **options) as saver:
            yield saver

    async def setup(self) -> None:  # type: ignore[override]  # LangGraph's name for it, which is awaited here
        """Like `asetup`."""
        await self.asetup()


def _sqlite(database: Any, options: Mapping[str, Any]) -> Saver:
    from threadmark_sqlite import SqliteSaver as SqliteBackend

    return SqliteBackend(database, **options)
