"""`ForwardingMethods`: all methods of a Threadmark saver. Written by scripts/write_twins.py."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from threadmark.encryption.resealing import PlainRows
from threadmark.leases.lease import Lease
from threadmark.leases.taking import OnBusy
from threadmark.model import (
    UNSET,
    CheckpointRef,
    Config,
    Duration,
    MessagePage,
    OnProgress,
    RetentionReport,
    ThreadFilter,
    ThreadInfo,
    ThreadPage,
    ThreadSort,
    Unset,
    UpgradeReport,
)
from threadmark.operating.model import Stats, VerifyReport
from threadmark.saver.protocol import SaverProtocol
from threadmark.travel.model import Blame, Diff, HistoryPage, SearchPage, Tree, Values


class ForwardingMethods:
    """Each method calls that of the Threadmark saver, which documents it."""

    _saver: SaverProtocol

    def setup(self) -> None:
        """Create the tables of a new database, or bring those of an earlier release to the current format."""
        self._saver.setup()

    def delete_checkpoint(self, config: Config) -> bool:
        """Remove the checkpoint that `config` names by its `checkpoint_id`. Returns whether it existed."""
        return self._saver.delete_checkpoint(config)

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
        return self._saver.apply_retention(
            keep_last=keep_last,
            older_than=older_than,
            idle_for=idle_for,
            max_bytes=max_bytes,
            owner=owner,
            metadata=metadata,
            dry_run=dry_run,
            progress=progress,
        )

    def close(self) -> None:
        """Close all connections. Later calls raise ClosedError."""
        self._saver.close()

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""
        await self._saver.asetup()

    async def adelete_checkpoint(self, config: Config) -> bool:
        """Like `delete_checkpoint`, for asyncio."""
        return await self._saver.adelete_checkpoint(config)

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
    ) -> RetentionReport:
        """Like `apply_retention`, for asyncio."""
        return await self._saver.aapply_retention(
            keep_last=keep_last,
            older_than=older_than,
            idle_for=idle_for,
            max_bytes=max_bytes,
            owner=owner,
            metadata=metadata,
            dry_run=dry_run,
            progress=progress,
        )

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self._saver.aclose()

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
        return self._saver.list_threads(
            sort=sort, limit=limit, cursor=cursor, offset=offset, extract=extract, **filters
        )

    def count_threads(self, **filters: Unpack[ThreadFilter]) -> int:
        """Return the number of threads that match these filters."""
        return self._saver.count_threads(**filters)

    def unfinished(self, *, idle_for: Duration, limit: int = 100, cursor: str | None = None) -> ThreadPage:
        """Return a page of threads whose runs died, those that were updated longest ago first."""
        return self._saver.unfinished(idle_for=idle_for, limit=limit, cursor=cursor)

    def get_thread(self, thread_id: Config | str) -> ThreadInfo | None:
        """Return one thread without its checkpoints, or None if there is none."""
        return self._saver.get_thread(thread_id)

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
        return self._saver.create_thread(thread_id, title=title, metadata=metadata, owner=owner, expires_at=expires_at)

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
        return self._saver.update_thread(thread_id, title=title, metadata=metadata, owner=owner, expires_at=expires_at)

    def rename_thread(self, thread_id: Config | str, new_thread_id: Config | str) -> bool:
        """Give a thread another id, with everything in it. Returns whether the thread existed."""
        return self._saver.rename_thread(thread_id, new_thread_id)

    async def alist_threads(
        self,
        *,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
        **filters: Unpack[ThreadFilter],
    ) -> ThreadPage:
        """Like `list_threads`, for asyncio."""
        return await self._saver.alist_threads(
            sort=sort, limit=limit, cursor=cursor, offset=offset, extract=extract, **filters
        )

    async def acount_threads(self, **filters: Unpack[ThreadFilter]) -> int:
        """Like `count_threads`, for asyncio."""
        return await self._saver.acount_threads(**filters)

    async def aunfinished(self, *, idle_for: Duration, limit: int = 100, cursor: str | None = None) -> ThreadPage:
        """Like `unfinished`, for asyncio."""
        return await self._saver.aunfinished(idle_for=idle_for, limit=limit, cursor=cursor)

    async def aget_thread(self, thread_id: Config | str) -> ThreadInfo | None:
        """Like `get_thread`, for asyncio."""
        return await self._saver.aget_thread(thread_id)

    async def acreate_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `create_thread`, for asyncio."""
        return await self._saver.acreate_thread(
            thread_id, title=title, metadata=metadata, owner=owner, expires_at=expires_at
        )

    async def aupdate_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `update_thread`, for asyncio."""
        return await self._saver.aupdate_thread(
            thread_id, title=title, metadata=metadata, owner=owner, expires_at=expires_at
        )

    async def arename_thread(self, thread_id: Config | str, new_thread_id: Config | str) -> bool:
        """Like `rename_thread`, for asyncio."""
        return await self._saver.arename_thread(thread_id, new_thread_id)

    def get_checkpoint_ref(self, config: Config | str) -> CheckpointRef | None:
        """Return the ids of the checkpoint that `config` names, or of the newest of its namespace, or None."""
        return self._saver.get_checkpoint_ref(config)

    def extract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Return a part of a thread's newest state, such as `messages[-1].content`, without reading the rest."""
        return self._saver.extract(thread, path, default)

    def extract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Return a page of a thread's messages: the newest ones before `before`, oldest first."""
        return self._saver.extract_items(thread, limit=limit, before=before, channel=channel)

    async def aget_checkpoint_ref(self, config: Config | str) -> CheckpointRef | None:
        """Like `get_checkpoint_ref`, for asyncio."""
        return await self._saver.aget_checkpoint_ref(config)

    async def aextract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Like `extract`, for asyncio."""
        return await self._saver.aextract(thread, path, default)

    async def aextract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Like `extract_items`, for asyncio."""
        return await self._saver.aextract_items(thread, limit=limit, before=before, channel=channel)

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
        return self._saver.lease(thread_id, on_busy=on_busy, ttl=ttl, holder=holder, timeout=timeout, on_lost=on_lost)

    def history(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 20, cursor: str | None = None
    ) -> HistoryPage:
        """Return a page of a thread's checkpoints, newest first, without reading a value."""
        return self._saver.history(thread, ns=ns, limit=limit, cursor=cursor)

    def tree(self, thread: Config | str) -> Tree:
        """Return all checkpoints of a thread in all namespaces, and the branches that they form."""
        return self._saver.tree(thread)

    def diff(self, a: Config | str, b: Config | str, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Return the differences between two checkpoints of a thread, by channel and by place inside values."""
        return self._saver.diff(a, b, path=path, limit=limit)

    def blame(self, thread: Config | str, path: str) -> Blame | None:
        """Return the checkpoint that first held the present value at a path, or None if there is nothing."""
        return self._saver.blame(thread, path)

    def fork(
        self, config: Config | str, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]:
        """Begin a branch at a checkpoint, or a new thread, and return the configuration to go on with."""
        return self._saver.fork(config, values, as_thread=as_thread)

    def restore(self, config: Config | str) -> dict[str, Any]:
        """Make a checkpoint the newest again, without losing later ones. Returns its new configuration."""
        return self._saver.restore(config)

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
        return self._saver.search(thread, text, ns=ns, limit=limit, cursor=cursor)

    async def ahistory(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 20, cursor: str | None = None
    ) -> HistoryPage:
        """Like `history`, for asyncio."""
        return await self._saver.ahistory(thread, ns=ns, limit=limit, cursor=cursor)

    async def atree(self, thread: Config | str) -> Tree:
        """Like `tree`, for asyncio."""
        return await self._saver.atree(thread)

    async def adiff(self, a: Config | str, b: Config | str, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Like `diff`, for asyncio."""
        return await self._saver.adiff(a, b, path=path, limit=limit)

    async def ablame(self, thread: Config | str, path: str) -> Blame | None:
        """Like `blame`, for asyncio."""
        return await self._saver.ablame(thread, path)

    async def afork(
        self, config: Config | str, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]:
        """Like `fork`, for asyncio."""
        return await self._saver.afork(config, values, as_thread=as_thread)

    async def arestore(self, config: Config | str) -> dict[str, Any]:
        """Like `restore`, for asyncio."""
        return await self._saver.arestore(config)

    async def asearch(
        self,
        thread: Config | str,
        text: str,
        *,
        ns: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Like `search`, for asyncio."""
        return await self._saver.asearch(thread, text, ns=ns, limit=limit, cursor=cursor)

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Let every process write in the newest format that this release knows. Returns a report."""
        return self._saver.upgrade(dry_run=dry_run)

    def verify(
        self,
        thread_id: Config | str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> VerifyReport:
        """Read all rows, or all rows of one thread, and report damage and orphans."""
        return self._saver.verify(thread_id, decode=decode, repair=repair, progress=progress)

    def stats(self, thread_id: Config | str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Return how much is stored, and how much it would be if every value were stored whole."""
        return self._saver.stats(thread_id, progress=progress)

    def has_tables(self) -> bool:
        """Return whether the database has its tables. Creates none."""
        return self._saver.has_tables()

    def has_only_langgraph_data(self) -> bool:
        """Return whether this database has checkpoints of LangGraph's own saver and none of this saver."""
        return self._saver.has_only_langgraph_data()

    def list_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Return references to all checkpoints, newest first, including unreadable ones. Creates no tables."""
        return self._saver.list_checkpoint_refs()

    def list_orphan_writes(self) -> Sequence[CheckpointRef]:
        """Return references to the missing checkpoints of pending writes. Creates no tables."""
        return self._saver.list_orphan_writes()

    async def aupgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Like `upgrade`, for asyncio."""
        return await self._saver.aupgrade(dry_run=dry_run)

    async def averify(
        self,
        thread_id: Config | str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> VerifyReport:
        """Like `verify`, for asyncio."""
        return await self._saver.averify(thread_id, decode=decode, repair=repair, progress=progress)

    async def astats(self, thread_id: Config | str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Like `stats`, for asyncio."""
        return await self._saver.astats(thread_id, progress=progress)

    async def ahas_tables(self) -> bool:
        """Like `has_tables`, for asyncio."""
        return await self._saver.ahas_tables()

    async def ahas_only_langgraph_data(self) -> bool:
        """Like `has_only_langgraph_data`, for asyncio."""
        return await self._saver.ahas_only_langgraph_data()

    async def alist_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Like `list_checkpoint_refs`, for asyncio."""
        return await self._saver.alist_checkpoint_refs()

    async def alist_orphan_writes(self) -> Sequence[CheckpointRef]:
        """Like `list_orphan_writes`, for asyncio."""
        return await self._saver.alist_orphan_writes()

    def reencrypt(
        self, thread_id: Config | str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Encrypt everything stored, or one thread, with the newest key. Returns how many rows were encrypted again."""
        return self._saver.reencrypt(thread_id, plain=plain, progress=progress)

    async def areencrypt(
        self, thread_id: Config | str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Like `reencrypt`, for asyncio."""
        return await self._saver.areencrypt(thread_id, plain=plain, progress=progress)
