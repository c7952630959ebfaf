"""The saver: every operation for blocking callers and for asyncio. All thinking is done in the operations."""

import copy
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, Unpack

from threadmark.model import (
    ChannelVersions,
    Checkpoint,
    CheckpointRef,
    CheckpointTuple,
    Config,
    DeltaChannelHistory,
    Pruned,
    Stats,
    Verified,
)
from threadmark.program import Driver, arun, run
from threadmark.saver import copying, delta, inspecting, listing, reading, removing, resealing, surveying, writing
from threadmark.saver.context import SaverOptions, checked_serde, context_of
from threadmark.serde import Serializer
from threadmark.store import Store
from threadmark.versions import Version, next_version


class Saver:
    """Saves the state of a graph after every step.

    A backend is a `Store` (its rows) and a `Driver` (its transactions); everything else is here, once. Every method
    has an asyncio version whose name begins with `a`, and both may be used on one saver, from any thread and event
    loop. Use it as a context manager, blocking or asyncio, or call `close` or `aclose`.
    """

    def __init__(self, store: Store, driver: Driver, **options: Unpack[SaverOptions]) -> None:
        self._driver = driver
        self._context = context_of(store, options)

    @property
    def serde(self) -> Serializer:
        """The serializer of values."""
        return self._context.serde

    def with_serde(self, serde: Serializer) -> Self:
        """A saver with another serializer on the same connections and cache; the two are closed together."""
        other = copy.copy(self)
        other._context = self._context._replace(serde=checked_serde(serde))  # noqa: SLF001 - of our own copy
        return other

    @property
    def config_specs(self) -> list[Any]:
        """Fields that a run's configuration may have for this saver: none beside those every saver reads."""
        return []

    def get(self, config: Config) -> Checkpoint | None:
        """The checkpoint that `config` names, or the newest of its namespace."""
        found = self.get_tuple(config)
        return found.checkpoint if found else None

    async def aget(self, config: Config) -> Checkpoint | None:
        """Like `get`, for asyncio."""
        found = await self.aget_tuple(config)
        return found.checkpoint if found else None

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like `get`, with metadata, parent and pending writes."""
        return run(self._driver, reading.get_tuple(self._context, config))

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""
        return await arun(self._driver, reading.get_tuple(self._context, config))

    def list(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first: of one thread, of one namespace of it, or with None of all threads.

        `filter` compares top-level metadata keys, `before` leaves only older checkpoints. Nothing is held between
        two items. A checkpoint that is damaged, or whose classes may not be loaded, is an error where it stands; in a
        listing of all threads the others come first, and the error at the end.
        """
        return self._pages(listing.listing(config, filter, before, limit))

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

    def put(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
    ) -> dict[str, Any]:
        """Store a checkpoint as the child of the one that `config` names; the configuration that names it.

        Names, of channels too, are text, and come back as plain text; docs/errors.md has what every argument may be.
        """
        return run(self._driver, writing.put(self._context, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
    ) -> dict[str, Any]:
        """Like `put`, for asyncio."""
        return await arun(self._driver, writing.put(self._context, config, checkpoint, metadata, new_versions))

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote, before the step is over: all of it or nothing.

        Each write is a pair of a channel and a value.
        """
        return run(self._driver, writing.put_writes(self._context, config, writes, task_id, task_path))

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like `put_writes`, for asyncio."""
        return await arun(self._driver, writing.put_writes(self._context, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread whole. What a run that is still going stores for it later is refused."""
        return run(self._driver, removing.delete_thread(self._context, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Like `delete_thread`, for asyncio."""
        return await arun(self._driver, removing.delete_thread(self._context, thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that these runs made, except those that a surviving delta channel is read from."""
        return run(self._driver, removing.delete_for_runs(self._context, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like `delete_for_runs`, for asyncio."""
        return await arun(self._driver, removing.delete_for_runs(self._context, run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Let the target thread hold everything that the source thread holds."""
        return run(self._driver, copying.copy_thread(self._context, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like `copy_thread`, for asyncio."""
        return await arun(self._driver, copying.copy_thread(self._context, source_thread_id, target_thread_id))

    def prune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Remove old checkpoints of these threads; what was removed, or with `dry_run` what would be.

        The newest checkpoint of every namespace stays (the newest `keep_last`, and whatever is not `older_than`
        that age), with what its delta channels are read from. The namespace of a subgraph's call goes with the
        checkpoint that it was made from. Strategy "delete" removes everything.
        """
        rule = removing.prune_rule(strategy, keep_last, older_than)
        return run(self._driver, removing.prune(self._context, thread_ids, rule, dry_run=dry_run))

    async def aprune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Like `prune`, for asyncio."""
        rule = removing.prune_rule(strategy, keep_last, older_than)
        return await arun(self._driver, removing.prune(self._context, thread_ids, rule, dry_run=dry_run))

    def get_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel what the ancestors wrote since its last stored value, oldest first, and that value."""
        return run(self._driver, delta.get_delta_channel_history(self._context, config, channels))

    async def aget_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`, for asyncio."""
        return await arun(self._driver, delta.get_delta_channel_history(self._context, config, channels))

    def verify(self, thread_id: str | None = None) -> Verified:
        """Read everything stored (of one thread) and report what is damaged, unreadable or orphaned, with its place."""
        return run(self._driver, inspecting.verify(self._context, thread_id))

    async def averify(self, thread_id: str | None = None) -> Verified:
        """Like `verify`, for asyncio."""
        return await arun(self._driver, inspecting.verify(self._context, thread_id))

    def stats(self, thread_id: str | None = None) -> Stats:
        """How much is stored (of one thread), and how much it would be with every value stored whole.

        What is damaged is named beside the figures of everything else.
        """
        return run(self._driver, inspecting.stats(self._context, thread_id))

    async def astats(self, thread_id: str | None = None) -> Stats:
        """Like `stats`, for asyncio."""
        return await arun(self._driver, inspecting.stats(self._context, thread_id))

    def has_tables(self) -> bool:
        """Whether the database is there, with its tables. Asking makes nothing; any other use would."""
        return run(self._driver, surveying.has_tables(self._context))

    async def ahas_tables(self) -> bool:
        """Like `has_tables`, for asyncio."""
        return await arun(self._driver, surveying.has_tables(self._context))

    def list_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Where every checkpoint stands, one that cannot be read included, newest first; nothing is made by asking."""
        return run(self._driver, surveying.list_checkpoint_refs(self._context))

    async def alist_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Like `list_checkpoint_refs`, for asyncio."""
        return await arun(self._driver, surveying.list_checkpoint_refs(self._context))

    def orphan_writes(self) -> Sequence[CheckpointRef]:
        """Where pending writes stand whose checkpoint is not there; nothing is made by asking."""
        return run(self._driver, surveying.orphan_writes(self._context))

    async def aorphan_writes(self) -> Sequence[CheckpointRef]:
        """Like `orphan_writes`, for asyncio."""
        return await arun(self._driver, surveying.orphan_writes(self._context))

    def reencrypt(self, thread_id: str | None = None) -> int:
        """Seal everything stored (of one thread) with the newest key; how many rows were sealed anew."""
        return run(self._driver, resealing.reencrypt(self._context, thread_id))

    async def areencrypt(self, thread_id: str | None = None) -> int:
        """Like `reencrypt`, for asyncio."""
        return await arun(self._driver, resealing.reencrypt(self._context, thread_id))

    def get_next_version(self, current: Version | None, channel: None = None) -> Version:  # noqa: ARG002 - the contract's
        """The version after `current`, of the same kind; integers from 1 for a new channel."""
        return next_version(current)

    def close(self) -> None:
        """Give back everything the saver holds; later calls raise ClosedError."""
        self._driver.close()
        self._context.encoding_cache.clear()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self._driver.aclose()
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
