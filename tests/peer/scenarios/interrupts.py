"""Runs that stop to ask, once or several times, and get their answers."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from peer.faces import Face
from peer.records import one, record


class Answers(TypedDict):
    given: Annotated[list[str], operator.add]


async def one_question(face: Face, saver: BaseCheckpointSaver[Any]) -> Any:
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
        await face.invoke(graph, given, thread)
        told.append(one(await face.state(graph, thread)))
    return told, record(await face.history(graph, thread))


async def several_questions_in_one_step(face: Face, saver: BaseCheckpointSaver[Any]) -> Any:
    """Parallel nodes ask; one is answered first, the others later, each by its own id."""

    def asks(name: str) -> Any:
        return lambda _: {"given": [f"{name}: {interrupt(name)}"]}

    builder = StateGraph(Answers)
    for name in ("red", "green", "blue"):
        builder.add_node(name, asks(name)).add_edge(START, name)
    graph = builder.compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "questions"}}
    told = [await face.invoke(graph, {"given": []}, thread)]
    open_ones = (await face.state(graph, thread)).interrupts
    first = {each.id: f"{each.value}!" for each in open_ones if each.value == "green"}
    await face.invoke(graph, Command(resume=first), thread)
    halfway = await face.state(graph, thread)
    rest = {each.id: f"{each.value}?" for each in halfway.interrupts}
    await face.invoke(graph, Command(resume=rest), thread)
    asked = [sorted(each.value for each in told[0]["__interrupt__"])]
    return asked, one(halfway), record(await face.history(graph, thread))


async def stop_before_and_after(face: Face, saver: BaseCheckpointSaver[Any]) -> Any:
    """Static stops, and a change of the state by hand in between."""
    builder = StateGraph(Answers)
    for before, name in [(START, "one"), ("one", "two"), ("two", "three")]:
        builder.add_node(name, lambda _, name=name: {"given": [name]}).add_edge(before, name)
    graph = builder.compile(checkpointer=saver, interrupt_before=["two"], interrupt_after=["two"])
    thread: Any = {"configurable": {"thread_id": "stops"}}
    await face.invoke(graph, {"given": []}, thread)
    await face.update(graph, thread, {"given": ["by hand"]})
    await face.invoke(graph, None, thread)
    stopped = one(await face.state(graph, thread))
    await face.invoke(graph, None, thread)
    return stopped, record(await face.history(graph, thread))


async def copy_of_the_past(face: Face, saver: BaseCheckpointSaver[Any]) -> Any:
    """A copy of a checkpoint stands beside it, and asks again: what was done before it is not done again."""
    builder = StateGraph(Answers).add_node("prepare", lambda _: {"given": ["prepared"]})
    builder.add_node("ask", lambda _: {"given": [interrupt("sure?")]}).add_edge(START, "prepare").add_edge(
        "prepare", "ask"
    )
    graph = builder.compile(checkpointer=saver)
    thread: Any = {"configurable": {"thread_id": "copied"}}
    await face.invoke(graph, {"given": []}, thread)
    await face.invoke(graph, Command(resume="yes"), thread)
    waited = next(snapshot for snapshot in await face.history(graph, thread) if snapshot.next == ("ask",))
    copy = await face.update(graph, waited.config, None, as_node="__copy__")
    await face.invoke(graph, None, copy)
    await face.invoke(graph, Command(resume="no"), copy)
    return record(await face.history(graph, thread))


SCENARIOS = [copy_of_the_past, one_question, several_questions_in_one_step, stop_before_and_after]
