"""Runs that stop to ask, once or several times, and get their answers."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_parity.apis import Api
from langgraph_parity.records import one, record


class Answers(TypedDict):
    given: Annotated[list[str], operator.add]


async def one_question(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A node asks twice; each answer is kept when the node starts again."""

    def ask(state: Answers) -> Command[str]:  # noqa: ARG001 - the engine's signature
        name = interrupt({"question": "name?"})
        age = interrupt({"question": "age?"})
        return Command(update={"given": [f"{name} is {age}"]}, goto="thank")

    builder = StateGraph(Answers).add_node("ask", ask, destinations=("thank",)).add_edge(START, "ask")
    graph = builder.add_node("thank", lambda _: {"given": ["thanks"]}).compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "question"}}
    told = []
    steps: tuple[Any, ...] = ({"given": []}, Command(resume="Ada"), Command(resume=36))
    for given in steps:
        await api.invoke(graph, given, thread)
        told.append(one(await api.state(graph, thread)))
    return told, record(await api.history(graph, thread))


async def several_questions_in_one_step(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """Parallel nodes ask; one is answered first, the others later, each by its own id."""

    def asks(name: str) -> Any:
        return lambda _: {"given": [f"{name}: {interrupt(name)}"]}

    builder = StateGraph(Answers)
    for name in ("red", "green", "blue"):
        builder.add_node(name, asks(name)).add_edge(START, name)
    graph = builder.compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "questions"}}
    told = [await api.invoke(graph, {"given": []}, thread)]
    open_ones = (await api.state(graph, thread)).interrupts
    first = {each.id: f"{each.value}!" for each in open_ones if each.value == "green"}
    await api.invoke(graph, Command(resume=first), thread)
    halfway = await api.state(graph, thread)
    rest = {each.id: f"{each.value}?" for each in halfway.interrupts}
    await api.invoke(graph, Command(resume=rest), thread)
    asked = [sorted(each.value for each in told[0]["__interrupt__"])]
    return asked, one(halfway), record(await api.history(graph, thread))


async def stop_before_and_after(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """Static stops, and a change of the state by hand in between."""
    builder = StateGraph(Answers)
    for before, name in [(START, "one"), ("one", "two"), ("two", "three")]:
        builder.add_node(name, lambda _, name=name: {"given": [name]}).add_edge(before, name)
    graph = builder.compile(checkpointer=saver, interrupt_before=["two"], interrupt_after=["two"])
    thread: Any = {"configurable": {"thread_id": "stops"}}
    await api.invoke(graph, {"given": []}, thread)
    await api.update(graph, thread, {"given": ["by hand"]})
    await api.invoke(graph, None, thread)
    stopped = one(await api.state(graph, thread))
    await api.invoke(graph, None, thread)
    return stopped, record(await api.history(graph, thread))


async def copy_of_the_past(api: Api, saver: BaseCheckpointSaver[Any]) -> Any:
    """A copy of a checkpoint is its sibling, and asks again: earlier tasks are not run again."""
    builder = StateGraph(Answers).add_node("prepare", lambda _: {"given": ["prepared"]})
    builder.add_node("ask", lambda _: {"given": [interrupt("sure?")]}).add_edge(START, "prepare").add_edge(
        "prepare", "ask"
    )
    graph = builder.compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "copied"}}
    await api.invoke(graph, {"given": []}, thread)
    await api.invoke(graph, Command(resume="yes"), thread)
    waited = next(snapshot for snapshot in await api.history(graph, thread) if snapshot.next == ("ask",))
    copy = await api.update(graph, waited.config, None, as_node="__copy__")
    await api.invoke(graph, None, copy)
    await api.invoke(graph, Command(resume="no"), copy)
    return record(await api.history(graph, thread))


SCENARIOS = [copy_of_the_past, one_question, several_questions_in_one_step, stop_before_and_after]
