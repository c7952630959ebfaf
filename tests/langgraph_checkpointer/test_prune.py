"""Under LangGraph's names, `prune` takes a saver's arguments, and returns a report."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from threadmark.types import PruneReport
from threadmark_langgraph import Checkpointer, InMemorySaver, SqliteSaver

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


def _with_five(kind: type[Checkpointer]) -> Checkpointer:
    saver = kind() if kind is InMemorySaver else kind(":memory:")  # type: ignore[arg-type]  # each its own
    config = THREAD
    for step in range(5):
        config = saver.put(config, empty_checkpoint(), {"step": step}, {})
    return saver


@pytest.mark.parametrize("kind", [InMemorySaver, SqliteSaver])
def test_prune_keeps_the_newest_few(kind: type[Checkpointer]) -> None:
    with _with_five(kind) as saver:
        would = saver.prune(["1"], keep_last=2, dry_run=True)
        assert isinstance(would, PruneReport)
        assert would.checkpoints == 3
        assert len(list(saver.list(THREAD))) == 5
        assert saver.prune(["1"], keep_last=2) == would
        assert [found.metadata["step"] for found in saver.list(THREAD)] == [4, 3]


@pytest.mark.parametrize("kind", [InMemorySaver, SqliteSaver])
def test_aprune_keeps_what_is_young(kind: type[Checkpointer]) -> None:
    with _with_five(kind) as saver:
        assert asyncio.run(saver.aprune(["1"], older_than=timedelta(days=1))).checkpoints == 0
        assert asyncio.run(saver.aprune(["1"])).checkpoints == 4


def test_a_subclass_that_prunes_with_langgraphs_arguments_is_asked_by_both_apis() -> None:
    class Noting(InMemorySaver):
        def prune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> PruneReport:  # type: ignore[override]  # LangGraph's
            return super().prune(thread_ids, strategy=strategy)._replace(size_bytes=7)

    assert asyncio.run(Noting().aprune(["1"])).size_bytes == 7
