"""Runs that fail, fan out or are cut short, and go on from there."""

import operator
import threading
from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import ValidationError

from langgraph_parity.apis import Api
from langgraph_parity.records import record
from langgraph_parity.states import Order
from patience import wait_until


class Work(TypedDict):
    done: Annotated[list[str], operator.add]


async def one_of_three_fails(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """The others' work is kept and not repeated."""
    calls: Counter[str] = Counter()
    thread: Any = {"configurable": {"thread_id": "failing"}}
    others_are_done = threading.Barrier(3)

    def have_stored() -> bool:
        """Whether the engine has taken in the others' results. A failure cancels the rest."""
        found = saver.get_tuple(thread)
        return found is not None and [channel for _, channel, _ in found.pending_writes or ()].count("done") == 2

    def does(name: str) -> Any:
        def node(state: Work) -> dict[str, Any]:  # noqa: ARG001 - the engine's signature
            calls[name] += 1
            if name in ("a", "b", "c") and calls[name] == 1:
                others_are_done.wait(timeout=30)
            if name == "b" and calls[name] == 1:
                wait_until(have_stored, "the others' work is not stored")
                raise RuntimeError("b is not well")
            return {"done": [name]}

        return node

    builder = StateGraph(Work)
    for name in "abc":
        builder.add_node(name, does(name)).add_edge(START, name).add_edge(name, "join")
    graph = builder.add_node("join", does("join")).add_edge("join", END).compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="not well"):
        await api.invoke(graph, {"done": ["start"]}, thread)
    stopped = record(await api.history(graph, thread))
    await api.invoke(graph, None, thread)
    return stopped, record(await api.history(graph, thread)), calls


async def answer_that_is_not_valid(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """An error that cannot be stored, and one with such a cause, are in the snapshots; the run goes on after each."""
    answers = iter(['{"lines": 1}', "no JSON", '{"lines": []}'])

    def parse(state: Work) -> dict[str, Any]:  # noqa: ARG001 - the engine's signature
        answer = next(answers)
        try:
            return {"done": [repr(Order.model_validate_json(answer))]}
        except ValidationError as error:
            if answer == "no JSON":
                raise RuntimeError("the model answered with something else") from error
            raise

    builder = StateGraph(Work)
    builder.add_node("ask", lambda _: {"done": ["asked"]}).add_node("parse", parse)
    graph = builder.add_edge(START, "ask").add_edge("ask", "parse").compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "answers"}}
    stopped = []
    for value, raised in ({"done": []}, ValidationError), (None, RuntimeError):
        with pytest.raises(raised):
            await api.invoke(graph, value, thread)
        stopped.append(record(await api.history(graph, thread)))
        assert stopped[-1][0]["tasks"][0]["error"].startswith(
            raised.__name__ if value is None else "1 validation error"
        )
    result = await api.invoke(graph, None, thread)
    return stopped, result, record(await api.history(graph, thread))


async def fan_out(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """As many packets as there are items, applied in their order."""

    def spread(state: Work) -> list[Send]:
        return [Send("item", {"number": number, "all": state["done"]}) for number in range(12)]

    def item(packet: Any) -> dict[str, Any]:
        return {"done": [f"item {packet['number']} of {len(packet['all'])}"]}

    builder: Any = StateGraph(Work)
    builder.add_node("plan", lambda _: {"done": ["planned"]}).add_node("item", item)
    builder.add_edge(START, "plan").add_conditional_edges("plan", spread, ["item"])
    graph = builder.compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "fan"}}
    result = await api.invoke(graph, {"done": []}, thread)
    return result, record(await api.history(graph, thread))


async def workflow_with_tasks(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """The functional interface: a task that finished before the failure is not run again."""
    calls: Counter[str] = Counter()

    @task
    def square(number: int) -> int:
        calls[f"square {number}"] += 1
        return number * number

    @task
    def fragile(total: int) -> int:
        calls["fragile"] += 1
        if calls["fragile"] == 1:
            raise ValueError("not yet")
        return total

    @entrypoint(checkpointer=saver)
    def workflow(numbers: list[int], *, previous: int | None = None) -> entrypoint.final[int, int]:
        squares = [square(number) for number in numbers]
        total = fragile(sum(future.result() for future in squares)).result()
        return entrypoint.final(value=total + (previous or 0), save=total)

    thread: Any = {"configurable": {"thread_id": "workflow"}}
    with pytest.raises(ValueError, match="not yet"):
        await api.invoke(workflow, [1, 2, 3], thread)
    first = await api.invoke(workflow, None, thread)
    second = await api.invoke(workflow, [4], thread)
    return first, second, calls, record(await api.history(workflow, thread))


def durable(durability: str) -> Any:
    """A run of several steps whose checkpoints are written at once, in the background, or at the end."""

    async def run(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
        builder = StateGraph(Work)
        names = ["first", "second", "third", "fourth"]
        for before, name in zip([START, *names], names, strict=False):
            builder.add_node(name, lambda _, name=name: {"done": [name]}).add_edge(before, name)
        graph = builder.compile(checkpointer=saver)
        thread: Any = {"configurable": {"thread_id": durability}}
        for turn in range(2):
            await api.invoke(graph, {"done": [f"turn {turn}"]}, thread, durability=durability)
        return record(await api.history(graph, thread))

    run.__name__ = f"durability_{durability}"
    return run


SCENARIOS = [
    one_of_three_fails,
    answer_that_is_not_valid,
    fan_out,
    workflow_with_tasks,
    durable("sync"),
    durable("async"),
    durable("exit"),
]
