"""Cases that LangGraph's in-memory saver lacks: threads that are pruned, copied, and stripped of a run."""

import asyncio
from typing import Any

import pytest
from langgraph.types import Command

from langgraph_parity.apis import Api
from langgraph_parity.records import one, record
from langgraph_parity.scenarios.deltas import Frequent, Rare, delta_graph, turns
from langgraph_parity.scenarios.subgraphs import nested
from threadmark_langgraph import Checkpointer

THREAD: Any = {"configurable": {"thread_id": "thread"}}
COPY: Any = {"configurable": {"thread_id": "copy"}}


@pytest.mark.parametrize("state", [Frequent, Rare])
def test_pruned_delta_thread_reads_and_goes_on_as_before(api: Api, saver: Checkpointer, state: type) -> None:
    async def run() -> None:
        graph = delta_graph(state, saver)
        await turns(api, graph, THREAD, range(4))
        saver.copy_thread("thread", "copy")
        before = one(await api.state(graph, THREAD))
        saver.prune(["thread"])
        assert one(await api.state(graph, THREAD)) == before
        await turns(api, graph, THREAD, [4])
        await turns(api, graph, COPY, [4])
        after = one(await api.state(graph, THREAD))
        assert after["values"] == one(await api.state(graph, COPY))["values"]
        assert len(after["values"]["items"]) == 5 * 4

    asyncio.run(run())


def test_copy_has_the_same_history_and_outlives_its_source(api: Api, saver: Checkpointer) -> None:
    async def run() -> None:
        graph = delta_graph(Frequent, saver)
        await turns(api, graph, THREAD, range(3))
        original = record(await api.history(graph, THREAD))
        await saver.acopy_thread("thread", "copy")
        await saver.adelete_thread("thread")
        assert await api.history(graph, THREAD) == []
        assert record(await api.history(graph, COPY)) == original
        await turns(api, graph, COPY, [3])
        assert len((await api.state(graph, COPY)).values["items"]) == 4 * 4

    asyncio.run(run())


def test_open_question_survives_pruning(api: Api, saver: Checkpointer) -> None:
    async def run() -> None:
        graph = nested(saver, memory=None)
        await api.invoke(graph, {"steps": ["first"]}, THREAD)
        waiting = one(await api.state(graph, THREAD, subgraphs=True))
        await saver.aprune(["thread"])
        assert one(await api.state(graph, THREAD, subgraphs=True)) == waiting
        result = await api.invoke(graph, Command(resume="yes"), THREAD)
        assert result["steps"][-2:] == ["3 steps, then yes", "shut"]

    asyncio.run(run())


def test_runs_can_be_removed_one_by_one(api: Api, saver: Checkpointer) -> None:
    async def run() -> None:
        graph = delta_graph(Frequent, saver)
        for turn in range(3):
            config: Any = {**THREAD, "metadata": {"run_id": f"run {turn}"}}
            await api.invoke(graph, {"items": [str(turn)], "turn": turn}, config)
        kept = one(await api.state(graph, THREAD))
        await saver.adelete_for_runs(["run 0"])
        runs = [snapshot.metadata for snapshot in await api.history(graph, THREAD)]
        assert one(await api.state(graph, THREAD)) == kept
        assert {metadata["run_id"] for metadata in runs if metadata} >= {"run 1", "run 2"}

    asyncio.run(run())
