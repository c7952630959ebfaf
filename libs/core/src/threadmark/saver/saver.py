"""The `Saver` class: every operation as a sync and an async method. The modules in `operations` have the logic."""

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from threadmark.encryption.methods import EncryptionMethods
from threadmark.encryption.store import SealedStore
from threadmark.errors import ConfigError
from threadmark.ids import Version, next_version
from threadmark.leases.methods import LeaseMethods
from threadmark.model import (
    ChannelVersions,
    Checkpoint,
    CheckpointTuple,
    Config,
    DeltaChannelHistory,
    Duration,
    OnProgress,
    PruneReport,
    PruneStrategy,
    RetentionReport,
)
from threadmark.operating.methods import OperatingMethods
from threadmark.program import Driver, arun, run
from threadmark.saver.context import SaverContext, SaverOptions, check_options, checked_serde, context_of
from threadmark.saver.operations import (
    beginning,
    copying,
    delta,
    listing,
    pruning,
    reading,
    removing,
    retaining,
    writing,
)
from threadmark.saver.protocol import SaverProtocol
from threadmark.saver.thread_methods import PartMethods, ThreadMethods
from threadmark.serde import Serializer
from threadmark.serde.serializer import finds_parts
from threadmark.store.contract import Store
from threadmark.transactions.methods import TransactionMethods
from threadmark.travel.methods import TravelMethods


class Saver(
    ThreadMethods, PartMethods, LeaseMethods, TravelMethods, OperatingMethods, EncryptionMethods, TransactionMethods
):
    """Saves the state of a graph after every step.

    Every method has an asyncio twin whose name begins with `a`. You may use both on one saver, from any thread and any
    event loop. Use the saver as a context manager (`with` or `async with`), or call `close` or `aclose` at the end.

    A backend is a `Store`, which defines its rows, and a `Driver`, which runs its transactions. All backends share the
    code in this class.
    """

    _keeps_local_classes = False

    def __init__(self, store: Store, driver: Driver, **options: Unpack[SaverOptions]) -> None:
        check_options(type(self), options)
        self._store = store
        """The rows as they are stored: below the wrappers that seal them or limit them to one owner."""
        self._options = options
        self._driver = driver
        self._context = self._new_context()

    def _new_context(self) -> SaverContext:
        """Return the context of a saver with empty caches."""
        return context_of(self._store, self._options, SealedStore)

    def __repr__(self) -> str:
        driver = getattr(self, "_driver", None)  # none yet, if making it failed
        return f"<{type(self).__name__} on {driver}>"

    @property
    def serde(self) -> Serializer:
        """The serializer of values."""
        return self._context.serde

    def with_serde(self, serde: Serializer) -> Self:
        """Return a saver with another serializer on the same connections and cache. Closing one closes both."""
        other = copy.copy(self)
        suited = self._suited(checked_serde(serde))
        other._context = self._context._replace(serde=suited)  # noqa: SLF001 - of our own copy
        return other

    @property
    def config_specs(self) -> list[Any]:
        """The extra fields that a run's configuration may have for this saver: none."""
        return []

    def setup(self) -> None:
        """Create the tables of a new database, or bring those of an earlier release to the current format.

        The first call that needs the tables does this automatically. Call `setup` to do it at a time that you choose,
        such as in a deployment step whose role may change tables. You may call it again.
        """
        return run(self._driver, beginning.setup(self._context))

    def get(self, config: Config | str) -> Checkpoint | None:
        """Return the checkpoint that `config` names, or the newest of its namespace, or None if there is none."""
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    def get_tuple(self, config: Config | str) -> CheckpointTuple | None:
        """Return the same checkpoint as `get`, with its metadata, parent and pending writes."""
        return run(self._driver, reading.get_tuple(self._context, config))

    def list(
        self,
        config: Config | str | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, of a thread, of one of its namespaces, or of all threads (`config` None).

        `filter` compares top-level metadata keys; `before` leaves only older checkpoints. The iterator holds no lock
        and no connection between two items. A damaged checkpoint raises an error when its turn comes; a listing of all
        threads yields the others first.

        Each item costs as much as a `get`, in batches of up to 64; `limit` makes them smaller. A `filter` reads the
        metadata of every checkpoint that it passes over; on Postgres, an index finds a `run_id` unless metadata is
        sealed. To list checkpoints without their values, use `list_checkpoint_refs`.
        """
        return self._pages(listing.listing(config, filter, before, limit))

    def put(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
        *,
        expect_newest: bool | None = None,
    ) -> dict[str, Any]:
        """Store `checkpoint` as a child of the one in `config`. Returns the config of the new checkpoint.

        Names are text and come back as plain `str`; docs/reference/errors.md lists the values that are refused. With
        `expect_newest=True` it raises ConflictError if the checkpoint in `config` is no longer the newest of its
        namespace; with False you declare a fork. None means `configurable["expect_newest"]`, or the saver's option.
        """
        put = writing.put(self._context, config, checkpoint, metadata, new_versions, expect_newest=expect_newest)
        return run(self._driver, put)

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store the writes of a task before its step ends: all of them or none.

        Each write is a pair of a channel and a value.
        """
        return run(self._driver, writing.put_writes(self._context, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: Config | str) -> bool:
        """Remove a thread and everything in it. Returns whether the thread existed.

        Runs that are still going can no longer store anything for it.
        """
        return run(self._driver, removing.delete_thread(self._context, thread_id))

    def delete_checkpoint(self, config: Config) -> bool:
        """Remove the checkpoint that `config` names by its `checkpoint_id`. Returns whether it existed.

        Later checkpoints stay and read as before; the space that only this one needed is freed. Subgraph calls that end
        with it are removed, too. If it is the last one of its thread, the thread is removed as by `delete_thread`.
        Raises ConflictError if the checkpoint has to stay, because a delta channel of later ones is read from it, or
        because a question waits there for its answer. The call reads as much as a `prune` of the thread, in one
        transaction that writes.
        """
        return run(self._driver, removing.delete_checkpoint(self._context, config))

    def delete_for_runs(self, run_ids: Sequence[str]) -> PruneReport:
        """Remove the checkpoints that these runs made, except those that other checkpoints need. Returns a report.

        For each run and each of its threads, the call reads as much as a `prune` of that thread: every outline, every
        write row and the headers of all checkpoints that stay, in one transaction that writes. On Postgres, an index
        finds the runs unless metadata is sealed; elsewhere the call reads the metadata of all checkpoints.
        """
        return run(self._driver, removing.delete_for_runs(self._context, run_ids))

    def copy_thread(self, source_thread_id: Config | str, target_thread_id: Config | str) -> bool:
        """Copy every checkpoint and pending write of the source thread to the target thread.

        Returns whether the source exists; if not, nothing is done. If the target exists, its checkpoints stay, and the
        copies are another branch; the newest of all is the thread's newest. Segments are copied inside the database
        (sealed ones pass through this process to be sealed again), rows one by one, all in one transaction. Time and
        space grow with the size of the source, and on SQLite other writers wait until the copy is done.
        """
        return run(self._driver, copying.copy_thread(self._context, source_thread_id, target_thread_id))

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
        """Remove old checkpoints of these threads. Returns a report of the removal.

        The newest checkpoint of every namespace stays, with those that the arguments keep and those that a kept
        checkpoint needs to be read. The namespace of a subgraph call is removed together with the checkpoint that made
        the call. For example, `saver.prune(ids, keep_last=10, older_than=timedelta(days=30))` removes the checkpoints
        that are neither among the newest ten of their namespace nor from the last 30 days.

        Args:
            thread_ids: The threads; None means all, which "delete" refuses. One transaction handles several threads, up
                to 1,000 checkpoints.
            strategy: "delete" removes everything of the threads.
            keep_last: The number of newest checkpoints to keep in each namespace, instead of one.
            older_than: Remove only checkpoints that are older than this.
            dry_run: Remove nothing; return the report of what would be removed.
            missing_ok: With False, a thread that does not exist raises ThreadNotFoundError, and nothing is removed.
            progress: A function that is called with a `threadmark.types.Progress` between two transactions. An error
                that it raises ends the pruning.
        """
        rule = pruning.prune_rule(strategy, keep_last, older_than)
        prune = pruning.prune(
            self._context, thread_ids, rule, dry_run=dry_run, missing_ok=missing_ok, progress=progress
        )
        return run(self._driver, prune)

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
        """Remove expired threads, and everything else that the arguments select, from all threads. Returns a report.

        A thread whose `expires_at` has passed is removed. `saver.apply_retention(idle_for=timedelta(days=90),
        keep_last=10)` also removes threads that stored nothing for 90 days, and prunes the others like
        `prune(keep_last=10)`. Threads with a live lease are left alone. Damaged threads are left unchanged and
        reported. Each transaction handles up to 16 threads, or 1,000 checkpoints, and checks the rules again. Several
        retentions may run at once. If one was killed, run it again.

        Args:
            keep_last: As in `prune`.
            older_than: As in `prune`. Without this and `keep_last`, nothing is pruned.
            idle_for: Remove threads that stored nothing for this long, in any namespace.
            max_bytes: After that, remove whole threads, least recently updated first, until the others take no more
                than this. Threads with a live lease count, and stay.
            owner: Consider only this owner's threads.
            metadata: Consider only threads whose metadata has these keys, with equal JSON values.
            dry_run: Remove nothing. With `max_bytes`, the size of sealed threads after pruning is an estimate.
            progress: As in `prune`.
        """
        rule = retaining.retention_rule(
            keep_last=keep_last,
            older_than=older_than,
            idle_for=idle_for,
            max_bytes=max_bytes,
            owner=owner,
            metadata=metadata,
        )
        return run(self._driver, retaining.apply_retention(self._context, rule, dry_run=dry_run, progress=progress))

    def get_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return, for each channel, its last stored value and the writes of the ancestors since then, oldest first."""
        return run(self._driver, delta.get_delta_channel_history(self._context, config, channels))

    def get_next_version(self, current: Version | None, channel: None = None) -> Version:  # noqa: ARG002 - the contract's
        """Return the version after `current`, of the same type. A new channel starts with the integer 1."""
        return next_version(current)

    def close(self) -> None:
        """Close all connections. Later calls raise ClosedError."""
        self._driver.close()
        self._context.encoding_cache.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _moving(self, ranks: Mapping[tuple[str, str, str], str]) -> Self:
        """Return a saver for moving data here, with these ranks (`SaverContext.moves`)."""
        other = copy.copy(self)
        other._context = self._context._replace(moves=ranks)  # noqa: SLF001 - of our own copy
        return other

    def _keep_local_classes(self) -> None:
        """Also store objects of classes that no name leads to, because this saver's database ends with the process."""
        self._keeps_local_classes = True
        self._context = self._context._replace(serde=self._suited(self._context.serde))

    def _suited(self, serde: Serializer) -> Serializer:
        return serde.keeping_local_classes() if self._keeps_local_classes and finds_parts(serde) else serde

    def _pages(self, asked: listing.Listing) -> Iterator[CheckpointTuple]:
        reader = listing.Reader(self._context, asked)
        while reader.more:
            yield from reader.readable(run(self._driver, reader.next_batch()))
        reader.finish()

    async def _apages(self, asked: listing.Listing) -> AsyncIterator[CheckpointTuple]:
        reader = listing.Reader(self._context, asked)
        while reader.more:
            for item in reader.readable(await arun(self._driver, reader.next_batch())):
                yield item
        reader.finish()

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""
        return await arun(self._driver, beginning.setup(self._context))

    async def aget(self, config: Config | str) -> Checkpoint | None:
        """Like `get`, for asyncio."""
        found = await self.aget_tuple(config)
        return found.checkpoint if found else None

    async def aget_tuple(self, config: Config | str) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""
        return await arun(self._driver, reading.get_tuple(self._context, config))

    def alist(
        self,
        config: Config | str | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Like `list`, for asyncio."""
        return self._apages(listing.listing(config, filter, before, limit))

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
        put = writing.put(self._context, config, checkpoint, metadata, new_versions, expect_newest=expect_newest)
        return await arun(self._driver, put)

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like `put_writes`, for asyncio."""
        return await arun(self._driver, writing.put_writes(self._context, config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: Config | str) -> bool:
        """Like `delete_thread`, for asyncio."""
        return await arun(self._driver, removing.delete_thread(self._context, thread_id))

    async def adelete_checkpoint(self, config: Config) -> bool:
        """Like `delete_checkpoint`, for asyncio."""
        return await arun(self._driver, removing.delete_checkpoint(self._context, config))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> PruneReport:
        """Like `delete_for_runs`, for asyncio."""
        return await arun(self._driver, removing.delete_for_runs(self._context, run_ids))

    async def acopy_thread(self, source_thread_id: Config | str, target_thread_id: Config | str) -> bool:
        """Like `copy_thread`, for asyncio."""
        return await arun(self._driver, copying.copy_thread(self._context, source_thread_id, target_thread_id))

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
    ) -> PruneReport:
        """Like `prune`, for asyncio."""
        rule = pruning.prune_rule(strategy, keep_last, older_than)
        prune = pruning.prune(
            self._context, thread_ids, rule, dry_run=dry_run, missing_ok=missing_ok, progress=progress
        )
        return await arun(self._driver, prune)

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
        rule = retaining.retention_rule(
            keep_last=keep_last,
            older_than=older_than,
            idle_for=idle_for,
            max_bytes=max_bytes,
            owner=owner,
            metadata=metadata,
        )
        return await arun(
            self._driver, retaining.apply_retention(self._context, rule, dry_run=dry_run, progress=progress)
        )

    async def aget_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`, for asyncio."""
        return await arun(self._driver, delta.get_delta_channel_history(self._context, config, channels))

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self._driver.aclose()
        self._context.encoding_cache.clear()

    # The end of the part that scripts/write_twins.py wrote.


_MEMBERS = tuple(name for name in vars(SaverProtocol) if not name.startswith("_"))


def expect_saver(candidate: Any) -> SaverProtocol:
    """Return the argument if it has the public methods of a saver, or raise ConfigError."""
    if isinstance(candidate, str):
        raise ConfigError("expected a saver, got a string: threadmark.open(url) makes the saver of a URL")
    missing = [name for name in _MEMBERS if not hasattr(candidate, name)]
    if missing:
        raise ConfigError(
            f"expected a threadmark.Saver, or an object with its methods, got {type(candidate).__name__}, "
            f"which has no {', '.join(missing)}"
        )
    saver: SaverProtocol = candidate
    return saver
