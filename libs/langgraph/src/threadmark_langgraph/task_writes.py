"""The writes of tasks, and the companion of a checkpointer: a store whose items are stored together with them.

This package knows no store. `threadmark_store` makes the companion if a store is opened with `with_tasks=True`.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig

from threadmark import SaverProtocol
from threadmark_langgraph.shapes import stored_writes


class Companion(Protocol):
    """Calls `put` and `put_writes` of a saver in one transaction with more changes."""

    def put(self, saver: Any, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> RunnableConfig:
        """Store a checkpoint, and the companion's part of what led to it."""

    async def aput(self, saver: Any, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> RunnableConfig:
        """Like `put`, for asyncio."""

    def put_writes(self, saver: Any, config: Any, writes: Any, task_id: str, task_path: str) -> None:
        """Store a task's writes, and the companion's part of the task."""

    async def aput_writes(self, saver: Any, config: Any, writes: Any, task_id: str, task_path: str) -> None:
        """Like `put_writes`, for asyncio."""


class TaskWrites:
    """The methods of a checkpointer for the writes of tasks."""

    _saver: SaverProtocol
    _companion: Companion | None = None
    """What is stored together with tasks and checkpoints. Copies of the checkpointer share it."""

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store a task's writes, before the step is over: all of it or nothing."""
        stored = stored_writes(self._saver, writes)
        if self._companion is None:
            self._saver.put_writes(config, stored, task_id, task_path)
        else:
            self._companion.put_writes(self._saver, config, stored, task_id, task_path)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Like `put_writes`, for asyncio."""
        stored = stored_writes(self._saver, writes)
        if self._companion is None:
            await self._saver.aput_writes(config, stored, task_id, task_path)
        else:
            await self._companion.aput_writes(self._saver, config, stored, task_id, task_path)
