"""The two APIs of a saver as one: cases call the `a` methods, and the blocking API answers them from threads."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from threadmark.model import (
    ChannelVersions,
    Checkpoint,
    CheckpointRef,
    CheckpointTuple,
    Config,
    DeltaChannelHistory,
    Pruned,
    PruneStrategy,
    Stats,
    Verified,
)
from threadmark.saver import Saver


class Blocking(Saver):
    """A saver whose `a` methods call the blocking methods, each call on some thread of a pool."""

    async def aget(self, config: Config) -> Checkpoint | None:
        """Like `get`, for asyncio."""
        return await asyncio.to_thread(self.get, config)

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Like `get_tuple`, for asyncio."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Like `list`, for asyncio."""
        items = await asyncio.to_thread(self.list, config, filter=filter, before=before, limit=limit)
        while (item := await asyncio.to_thread(next, items, None)) is not None:
            yield item

    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: ChannelVersions,
    ) -> dict[str, Any]:
        """Like `put`, for asyncio."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like `put_writes`, for asyncio."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Like `delete_thread`, for asyncio."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like `delete_for_runs`, for asyncio."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like `copy_thread`, for asyncio."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: PruneStrategy = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Like `prune`, for asyncio."""
        return await asyncio.to_thread(
            self.prune,
            thread_ids,
            strategy=strategy,
            keep_last=keep_last,
            older_than=older_than,
            dry_run=dry_run,
        )

    async def aget_delta_channel_history(
        self, *, config: Config, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`, for asyncio."""
        return await asyncio.to_thread(self.get_delta_channel_history, config=config, channels=channels)

    async def averify(self, thread_id: str | None = None) -> Verified:
        """Like `verify`, for asyncio."""
        return await asyncio.to_thread(self.verify, thread_id)

    async def astats(self, thread_id: str | None = None) -> Stats:
        """Like `stats`, for asyncio."""
        return await asyncio.to_thread(self.stats, thread_id)

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""
        await asyncio.to_thread(self.setup)

    async def ahas_tables(self) -> bool:
        """Like `has_tables`, for asyncio."""
        return await asyncio.to_thread(self.has_tables)

    async def alist_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Like `list_checkpoint_refs`, for asyncio."""
        return await asyncio.to_thread(self.list_checkpoint_refs)

    async def aorphan_writes(self) -> Sequence[CheckpointRef]:
        """Like `orphan_writes`, for asyncio."""
        return await asyncio.to_thread(self.orphan_writes)

    async def areencrypt(self, thread_id: str | None = None) -> int:
        """Like `reencrypt`, for asyncio."""
        return await asyncio.to_thread(self.reencrypt, thread_id)

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await asyncio.to_thread(self.close)


def _asyncio(saver: Saver) -> Saver:
    return saver


def _blocking(saver: Saver) -> Saver:
    """The same saver, of a class that is still its own, so that what its backend overrides is what is called."""
    other = copy.copy(saver)
    other.__class__ = type("Blocking", (Blocking, type(saver)), {})
    return other


APIS: Mapping[str, Callable[[Saver], Saver]] = {"asyncio": _asyncio, "blocking": _blocking}
"""The APIs by name."""
