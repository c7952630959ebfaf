"""Checkpoints that earlier releases of LangGraph wrote are read, and their runs go on."""

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.types import TASKS
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from threadmark import new_id
from threadmark_langgraph import Checkpointer, InMemorySaver, SqliteSaver

THREAD: Any = {"configurable": {"thread_id": "old", "checkpoint_ns": ""}}


class Total(TypedDict):
    total: Annotated[list[str], operator.add]


def graph(saver: Checkpointer) -> Any:
    """A plan that sends packets to a node."""
    builder: Any = StateGraph(Total).add_node("plan", lambda _: {"total": ["planned"]})
    builder.add_node("item", lambda packet: {"total": [packet["name"]]}).add_edge(START, "plan")
    builder.add_conditional_edges("plan", lambda _: [Send("item", {"name": "never"})], ["item"])
    return builder.compile(checkpointer=saver)


def old_checkpoint(form: int, versions: dict[str, Any], values: dict[str, Any]) -> Checkpoint:
    """A checkpoint as a release that wrote this format made it."""
    return {
        **empty_checkpoint(),
        "v": form,
        "id": new_id(),
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {"__input__": {}, "__start__": {"__start__": 1}, "plan": {"branch:to:plan": 2}},
    }


@pytest.mark.parametrize("form", [1, 2, 3])
@pytest.mark.parametrize("packed", [True, False], ids=["in the checkpoint", "with the parent's writes"])
@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "asyncio"])
@pytest.mark.parametrize("kept_in", ["memory", "file"])
@pytest.mark.parametrize("removed", ["nothing", "all but the newest", "the run before"])
def test_packets_of_an_old_checkpoint_are_still_delivered(
    form: int, *, packed: bool, blocking: bool, kept_in: str, removed: str, tmp_path: Path
) -> None:
    sends = [Send("item", {"name": name}) for name in ("first", "second")]
    versions: Any = {"__start__": 2, "branch:to:plan": 3}
    with InMemorySaver() if kept_in == "memory" else SqliteSaver(tmp_path / "old.db") as saver:
        before = old_checkpoint(form, versions, {"total": []})
        parent = saver.put(THREAD, before, {"source": "loop", "step": 0, "parents": {}, "run_id": "before"}, versions)
        for number, send in enumerate(sends):
            if not packed:
                saver.put_writes(parent, [(TASKS, send)], f"task {number}", f"~__pregel_pull, {number}")
        after: Any = old_checkpoint(form, {**versions, "total": 3}, {"total": ["planned"]})
        after["pending_sends"] = sends if packed else []
        saver.put(parent, after, {"source": "loop", "step": 1, "parents": {}}, {"total": 3})
        if removed == "all but the newest":
            saver.prune(["old"])
        elif removed == "the run before":
            saver.delete_for_runs(["before"])
        compiled = graph(saver)
        state = compiled.get_state(THREAD) if blocking else asyncio.run(compiled.aget_state(THREAD))
        assert [task.name for task in state.tasks] == ["item", "item"]
        end = compiled.invoke(None, THREAD) if blocking else asyncio.run(compiled.ainvoke(None, THREAD))
        assert end["total"] == ["planned", "first", "second"]
        listed = [found for found in saver.list(THREAD) if found.checkpoint["id"] == after["id"]]
        if not packed:
            assert listed[0].checkpoint["channel_values"][TASKS] == sends
