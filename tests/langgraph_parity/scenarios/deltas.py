"""Channels stored as their changes: forks, snapshots, updates by hand, and a thread that becomes one."""

import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph

from langgraph_parity.apis import Api, Graph
from langgraph_parity.records import record


def joined(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    """A reducer for whole batches, in which order shows."""
    return [*(state or []), *(item for write in writes for item in write)]


class Frequent(TypedDict):
    items: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=3)]
    turn: int


class Rare(TypedDict):
    items: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=1000)]
    turn: int


class Whole(TypedDict):
    items: Annotated[list[str], operator.add]
    turn: int


def delta_graph(state: type, saver: BaseCheckpointSaver[Any]) -> Graph:
    """Two parallel nodes that both add to the channel, and one behind them."""
    builder: Any = StateGraph(state)
    for name in ("left", "right"):
        builder.add_node(name, lambda values, name=name: {"items": [f"{name} {values['turn']}"]})
        builder.add_edge(START, name).add_edge(name, "last")
    builder.add_node("last", lambda values: {"items": [f"last sees {len(values['items'])}"]})
    graph: Graph = builder.compile(checkpointer=saver)
    return graph


async def turns(api: Api, graph: Graph, thread: Any, numbers: Sequence[int]) -> None:
    """Run some turns."""
    for turn in numbers:
        await api.invoke(graph, {"items": [f"turn {turn}"], "turn": turn}, thread)


def delta_run(state: type, name: str) -> Any:
    """Several turns, a fork from the middle, a change by hand."""

    async def run(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
        graph = delta_graph(state, saver)
        thread: Any = {"configurable": {"thread_id": name}}
        await turns(api, graph, thread, range(4))
        history = await api.history(graph, thread)
        middle = history[len(history) // 2]
        fork = await api.update(graph, middle.config, {"items": ["by hand"]}, as_node="last")
        await turns(api, graph, fork, [7])
        await turns(api, graph, thread, [8])
        return record(await api.history(graph, thread))

    run.__name__ = f"delta_channel_{name}"
    return run


async def thread_that_becomes_delta(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A thread begun with an ordinary channel goes on with a delta channel, from its whole value."""
    thread: Any = {"configurable": {"thread_id": "migrated"}}
    await turns(api, delta_graph(Whole, saver), thread, range(2))
    graph = delta_graph(Rare, saver)
    await turns(api, graph, thread, range(2, 5))
    return record(await api.history(graph, thread))


SCENARIOS = [delta_run(Frequent, "frequent"), delta_run(Rare, "rare"), thread_that_becomes_delta]
