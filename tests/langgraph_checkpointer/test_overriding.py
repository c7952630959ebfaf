"""Which methods of a user's subclass are asked."""

import asyncio
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory

from threadmark_langgraph import InMemorySaver, SqliteSaver

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


def _noting(base: type[Any]) -> type[Any]:
    """A subclass that overrides blocking methods only, and notes which of them are asked."""

    class Noting(base):  # type: ignore[misc]  # chosen by the caller
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.asked: list[str] = []

        def put(self, *args: Any) -> Any:
            self.asked.append("put")
            return super().put(*args)

        def put_writes(self, *args: Any) -> None:
            self.asked.append("put_writes")
            super().put_writes(*args)

        def get_tuple(self, config: Any) -> CheckpointTuple | None:
            self.asked.append("get_tuple")
            found: CheckpointTuple | None = super().get_tuple(config)
            return found

        def list(self, *args: Any, **options: Any) -> Any:
            self.asked.append("list")
            yield from super().list(*args, **options)

        def delete_thread(self, thread_id: str) -> None:
            self.asked.append("delete_thread")
            super().delete_thread(thread_id)

    return Noting


async def _asked(saver: Any) -> list[str]:
    """Which blocking methods the asyncio ones ask."""
    location = await saver.aput(THREAD, empty_checkpoint(), {}, {})
    await saver.aput_writes(location, [("x", 1)], "task")
    await saver.aget(THREAD)
    assert len([found async for found in saver.alist(THREAD)]) == 1
    await saver.adelete_thread("1")
    asked: list[str] = saver.asked
    return asked


def test_a_subclass_of_the_saver_in_memory_is_asked_as_langgraphs_is() -> None:
    theirs = asyncio.run(_asked(_noting(TheirMemory)()))
    ours = asyncio.run(_asked(_noting(InMemorySaver)()))
    assert ours == theirs == ["put", "put_writes", "get_tuple", "list", "delete_thread"]


def test_the_other_methods_of_the_saver_in_memory_ask_the_blocking_ones_too() -> None:
    class Noting(InMemorySaver):
        def prune(self, *args: Any, **options: Any) -> Any:
            asked.append("prune")
            return super().prune(*args, **options)

        def copy_thread(self, *args: Any) -> None:
            asked.append("copy_thread")
            super().copy_thread(*args)

        def delete_for_runs(self, *args: Any) -> None:
            asked.append("delete_for_runs")
            super().delete_for_runs(*args)

        def get_delta_channel_history(self, **options: Any) -> Any:
            asked.append("get_delta_channel_history")
            return super().get_delta_channel_history(**options)

    async def use(saver: InMemorySaver) -> None:
        await saver.aprune(["1"])
        await saver.acopy_thread("1", "2")
        await saver.adelete_for_runs(["r"])
        await saver.aget_delta_channel_history(config=THREAD, channels=["x"])

    asked: list[str] = []
    asyncio.run(use(Noting()))
    assert asked == ["prune", "copy_thread", "delete_for_runs", "get_delta_channel_history"]


def test_on_a_database_each_api_answers_for_itself(tmp_path: Path) -> None:
    """docs/how-to/switching.md says so, and to override both."""
    with _noting(SqliteSaver)(tmp_path / "checkpoints.db") as saver:
        assert asyncio.run(_asked(saver)) == []
        saver.put(THREAD, empty_checkpoint(), {}, {})
        assert saver.asked == ["put"]
