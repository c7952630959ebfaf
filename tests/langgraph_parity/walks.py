"""Random use of a graph with delta channels, written so that every release of LangGraph can be walked with it."""

import operator
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypedDict

from langgraph.channels import DeltaChannel, EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

DELTAS = ("items", "log")
"""The delta channels of the graph."""

_FREQUENCIES = (1, 2, 5, 1000)
_REFUSALS = (EmptyInputError, InvalidUpdateError)
"""The engine's errors for steps that make no sense."""


def graph_of(walk: int, saver: BaseCheckpointSaver[Any]) -> Any:
    """The graph of a walk: two delta channels, an ordinary one and one that is emptied by the next step."""
    frequency = _FREQUENCIES[walk % len(_FREQUENCIES)]

    class State(TypedDict, total=False):
        items: Annotated[list[str], DeltaChannel(_joined, snapshot_frequency=frequency)]
        log: Annotated[list[str], DeltaChannel(_joined)]
        whole: Annotated[list[str], operator.add]
        hint: Annotated[str, EphemeralValue]
        turn: int

    def plan(values: Any) -> Any:
        return {"items": [f"plan {len(values.get('items') or ())}"], "whole": ["plan"], "hint": "for the next step"}

    def act(values: Any) -> Any:
        answer = interrupt("go on?") if values.get("turn", 0) % 3 == 2 else "no question"
        return {"items": [f"act {len(values.get('items') or ())}"], "log": [answer]}

    builder: Any = StateGraph(State)
    builder.add_node("plan", plan).add_node("act", act).add_node("note", lambda _: {"whole": ["note"]})
    builder.add_edge(START, "plan").add_edge("plan", "act").add_edge("plan", "note")
    builder.add_edge("act", END).add_edge("note", END)
    return builder.compile(checkpointer=saver)


def walk(number: int, saver: BaseCheckpointSaver[Any], thread_id: str, *, steps: int = 12) -> None:
    """Take some random steps on a thread, each a separate run."""
    chance = random.Random(number)
    graph = graph_of(number, saver)
    for step in range(steps):
        take_step(chance, graph, thread_id, step)


def take_step(chance: random.Random, graph: Any, thread_id: str, step: int) -> None:
    """One step: a turn, an answer, a replay, a change by hand, from the newest checkpoint or from an older one."""
    thread: Any = {"configurable": {"thread_id": thread_id}}
    known = list(graph.get_state_history(thread))
    location = chance.choice(known).config if known and chance.random() < 0.4 else thread
    config = {**location, "metadata": {"run_id": f"run {step}"}}
    with suppress(*_REFUSALS):
        chance.choice(_STEPS)(graph, config, step, chance)


def _turn(graph: Any, config: Any, step: int, chance: random.Random) -> None:
    graph.invoke({"items": [f"turn {step}"], "turn": step}, config, durability=_durability(chance))


def _answer(graph: Any, config: Any, step: int, chance: random.Random) -> None:
    graph.invoke(Command(resume=f"answer {step}"), config, durability=_durability(chance))


def _go_on(graph: Any, config: Any, step: int, chance: random.Random) -> None:  # noqa: ARG001 - as the others
    graph.invoke(None, config, durability=_durability(chance))


def _update(graph: Any, config: Any, step: int, chance: random.Random) -> None:
    values = {"items": [f"update {step}"], "log": [f"update {step}"]}
    graph.update_state(config, values, as_node=chance.choice(("plan", "act", "note")))


def _update_as_input(graph: Any, config: Any, step: int, chance: random.Random) -> None:  # noqa: ARG001 - as the others
    graph.update_state(config, {"items": [f"input {step}"]}, as_node="__input__")


def _finish(graph: Any, config: Any, step: int, chance: random.Random) -> None:  # noqa: ARG001 - as the others
    graph.update_state(config, None, as_node=END)


def _copy(graph: Any, config: Any, step: int, chance: random.Random) -> None:  # noqa: ARG001 - as the others
    graph.update_state(config, None, as_node="__copy__")


_STEPS: Sequence[Callable[[Any, Any, int, random.Random], None]] = (
    _turn,
    _turn,
    _answer,
    _go_on,
    _update,
    _update_as_input,
    _finish,
    _copy,
)


def _durability(chance: random.Random) -> str:
    return chance.choice(("sync", "exit"))


def _joined(state: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*(state or []), *(item for write in writes for item in write)]
