"""Going back, changing the past, and going on from there."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from langgraph_parity.apis import Api, Graph
from langgraph_parity.records import one, record
from langgraph_parity.scenarios.deltas import joined
from langgraph_parity.states import Order, OrderLine, Position


class Trail(TypedDict):
    trail: Annotated[list[str], operator.add]
    last: str


def walk(saver: BaseCheckpointSaver[Any], names: str = "abc") -> Graph:
    """A graph that visits nodes in a row."""
    builder = StateGraph(Trail)
    for before, name in zip([START, *names], names, strict=False):
        builder.add_node(name, lambda _, name=name: {"trail": [name], "last": name}).add_edge(before, name)
    return builder.compile(checkpointer=saver)


async def fork_from_the_past(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A changed past leads to another present; the old one stays to be seen."""
    graph = walk(saver)
    thread: Any = {"configurable": {"thread_id": "forked"}}
    await api.invoke(graph, {"trail": [], "last": ""}, thread)
    first = await api.history(graph, thread)
    at_b = next(snapshot for snapshot in first if snapshot.next == ("b",))
    for change in ("left", "right"):
        fork = await api.update(graph, at_b.config, {"trail": [change]})
        await api.invoke(graph, None, fork)
    again = await api.state(graph, first[0].config)
    return one(again), record(await api.history(graph, thread))


async def replay(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A run from an old checkpoint runs the later steps again."""
    graph = walk(saver, "abcd")
    thread: Any = {"configurable": {"thread_id": "replayed"}}
    await api.invoke(graph, {"trail": ["turn 1"], "last": ""}, thread)
    await api.invoke(graph, {"trail": ["turn 2"], "last": ""}, thread)
    history = await api.history(graph, thread)
    old = [snapshot for snapshot in history if snapshot.next == ("c",)][-1]
    result = await api.invoke(graph, None, old.config)
    before: Any = history[2].config
    return (
        result,
        record(await api.history(graph, thread)),
        record(await api.history(graph, thread, before=before, limit=3)),
    )


class Items(Trail):
    items: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=3)]


def asking(saver: BaseCheckpointSaver[Any], ran: list[str]) -> Graph:
    """A graph in which one of two parallel nodes asks a question, and all add to a delta channel."""

    def node(name: str) -> Any:
        def run(_: Items) -> dict[str, Any]:
            ran.append(name)
            said = interrupt("go on?") if name == "ask" else name
            return {"trail": [said], "items": [f"{name}: {said}"]}

        return run

    builder: Any = StateGraph(Items)
    for name in ("plan", "ask", "beside", "end"):
        builder.add_node(name, node(name))
    builder.add_edge(START, "plan").add_edge("plan", "ask").add_edge("plan", "beside")
    graph: Graph = builder.add_edge(["ask", "beside"], "end").compile(checkpointer=saver)
    return graph


def runs_that_name(value: Any, name: str) -> Any:
    """Runs and updates of a thread that waits, each from another of its checkpoints, the newest first."""

    async def run(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
        ran: list[str] = []
        graph = asking(saver, ran)
        thread: Any = {"configurable": {"thread_id": name}}
        await api.invoke(graph, {"trail": ["given"], "items": ["given"], "last": ""}, thread)
        found: list[Any] = []
        for snapshot in await api.history(graph, thread):
            ran.clear()
            made = await api.invoke(graph, value, snapshot.config)
            questions = [each.value for each in made.pop("__interrupt__", ())]
            found.append((made, questions, sorted(ran)))
            await api.update(graph, snapshot.config, {"items": ["by hand"]}, as_node="plan")
        return found, record(await api.history(graph, thread))

    run.__name__ = f"runs_that_name_{name}"
    return run


async def updates_as_nodes(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """The state can be set as if a node had done it, on an empty thread too, and be finished by hand."""
    graph = walk(saver)
    thread: Any = {"configurable": {"thread_id": "updated"}}
    await api.update(graph, thread, {"trail": ["begun"], "last": "x"}, as_node="a")
    begun = one(await api.state(graph, thread))
    await api.update(graph, thread, {"trail": ["skipped"]}, as_node="b")
    await api.update(graph, thread, None, as_node=END)
    return begun, record(await api.history(graph, thread))


async def pydantic_state(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A model as state, with models inside."""

    def price(order: Order) -> dict[str, Any]:
        return {
            "lines": [*order.lines, OrderLine(name="fee", position=Position(1, 2))],
            "note": f"{len(order.lines)}",
        }

    builder: Any = StateGraph(Order)
    graph = builder.add_node("price", price).add_edge(START, "price").compile(checkpointer=saver)
    return await _twice(api, graph, {"lines": [OrderLine(name="tea", position=Position(0, 1))], "note": None})


async def dataclass_state(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A dataclass as state."""

    def step(position: Position) -> dict[str, Any]:
        return {"row": position.row + 1, "column": position.column}

    builder: Any = StateGraph(Position)
    graph = builder.add_node("step", step).add_edge(START, "step").compile(checkpointer=saver)
    return await _twice(api, graph, {"row": 5, "column": 7})


async def _twice(api: Api, graph: Graph, value: Any) -> Any:
    thread: Any = {"configurable": {"thread_id": 17}}
    results = [await api.invoke(graph, value, thread) for _ in range(2)]
    history = record(await api.history(graph, thread))
    plain = [each.model_dump() if isinstance(each, BaseModel) else each for each in results]
    return plain, len(history), history


SCENARIOS = [
    fork_from_the_past,
    replay,
    runs_that_name(None, "a_checkpoint_again"),
    runs_that_name(Command(resume="yes"), "a_checkpoint_to_answer"),
    runs_that_name({"trail": ["more"], "items": ["more"]}, "a_checkpoint_for_more"),
    updates_as_nodes,
    pydantic_state,
    dataclass_state,
]
