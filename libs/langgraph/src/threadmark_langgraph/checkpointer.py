"""`Checkpointer`: any Threadmark saver as a LangGraph checkpointer, the one implementation of all names."""

import copy
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)

from threadmark import CheckpointTuple as StoredTuple
from threadmark import SaverProtocol
from threadmark.saver import expect_saver
from threadmark.types import PruneReport, PruneStrategy
from threadmark_langgraph.allowlist import extended
from threadmark_langgraph.forwarding import ForwardingMethods
from threadmark_langgraph.sends import lacks_sends, with_sends
from threadmark_langgraph.shapes import FIRST_VERSION, engine_tuple, following_version, stored_metadata
from threadmark_langgraph.superseded import is_asked_by_engine, only_ids
from threadmark_langgraph.task_writes import TaskWrites
from threadmark_langgraph.transactions import TransactionMethods
from threadmark_langgraph.unmoved import OnUnmoved, UnmovedThreads
from threadmark_langgraph.values import register_values_once

if TYPE_CHECKING:
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from threadmark_langgraph.options import PruneRule


def wrap(saver: SaverProtocol, *, on_unmoved: OnUnmoved = "warn") -> "Checkpointer":
    """Return a checkpointer for LangGraph that keeps everything in this saver.

    Any backend will do, and a `threadmark.Saver` or another object with the same methods.
    `on_unmoved` is as of the savers that the database has: with "raise", threads of LangGraph's own saver that were not
    moved are an `UnmovedThreadsError`.
    """
    return Checkpointer(saver, on_unmoved=on_unmoved)


class Checkpointer(TaskWrites, TransactionMethods, ForwardingMethods, BaseCheckpointSaver[Any]):
    """A LangGraph checkpointer that keeps everything in a Threadmark saver.

    It has LangGraph's methods and all those of the saver (`verify`, `history`, `list_threads` ...), blocking and for
    asyncio. Closing it closes the saver.
    """

    def __init__(
        self,
        saver: SaverProtocol,
        *,
        serde: "SerializerProtocol | None" = None,
        on_unmoved: OnUnmoved = "warn",
    ) -> None:
        self._saver = expect_saver(saver)
        self.unmoved = UnmovedThreads(on_unmoved)
        register_values_once()
        if serde is not None:
            self.serde = serde

    def __repr__(self) -> str:
        saver = getattr(self, "_saver", None)  # none yet, if making it failed
        return f"{type(self).__name__}({saver!r})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a method of only this kind of saver, such as `report` or the `status` of a replicated one."""
            # A checkpointer stands for no saver: `wrap` and the interfaces refuse an object without `with_serde`.
            if name.startswith("_") or name == "with_serde" or not hasattr(self._saver, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return getattr(self._saver, name)

    @property
    def saver(self) -> SaverProtocol:
        """The Threadmark saver, whose `put` and `get_tuple` have no LangGraph classes in them."""
        return self._saver

    @property
    def serde(self) -> "SerializerProtocol":
        """The serializer of values. Setting it changes this checkpointer only, not its clones."""
        return self._saver.serde

    @serde.setter
    def serde(self, serde: "SerializerProtocol") -> None:
        self._saver = self._saver.with_serde(_typed(serde))

    @property
    def config_specs(self) -> list[Any]:
        """Fields that a run's configuration may have for this saver."""
        return self._saver.config_specs

    def get_next_version(self, current: Any, channel: None = None) -> Any:
        """Return the version after `current`, of the same type. A new thread gets LangGraph's strings."""
        if current is None:
            return FIRST_VERSION
        following = following_version(current) if isinstance(current, str) else None
        return following or self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        """Return a checkpointer that may also load these classes. It shares connections and caches with this one."""
        serde = extended(self.serde, extra_allowlist)
        if serde is None:
            return super().with_allowlist(extra_allowlist)
        if serde is self.serde:
            return self
        clone = copy.copy(self)
        clone.serde = serde
        return clone

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, or the newest of its namespace."""
        if is_asked_by_engine():
            return only_ids(self._saver.get_checkpoint_ref(config))
        found = self._saver.get_tuple(config)
        if found is None and not self.unmoved.expected:
            self.unmoved.look(self._saver)
        return found and self._complete(found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""
        if is_asked_by_engine():
            return only_ids(await self._saver.aget_checkpoint_ref(config))
        found = await self._saver.aget_tuple(config)
        if found is None and not self.unmoved.expected:
            await self.unmoved.alook(self._saver)
        return found and await self._acomplete(found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first: of one namespace, of one thread, or with None of all threads.

        Each item costs a get, so a whole listing of all threads reads everything stored: give a `limit`.
        """
        for found in self._saver.list(config, filter=filter, before=before, limit=limit):
            yield self._complete(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Like `list`, for asyncio."""
        async for found in self._saver.alist(config, filter=filter, before=before, limit=limit):
            yield await self._acomplete(found)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store `checkpoint` as a child of the one in `config`. Returns the config of the new checkpoint."""
        merged = stored_metadata(config, metadata)
        if self.unmoved.raises and not self.unmoved.expected:
            self.unmoved.look(self._saver)
        if self._companion is not None:
            return self._companion.put(self._saver, config, checkpoint, merged, new_versions)
        # Both sides declare the same keys of checkpoints and configurations, each for itself.
        return self._saver.put(config, checkpoint, merged, new_versions)  # type: ignore[arg-type, return-value]

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Like `put`, for asyncio."""
        merged = stored_metadata(config, metadata)
        if self.unmoved.raises and not self.unmoved.expected:
            await self.unmoved.alook(self._saver)
        if self._companion is not None:
            return await self._companion.aput(self._saver, config, checkpoint, merged, new_versions)
        return await self._saver.aput(config, checkpoint, merged, new_versions)  # type: ignore[arg-type, return-value]

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread whole. Later writes of a run that is still going are refused."""
        self._saver.delete_thread(thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        """Like `delete_thread`, for asyncio."""
        await self._saver.adelete_thread(thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of these runs, except those that a surviving delta channel is read from."""
        self._saver.delete_for_runs(run_ids)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like `delete_for_runs`, for asyncio."""
        await self._saver.adelete_for_runs(run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Let the target thread hold everything that the source thread holds."""
        self._saver.copy_thread(source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like `copy_thread`, for asyncio."""
        await self._saver.acopy_thread(source_thread_id, target_thread_id)

    def prune(  # type: ignore[override]  # LangGraph's returns nothing
        self, thread_ids: Sequence[str] | None, *, strategy: str = "keep_latest", **rule: "Unpack[PruneRule]"
    ) -> PruneReport:
        """Remove old checkpoints of these threads. Returns a report, with `dry_run=True` of the planned removal.

        `keep_last` and `older_than` keep more than the newest checkpoint of each namespace, and None stands for all
        threads, as in `threadmark.Saver.prune`.
        """
        # LangGraph has text for the strategy; the saver checks it.
        return self._saver.prune(thread_ids, strategy=cast("PruneStrategy", strategy), **rule)

    async def aprune(  # type: ignore[override]  # as `prune`
        self, thread_ids: Sequence[str] | None, *, strategy: str = "keep_latest", **rule: "Unpack[PruneRule]"
    ) -> PruneReport:
        """Like `prune`, for asyncio."""
        return await self._saver.aprune(thread_ids, strategy=cast("PruneStrategy", strategy), **rule)

    def for_owner(self, owner: str) -> Self:
        """Return a checkpointer on the same connections in which only this owner's threads are there.

        Without it, the threads that a run begins belong to whom its `configurable["user_id"]` names, if it does. It has
        no `conn`, with which everything could be read.
        """
        clone = copy.copy(self)
        vars(clone).pop("conn", None)
        clone._saver = self._saver.for_owner(owner)  # noqa: SLF001 - of our own copy
        return clone

    def without_classes(self) -> Self:
        """Return a checkpointer on the same connections that shows objects by name and fields (`ObjectView`)."""
        clone = copy.copy(self)
        clone._saver = self._saver.without_classes()  # noqa: SLF001 - of our own copy
        return clone

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel its last stored value, and the ancestors' writes since, oldest first."""
        return self._saver.get_delta_channel_history(config=config, channels=channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`, for asyncio."""
        return await self._saver.aget_delta_channel_history(config=config, channels=channels)

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

    def _complete(self, stored: StoredTuple) -> CheckpointTuple:
        found = engine_tuple(stored)
        if found.parent_config is None or not lacks_sends(found):
            return found
        parent = self._saver.get_tuple(found.parent_config)
        return with_sends(found, parent and engine_tuple(parent))

    async def _acomplete(self, stored: StoredTuple) -> CheckpointTuple:
        found = engine_tuple(stored)
        if found.parent_config is None or not lacks_sends(found):
            return found
        parent = await self._saver.aget_tuple(found.parent_config)
        return with_sends(found, parent and engine_tuple(parent))


def _typed(serde: "SerializerProtocol") -> "SerializerProtocol":
    """The serializer; one of the old kind, which knows no types of values, as LangGraph adapts it."""
    if hasattr(serde, "dumps_typed") and hasattr(serde, "loads_typed"):
        return serde
    from langgraph.checkpoint.serde.base import maybe_add_typed_methods

    return maybe_add_typed_methods(serde)
