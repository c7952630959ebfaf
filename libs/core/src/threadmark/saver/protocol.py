"""`SaverProtocol`: what a saver can do, for whatever accepts one."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from threadmark.errors import ConfigError
from threadmark.model import (
    ChannelVersions,
    Checkpoint,
    CheckpointRef,
    CheckpointTuple,
    Config,
    DeltaChannelHistory,
    OnProgress,
    PlainRows,
    Pruned,
    PruneStrategy,
    RetentionReport,
    Stats,
    Verified,
)
from threadmark.saver.part_protocol import PartProtocol
from threadmark.saver.thread_protocol import ThreadProtocol
from threadmark.saver.travel_protocol import TravelProtocol
from threadmark.serde import Serializer
from threadmark.versions import Version


class SaverProtocol(ThreadProtocol, PartProtocol, TravelProtocol, Protocol):
    """The public interface of `Saver`, which documents each method.

    `threadmark.open`, `threadmark_langgraph.wrap` and the tools accept any object that has it: a `Saver`, one behind a
    proxy, or a class of its own.
    """

    @property
    def serde(self) -> Serializer:
        """The serializer of values."""

    def with_serde(self, serde: Serializer) -> Self:
        """Return a saver that uses another serializer on the same connections and cache. Closing one closes both."""

    @property
    def config_specs(self) -> list[Any]:
        """Extra fields that a run's configuration may have for this saver. There are none."""

    def setup(self) -> None:
        """Create the tables of a new database, or bring those of an earlier release to the current format."""

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""

    def get(self, config: Config) -> Checkpoint | None:
        """Return the checkpoint that `config` names, or the newest of its namespace; None if there is none."""

    async def aget(self, config: Config) -> Checkpoint | None:
        """Like `get`, for asyncio."""

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like `get`, but return the checkpoint with its metadata, parent and pending writes."""

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, of a thread, of one of its namespaces, or of all threads (`config` None)."""

    def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Like `list`, for asyncio."""

    def put(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
        *,
        expect_newest: bool | None = None,
    ) -> dict[str, Any]:
        """Store `checkpoint` as a child of the one in `config`. Returns the config of the new checkpoint."""

    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
        *,
        expect_newest: bool | None = None,
    ) -> dict[str, Any]:
        """Like `put`, for asyncio."""

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote before its step is over, all of it or nothing."""

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like `put_writes`, for asyncio."""

    def delete_thread(self, thread_id: str) -> bool:
        """Remove a thread and everything in it. Returns whether there was one."""

    async def adelete_thread(self, thread_id: str) -> bool:
        """Like `delete_thread`, for asyncio."""

    def delete_checkpoint(self, config: Config) -> bool:
        """Remove one checkpoint. Returns whether there was one. Raises ConflictError if others need it."""

    async def adelete_checkpoint(self, config: Config) -> bool:
        """Like `delete_checkpoint`, for asyncio."""

    def delete_for_runs(self, run_ids: Sequence[str]) -> Pruned:
        """Remove the checkpoints that these runs made, except those that others need. Returns what was removed."""

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> Pruned:
        """Like `delete_for_runs`, for asyncio."""

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> bool:
        """Copy every checkpoint and pending write of a thread to another. Returns whether there is a source."""

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> bool:
        """Like `copy_thread`, for asyncio."""

    def prune(
        self,
        thread_ids: Sequence[str] | None,
        *,
        strategy: PruneStrategy = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        dry_run: bool = False,
        missing_ok: bool = True,
        progress: OnProgress | None = None,
    ) -> Pruned:
        """Remove old checkpoints of these threads. Returns what was removed, or with `dry_run` what would be."""

    async def aprune(
        self,
        thread_ids: Sequence[str] | None,
        *,
        strategy: PruneStrategy = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        dry_run: bool = False,
        missing_ok: bool = True,
        progress: OnProgress | None = None,
    ) -> Pruned:
        """Like `prune`, for asyncio."""

    def retention(
        self,
        *,
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        idle_for: timedelta | None = None,
        max_bytes: int | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> RetentionReport:
        """Remove what has expired, and what the arguments say, from all threads. Returns what was removed."""

    async def aretention(
        self,
        *,
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        idle_for: timedelta | None = None,
        max_bytes: int | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> RetentionReport:
        """Like `retention`, for asyncio."""

    def get_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return, for each channel, its last stored value and what the ancestors wrote since then, oldest first."""

    async def aget_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`, for asyncio."""

    def verify(
        self,
        thread_id: str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> Verified:
        """Read everything stored, or everything of one thread, and report what is damaged or orphaned."""

    async def averify(
        self,
        thread_id: str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> Verified:
        """Like `verify`, for asyncio."""

    def stats(self, thread_id: str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Return how much is stored, and how much it would be if every value were stored whole."""

    async def astats(self, thread_id: str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Like `stats`, for asyncio."""

    def has_tables(self) -> bool:
        """Return whether the database has its tables. Unlike every other method, this does not create them."""

    async def ahas_tables(self) -> bool:
        """Like `has_tables`, for asyncio."""

    def has_only_langgraph_data(self) -> bool:
        """Return whether LangGraph's own saver has checkpoints in this database and this saver has none."""

    async def ahas_only_langgraph_data(self) -> bool:
        """Like `has_only_langgraph_data`, for asyncio."""

    def list_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Return references to all checkpoints, newest first, unreadable ones included. Creates no tables."""

    async def alist_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Like `list_checkpoint_refs`, for asyncio."""

    def orphan_writes(self) -> Sequence[CheckpointRef]:
        """Return references to the missing checkpoints of pending writes. Creates no tables."""

    async def aorphan_writes(self) -> Sequence[CheckpointRef]:
        """Like `orphan_writes`, for asyncio."""

    def reencrypt(
        self, thread_id: str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Encrypt everything stored, or one thread, with the newest key. Returns how many rows were encrypted again."""

    async def areencrypt(
        self, thread_id: str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Like `reencrypt`, for asyncio."""

    def get_next_version(self, current: Version | None, channel: None = None) -> Version:
        """Return the version after `current`, of the same type. A new channel starts with the integer 1."""

    def close(self) -> None:
        """Close all connections. Later calls raise ClosedError."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


_MEMBERS = tuple(name for name in vars(SaverProtocol) if not name.startswith("_"))


def expect_saver(given: Any) -> SaverProtocol:
    """Return what was given if it has the public methods of a saver. Raises ConfigError if it does not."""
    if isinstance(given, str):
        raise ConfigError("expected a saver, got a string: threadmark.open(url) makes the saver of a URL")
    missing = [name for name in _MEMBERS if not hasattr(given, name)]
    if missing:
        raise ConfigError(
            f"expected a threadmark.Saver, or an object with its methods, got {type(given).__name__}, "
            f"which has no {', '.join(missing)}"
        )
    saver: SaverProtocol = given
    return saver
