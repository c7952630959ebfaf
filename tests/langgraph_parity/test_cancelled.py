"""A stream that is cancelled leaves whole checkpoints behind, and the run goes on from the last of them."""

import asyncio
import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from threadmark_langgraph import Checkpointer


class Trail(TypedDict):
    trail: Annotated[list[int], operator.add]


@pytest.mark.parametrize("turns", range(8))
def test_cancelled_stream_goes_on(saver: Checkpointer, turns: int) -> None:
    calls: Counter[int] = Counter()

    async def step(state: Trail) -> dict[str, Any]:
        calls[len(state["trail"])] += 1
        await asyncio.sleep(0)
        return {"trail": [len(state["trail"])]}

    builder: Any = StateGraph(Trail).add_node("step", step).add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if len(state["trail"]) < 6 else "__end__")
    graph = builder.compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "cancelled"}}

    async def stream(value: Any, seen: asyncio.Event) -> None:
        async for _ in graph.astream(value, thread, stream_mode="updates", durability="sync"):
            seen.set()

    async def run() -> None:
        seen = asyncio.Event()
        running = asyncio.create_task(stream({"trail": []}, seen))
        await seen.wait()
        for _ in range(turns * 5):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await stream(None, seen)

    asyncio.run(run())
    final = graph.get_state(thread)
    assert final.values["trail"] == list(range(6))
    assert final.next == ()
    for snapshot in graph.get_state_history(thread):
        trail = snapshot.values.get("trail", [])
        assert trail == list(range(len(trail)))
    assert max(calls.values()) <= 2
