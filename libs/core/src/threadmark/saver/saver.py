"""The Saver class: every operation as a sync and an async method. The logic is in the modules of the operations."""

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta
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
from threadmark.travel.methods import TravelMethods


class Saver(ThreadMethods, PartMethods, LeaseMethods, TravelMethods, OperatingMethods, EncryptionMethods):
    """Saves the state of a graph after every step.

    A backend is a `Store` (its rows) and a `Driver` (its transactions); everything else is here, once. Every method
    has an asyncio version whose name begins with `a`, and both may be used on one saver, from any thread and event
    loop. Use it as a context manager, blocking or asyncio, or call `close` or `aclose`.
    """

    _keeps_local_classes = False

    def __init__(self, store: Store, driver: Driver, **options: Unpack[SaverOptions]) -> None:
        check_options(type(self), options)
        self._store = store
        """The rows, as they are stored: below what seals them or belongs to one owner."""
        self._options = options
        self._driver = driver
        self._context = self._new_context()

    def _new_context(self) -> SaverContext:
        """The context of a saver that has not remembered anything yet."""
        return context_of(self._store, self._options, SealedStore)

    def __repr__(self) -> str:
        driver = getattr(self, "_driver", None)  # none yet, where making it failed
        return f"<{type(self).__name__} on {driver}>"

    @property
    def serde(self) -> Serializer:
        """The serializer of values."""
        return self._context.serde

    def with_serde(self, serde: Serializer) -> Self:
        """Return a saver that uses another serializer on the same connections and cache. Closing one closes both."""
        other = copy.copy(self)
        suited = self._suited(checked_serde(serde))
        other._context = self._context._replace(serde=suited)  # noqa: SLF001 - of our own copy
        return other

    @property
    def config_specs(self) -> list[Any]:
        """Extra fields that a run's configuration may have for this saver. There are none."""
        return []

    def setup(self) -> None:
        """Create the tables of a new database, or bring those of an earlier release to the current format.

        Whatever is called first does so by itself. Call this to have it done at a time of your own choice, such as in a
        deployment step, whose role may change tables. It may be called again.
        """
        return run(self._driver, beginning.setup(self._context))

    def get(self, config: Config) -> Checkpoint | None:
        """Return the checkpoint that `config` names, or the newest of its namespace. Returns None if there is none."""
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like `get`, but return the checkpoint with its metadata, parent and pending writes."""
        return run(self._driver, reading.get_tuple(self._context, config))

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first, of a thread, of one of its namespaces, or of all threads (`config` None).

        `filter` compares top-level metadata keys, `before` leaves only older checkpoints. No lock or connection is held
        between two items. A checkpoint that is damaged, or whose classes may not be loaded, raises when its turn comes.
        A listing of all threads first yields all others, and raises at the end.

        Each item costs a get: its row, its writes and the segments of its values, read in batches of up to 64. Whoever
        stops early has read the first page of outlines (512) and a batch of 16 only; `limit` makes both smaller. A
        `filter` reads the metadata of all that it passes over, except for `run_id`, which has an index where rows are
        not sealed. To know which threads and checkpoints there are, `list_checkpoint_refs` reads no values.
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

        Names, those of channels included, are text and come back as plain `str`; docs/reference/errors.md lists what
        is refused. With `expect_newest` it raises ConflictError where the one in `config` is no longer the newest
        of its namespace; False declares a fork. None is as `configurable["expect_newest"]` says, or else the option.
        """
        put = writing.put(self._context, config, checkpoint, metadata, new_versions, expect_newest=expect_newest)
        return run(self._driver, put)

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote before its step is over, all of it or nothing.

        Each write is a pair of a channel and a value.
        """
        return run(self._driver, writing.put_writes(self._context, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> bool:
        """Remove a thread and everything in it. Returns whether there was one.

        Runs that are still going can no longer store anything for it.
        """
        return run(self._driver, removing.delete_thread(self._context, thread_id))

    def delete_checkpoint(self, config: Config) -> bool:
        """Remove the checkpoint that `config` names by its `checkpoint_id`. Returns whether there was one.

        Those that come after it stay and read as before, and what only it needed is given back. Calls of subgraphs that
        are over with it go, too, and with its last checkpoint a thread goes as by `delete_thread`. Raises ConflictError
        for one that has to stay: because a delta channel of later ones is read from it, or because a question waits
        there for its answer. It reads as much as a `prune` of the thread, in one transaction that writes.
        """
        return run(self._driver, removing.delete_checkpoint(self._context, config))

    def delete_for_runs(self, run_ids: Sequence[str]) -> PruneReport:
        """Remove the checkpoints that these runs made, except those that other checkpoints need to be read.

        Returns what was removed. For each run and each thread that it was in, this reads as much as a `prune` of that
        thread: every outline, every write row and the headers of all that stay, in one transaction that writes. An
        index finds the runs; where metadata is sealed, that of all threads is read.
        """
        return run(self._driver, removing.delete_for_runs(self._context, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> bool:
        """Copy every checkpoint and pending write of the source thread to the target thread.

        Returns whether there is a source; if not, nothing is done. Segments are copied inside the database (sealed ones
        come here to be sealed again), rows one by one, all in one transaction: it takes as long, and as much space, as
        the source is large, and on SQLite others wait to write meanwhile.
        """
        return run(self._driver, copying.copy_thread(self._context, source_thread_id, target_thread_id))

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
    ) -> PruneReport:
        """Remove old checkpoints of these threads. Returns what was removed, or with `dry_run` what would be.

        Of every namespace the newest checkpoint is kept, and beside it what the arguments say; of the others, those
        that a kept one needs to be read. The namespace of a subgraph's call is removed together with the checkpoint
        that made the call. `saver.prune(ids, keep_last=10, older_than=timedelta(days=30))` removes what is neither
        among the newest ten of its namespace nor from the last 30 days.

        Args:
            thread_ids: The threads; None for all, which "delete" refuses. Several are done in one transaction, up to
                1,000 checkpoints.
            strategy: With "delete", everything of the threads is removed.
            keep_last: How many of the newest checkpoints of a namespace to keep, instead of one.
            older_than: Remove only checkpoints that are older than this.
            dry_run: Remove nothing.
            missing_ok: With False, a thread that does not exist is a ThreadNotFoundError, and nothing is removed.
            progress: Is called with a `threadmark.types.Progress` between two transactions. What it raises ends the
            pruning.
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
        older_than: timedelta | None = None,
        idle_for: timedelta | None = None,
        max_bytes: int | None = None,
        owner: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
    ) -> RetentionReport:
        """Remove what has expired, and what the arguments say, from all threads. Returns what was removed.

        A thread whose `expires` has passed is removed. `saver.apply_retention(idle_for=timedelta(days=90),
        keep_last=10)` also removes threads in which nothing was stored for 90 days, and prunes the others as
        `prune(keep_last=10)`. A thread that somebody holds a lease of is left alone. Damaged ones are left as they are,
        and reported. Threads are done in transactions of up to 16, or 1,000 checkpoints, each of which looks again;
        several retentions may run at once, and one that was killed is simply run again.

        Args:
            keep_last: As in `prune`.
            older_than: As in `prune`. Without this and `keep_last`, nothing is pruned.
            idle_for: Remove threads in which nothing was stored for so long, in any namespace.
            max_bytes: Then remove whole threads, those first that were not updated for the longest time, until the
                others take no more than this. Busy ones count, and stay.
            owner: Only look at this owner's threads.
            metadata: Only look at threads whose metadata has these keys, with equal JSON values.
            dry_run: Remove nothing. With `max_bytes`, what sealed threads would take after a pruning is an estimate.
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
        """Return, for each channel, its last stored value and what the ancestors wrote since then, oldest first."""
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

    def _moving(self) -> Self:
        """Return a saver that stores checkpoints as of the time that their `ts` names. It is for moving them here."""
        other = copy.copy(self)
        other._context = self._context._replace(moves=True)  # noqa: SLF001 - of our own copy
        return other

    def _keep_local_classes(self) -> None:
        """Store objects of classes to which no name leads, too: this saver's database ends with the process."""
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

    async def aget(self, config: Config) -> Checkpoint | None:
        """Like `get`, for asyncio."""
        found = await self.aget_tuple(config)
        return found.checkpoint if found else None

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""
        return await arun(self._driver, reading.get_tuple(self._context, config))

    def alist(
        self,
        config: Config | None,
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

    async def adelete_thread(self, thread_id: str) -> bool:
        """Like `delete_thread`, for asyncio."""
        return await arun(self._driver, removing.delete_thread(self._context, thread_id))

    async def adelete_checkpoint(self, config: Config) -> bool:
        """Like `delete_checkpoint`, for asyncio."""
        return await arun(self._driver, removing.delete_checkpoint(self._context, config))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> PruneReport:
        """Like `delete_for_runs`, for asyncio."""
        return await arun(self._driver, removing.delete_for_runs(self._context, run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> bool:
        """Like `copy_thread`, for asyncio."""
        return await arun(self._driver, copying.copy_thread(self._context, source_thread_id, target_thread_id))

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
        older_than: timedelta | None = None,
        idle_for: timedelta | None = None,
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

    # The end of what scripts/write_twins.py wrote.


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
