"""Graphs inside graphs: namespaces, their own memory, and going back inside them."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_parity.apis import Api, Graph
from langgraph_parity.records import one, record


class Steps(TypedDict):
    steps: Annotated[list[str], operator.add]


def nested(saver: BaseCheckpointSaver[Any], *, memory: bool | None) -> Graph:
    """A graph with a graph with a graph in it; the innermost asks a question."""

    def ask(state: Steps) -> dict[str, Any]:
        return {"steps": [f"{len(state['steps'])} steps, then {interrupt('go on?')}"]}

    innermost = StateGraph(Steps).add_node("ask", ask).add_edge(START, "ask").compile()
    middle = StateGraph(Steps).add_node("prepare", lambda _: {"steps": ["prepared"]}).add_node("inner", innermost)
    middle.add_edge(START, "prepare").add_edge("prepare", "inner")
    outer = StateGraph(Steps).add_node("open", lambda _: {"steps": ["opened"]})
    outer.add_node("middle", middle.compile(checkpointer=memory))
    outer.add_node("shut", lambda _: {"steps": ["shut"]})
    outer.add_edge(START, "open").add_edge("open", "middle").add_edge("middle", "shut")
    return outer.compile(checkpointer=saver)


async def question_two_levels_down(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """The state of every level can be seen while the innermost waits."""
    graph = nested(saver, memory=None)
    thread: Any = {"configurable": {"thread_id": "nested"}}
    await api.invoke(graph, {"steps": []}, thread)
    waiting = one(await api.state(graph, thread, subgraphs=True))
    await api.invoke(graph, Command(resume="yes"), thread)
    return waiting, record(await api.history(graph, thread))


async def going_back_inside(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """From a checkpoint of the innermost graph, the run is repeated with another answer."""
    graph = nested(saver, memory=None)
    thread: Any = {"configurable": {"thread_id": "travel"}}
    await api.invoke(graph, {"steps": []}, thread)
    await api.invoke(graph, Command(resume="yes"), thread)
    waited = next(s for s in await api.history(graph, thread) if s.next == ("middle",))
    inner = (await api.state(graph, waited.config, subgraphs=True)).tasks[0]
    replayed = await api.invoke(graph, None, waited.config)
    again = await api.invoke(graph, Command(resume="no"), thread)
    inner_record = one(inner.state) if inner.state and not isinstance(inner.state, dict) else None
    return inner_record, sorted(replayed), again, record(await api.history(graph, thread))


async def subgraph_that_remembers(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A subgraph with its own checkpointer keeps its state from one turn to the next."""

    def count(state: Steps) -> dict[str, Any]:
        return {"steps": [f"seen {len(state['steps'])}"]}

    inner = StateGraph(Steps).add_node("count", count).add_edge(START, "count").compile(checkpointer=True)

    async def calls(state: Steps) -> dict[str, Any]:
        result = await inner.ainvoke({"steps": [state["steps"][-1]]})
        return {"steps": [f"inner has {len(result['steps'])}"]}

    def calls_blocking(state: Steps) -> dict[str, Any]:
        result = inner.invoke({"steps": [state["steps"][-1]]})
        return {"steps": [f"inner has {len(result['steps'])}"]}

    node: Any = calls if api.name == "asyncio" else calls_blocking
    graph = StateGraph(Steps).add_node("calls", node).add_edge(START, "calls").compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "remembering"}}
    for turn in range(3):
        await api.invoke(graph, {"steps": [f"turn {turn}"]}, thread)
    return record(await api.history(graph, thread))


async def subgraph_with_memory_and_question(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """Two turns, each with a question inside a subgraph that remembers."""
    graph = nested(saver, memory=True)
    thread: Any = {"configurable": {"thread_id": "both"}}
    for turn in range(2):
        await api.invoke(graph, {"steps": [f"turn {turn}"]}, thread)
        await api.invoke(graph, Command(resume=f"answer {turn}"), thread)
    return record(await api.history(graph, thread))


SCENARIOS = [
    question_two_levels_down,
    going_back_inside,
    subgraph_that_remembers,
    subgraph_with_memory_and_question,
]
