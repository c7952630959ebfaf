"""`SaverProtocol`: the methods of every saver. Written by scripts/write_twins.py."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

from threadmark.encryption.resealing import PlainRows
from threadmark.ids import Version
from threadmark.leases.lease import Lease
from threadmark.leases.taking import OnBusy
from threadmark.model import (
    UNSET,
    ChannelVersions,
    Checkpoint,
    CheckpointRef,
    CheckpointTuple,
    Config,
    DeltaChannelHistory,
    Duration,
    MessagePage,
    OnProgress,
    PruneReport,
    PruneStrategy,
    RetentionReport,
    ThreadFilter,
    ThreadInfo,
    ThreadPage,
    ThreadSort,
    Unset,
    UpgradeReport,
)
from threadmark.operating.model import Stats, VerifyReport
from threadmark.serde import Serializer
from threadmark.transactions.block import SaverTransaction
from threadmark.travel.model import Blame, Diff, HistoryPage, SearchPage, Tree, Values


class SaverProtocol(Protocol):
    """The public interface of `Saver`, which documents each method.

    `threadmark.open`, `threadmark_langgraph.wrap` and the tools accept any object that has it: a `Saver`, one behind a
    proxy, or a class that you write.
    """

    @property
    def serde(self) -> Serializer:
        """The serializer of values."""

    def with_serde(self, serde: Serializer) -> Self:
        """Return a saver with another serializer on the same connections and cache. Closing one closes both."""

    @property
    def config_specs(self) -> list[Any]:
        """The extra fields that a run's configuration may have for this saver: none."""

    def setup(self) -> None:
        """Create the tables of a new database, or bring those of an earlier release to the current format."""

    def get(self, config: Config | str) -> Checkpoint | None:
        """Return the checkpoint that `config` names, or the newest of its namespace, or None if there is none."""

    def get_tuple(self, config: Config | str) -> CheckpointTuple | None:
        """Return the same checkpoint as `get`, with its metadata, parent and pending writes."""

    def list(
        self,
        config: Config | str | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, of a thread, of one of its namespaces, or of all threads (`config` None)."""

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

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store the writes of a task before its step ends: all of them or none."""

    def delete_thread(self, thread_id: Config | str) -> bool:
        """Remove a thread and everything in it. Returns whether the thread existed."""

    def delete_checkpoint(self, config: Config) -> bool:
        """Remove the checkpoint that `config` names by its `checkpoint_id`. Returns whether it existed."""

    def delete_for_runs(self, run_ids: Sequence[str]) -> PruneReport:
        """Remove the checkpoints that these runs made, except those that other checkpoints need. Returns a report."""

    def copy_thread(self, source_thread_id: Config | str, target_thread_id: Config | str) -> bool:
        """Copy every checkpoint and pending write of the source thread to the target thread."""

    def prune(
        self,
        thread_ids: Sequence[Config | str] | None,
        *,
        strategy: PruneStrategy = "keep_latest",
        keep_last: int | None = None,
        older_than: Duration | None = None,
        dry_run: bool = False,
        missing_ok: bool = True,
        progress: OnProgress | None = None,
    ) -> PruneReport:
        """Remove old checkpoints of these threads. Returns a report of the removal."""

    def apply_retention(
        self,
        *,
        keep_last: int | None = None,
        older_than: Duration | None = None,
        idle_for: Duration | None = None,
        max_bytes: int | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> RetentionReport:
        """Remove expired threads, and everything else that the arguments select, from all threads. Returns a report."""

    def get_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return, for each channel, its last stored value and the writes of the ancestors since then, oldest first."""

    def get_next_version(self, current: Version | None, channel: None = None) -> Version:
        """Return the version after `current`, of the same type. A new channel starts with the integer 1."""

    def close(self) -> None:
        """Close all connections. Later calls raise ClosedError."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def asetup(self) -> None: ...
    async def aget(self, config: Config | str) -> Checkpoint | None: ...
    async def aget_tuple(self, config: Config | str) -> CheckpointTuple | None: ...
    def alist(
        self,
        config: Config | str | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]: ...
    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
        *,
        expect_newest: bool | None = None,
    ) -> dict[str, Any]: ...
    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None: ...
    async def adelete_thread(self, thread_id: Config | str) -> bool: ...
    async def adelete_checkpoint(self, config: Config) -> bool: ...
    async def adelete_for_runs(self, run_ids: Sequence[str]) -> PruneReport: ...
    async def acopy_thread(self, source_thread_id: Config | str, target_thread_id: Config | str) -> bool: ...
    async def aprune(
        self,
        thread_ids: Sequence[Config | str] | None,
        *,
        strategy: PruneStrategy = "keep_latest",
        keep_last: int | None = None,
        older_than: Duration | None = None,
        dry_run: bool = False,
        missing_ok: bool = True,
        progress: OnProgress | None = None,
    ) -> PruneReport: ...
    async def aapply_retention(
        self,
        *,
        keep_last: int | None = None,
        older_than: Duration | None = None,
        idle_for: Duration | None = None,
        max_bytes: int | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> RetentionReport: ...
    async def aget_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]: ...
    async def aclose(self) -> None: ...
    def for_owner(self, owner: str) -> Self:
        """Return a saver on the same connections in which every method sees only this owner's threads."""

    def list_threads(
        self,
        *,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
        **filters: Unpack[ThreadFilter],
    ) -> ThreadPage:
        """Return a page of threads, and the cursor of the next one."""

    def count_threads(self, **filters: Unpack[ThreadFilter]) -> int:
        """Return the number of threads that match these filters."""

    def unfinished(self, *, idle_for: Duration, limit: int = 100, cursor: str | None = None) -> ThreadPage:
        """Return a page of threads whose runs died, those that were updated longest ago first."""

    def get_thread(self, thread_id: Config | str) -> ThreadInfo | None:
        """Return one thread without its checkpoints, or None if there is none."""

    def create_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Create a thread before its first checkpoint. Raises ConflictError if it already exists."""

    def update_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Set the title, metadata, owner or expiry of a thread. Raises ThreadNotFoundError if there is none."""

    def rename_thread(self, thread_id: Config | str, new_thread_id: Config | str) -> bool:
        """Give a thread another id, with everything in it. Returns whether the thread existed."""

    async def alist_threads(
        self,
        *,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
        **filters: Unpack[ThreadFilter],
    ) -> ThreadPage: ...
    async def acount_threads(self, **filters: Unpack[ThreadFilter]) -> int: ...
    async def aunfinished(self, *, idle_for: Duration, limit: int = 100, cursor: str | None = None) -> ThreadPage: ...
    async def aget_thread(self, thread_id: Config | str) -> ThreadInfo | None: ...
    async def acreate_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo: ...
    async def aupdate_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo: ...
    async def arename_thread(self, thread_id: Config | str, new_thread_id: Config | str) -> bool: ...
    def without_classes(self) -> Self:
        """Return a saver on the same connections that shows objects by name and fields (`ObjectView`)."""

    def get_checkpoint_ref(self, config: Config | str) -> CheckpointRef | None:
        """Return the ids of the checkpoint that `config` names, or of the newest of its namespace, or None."""

    def extract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Return a part of a thread's newest state, such as `messages[-1].content`, without reading the rest."""

    def extract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Return a page of a thread's messages: the newest ones before `before`, oldest first."""

    async def aget_checkpoint_ref(self, config: Config | str) -> CheckpointRef | None: ...
    async def aextract(self, thread: Config | str, path: str, default: Any = None) -> Any: ...
    async def aextract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage: ...
    def lease(
        self,
        thread_id: Config | str,
        *,
        on_busy: OnBusy = "wait",
        ttl: Duration = 30,
        holder: str | None = None,
        timeout: float | None = None,
        on_lost: Callable[[Lease], object] | None = None,
    ) -> Lease:
        """Return the right to write to a thread, for a `with` or `async with` block. One holder at a time has it."""

    def history(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 20, cursor: str | None = None
    ) -> HistoryPage:
        """Return a page of a thread's checkpoints, newest first, without reading a value."""

    def tree(self, thread: Config | str) -> Tree:
        """Return all checkpoints of a thread in all namespaces, and the branches that they form."""

    def diff(self, a: Config | str, b: Config | str, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Return the differences between two checkpoints of a thread, by channel and by place inside values."""

    def blame(self, thread: Config | str, path: str) -> Blame | None:
        """Return the checkpoint that first held the present value at a path, or None if there is nothing."""

    def fork(
        self, config: Config | str, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]:
        """Begin a branch at a checkpoint, or a new thread, and return the configuration to go on with."""

    def restore(self, config: Config | str) -> dict[str, Any]:
        """Make a checkpoint the newest again, without losing later ones. Returns its new configuration."""

    def search(
        self,
        thread: Config | str,
        text: str,
        *,
        ns: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Return the places of a text in a thread's values, pending writes and metadata, ignoring case."""

    async def ahistory(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 20, cursor: str | None = None
    ) -> HistoryPage: ...
    async def atree(self, thread: Config | str) -> Tree: ...
    async def adiff(self, a: Config | str, b: Config | str, *, path: str | None = None, limit: int = 1000) -> Diff: ...
    async def ablame(self, thread: Config | str, path: str) -> Blame | None: ...
    async def afork(
        self, config: Config | str, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]: ...
    async def arestore(self, config: Config | str) -> dict[str, Any]: ...
    async def asearch(
        self,
        thread: Config | str,
        text: str,
        *,
        ns: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage: ...
    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Let every process write in the newest format that this release knows. Returns a report."""

    def verify(
        self,
        thread_id: Config | str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> VerifyReport:
        """Read all rows, or all rows of one thread, and report damage and orphans."""

    def stats(self, thread_id: Config | str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Return how much is stored, and how much it would be if every value were stored whole."""

    def has_tables(self) -> bool:
        """Return whether the database has its tables. Creates none."""

    def has_only_langgraph_data(self) -> bool:
        """Return whether this database has checkpoints of LangGraph's own saver and none of this saver."""

    def list_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Return references to all checkpoints, newest first, including unreadable ones. Creates no tables."""

    def list_orphan_writes(self) -> Sequence[CheckpointRef]:
        """Return references to the missing checkpoints of pending writes. Creates no tables."""

    async def aupgrade(self, *, dry_run: bool = False) -> UpgradeReport: ...
    async def averify(
        self,
        thread_id: Config | str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> VerifyReport: ...
    async def astats(self, thread_id: Config | str | None = None, *, progress: OnProgress | None = None) -> Stats: ...
    async def ahas_tables(self) -> bool: ...
    async def ahas_only_langgraph_data(self) -> bool: ...
    async def alist_checkpoint_refs(self) -> Sequence[CheckpointRef]: ...
    async def alist_orphan_writes(self) -> Sequence[CheckpointRef]: ...
    def reencrypt(
        self, thread_id: Config | str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Encrypt everything stored, or one thread, with the newest key. Returns how many rows were encrypted again."""

    async def areencrypt(
        self, thread_id: Config | str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int: ...
    def transaction(self) -> SaverTransaction[Self]:
        """Return a transaction for a `with` or `async with` block that stores everything together or nothing."""

    def within(self, connection: Any) -> Self:
        """Return a saver whose calls are part of the transaction that is open on your own connection."""
