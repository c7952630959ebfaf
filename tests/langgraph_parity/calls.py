"""A graph with every kind of subgraph, and random use of it."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, StateSnapshot, interrupt

THREAD: Any = {"configurable": {"thread_id": "thread"}}


def _grown(old: list[str], new: list[str]) -> list[str]:
    """The result of a subgraph starts with its input."""
    return new if new[: len(old)] == old else old + new


class Steps(TypedDict, total=False):
    steps: Annotated[list[str], _grown]
    turn: Annotated[int, lambda _, new: new]


def graph_of_calls(saver: BaseCheckpointSaver[Any]) -> Any:
    """A graph that calls, one after the other, subgraphs of all kinds; each asks a question in some turns.

    `middle` calls one inside of it, again and again; `twice` calls one two times; `remember` calls one that has a
    memory and another one inside of it; `fan` is called several times at once.
    """

    def ask(state: Any) -> Any:
        answer = interrupt("go on?") if state.get("turn", 0) % 2 else "no question"
        return {"steps": [f"{len(state['steps'])} steps, {answer}"]}

    def said(text: str) -> Callable[[Any], Any]:
        return lambda state: {"steps": [f"{text} after {len(state['steps'])}"]}

    asking = _chain({"ask": ask, "then": said("asked")}).compile()
    middle: Any = StateGraph(Steps)
    middle.add_node("prepare", said("prepared")).add_node("inner", asking)
    middle.add_edge(START, "prepare").add_edge("prepare", "inner")
    middle.add_conditional_edges("inner", lambda state: "prepare" if _count(state, "prepared") % 3 else END)
    memory = _chain({"count": said("counted"), "deep": _chain({"ask": ask}).compile()}).compile(checkpointer=True)

    def twice(state: Any) -> Any:
        turn = state["turn"] // 2
        first, second = (asking.invoke({"steps": [name], "turn": turn}) for name in ("first", "second"))
        return {"steps": [f"twice {first['steps']} {second['steps']}"]}

    def remember(state: Any) -> Any:
        remembered = memory.invoke({"steps": [f"turn {state['turn']}"], "turn": state["turn"] // 4})
        return {"steps": [f"remembered {len(remembered['steps'])}"]}

    def packets(state: Any) -> list[Send]:
        return [Send("fan", {"steps": [str(number)], "turn": state["turn"] // 8}) for number in range(2)]

    builder = _chain({"open": said("opened"), "middle": middle.compile(), "twice": twice, "remember": remember})
    builder.add_node("fan", asking).add_node("shut", said("shut"))
    builder.add_conditional_edges("remember", packets, ["fan"]).add_edge("fan", "shut")
    return builder.compile(checkpointer=saver)


def take_step(chance: random.Random, graph: Any, config: Any, step: int) -> None:
    """One random step from the checkpoint that the configuration names."""
    with suppress(EmptyInputError, InvalidUpdateError):
        chance.choice(_STEPS)(graph, config, step, chance)


def calls_in(snapshot: StateSnapshot) -> Iterator[StateSnapshot]:
    """The states of the subgraphs that its tasks have called, and of those that they have called."""
    for task in snapshot.tasks:
        if isinstance(task.state, StateSnapshot):
            yield task.state
            yield from calls_in(task.state)


def _turn(graph: Any, config: Any, step: int, chance: random.Random) -> None:
    graph.invoke({"steps": [f"turn {step}"], "turn": chance.randrange(16)}, config, durability=_durability(chance))


def _answer(graph: Any, config: Any, step: int, chance: random.Random) -> None:
    questions = graph.get_state(config).interrupts
    answers = {question.id: f"answer {step}" for question in questions}
    graph.invoke(Command(resume=answers), config, durability=_durability(chance))


def _go_on(graph: Any, config: Any, step: int, chance: random.Random) -> None:  # noqa: ARG001 - as the others
    graph.invoke(None, config, durability=_durability(chance))


def _update(graph: Any, config: Any, step: int, chance: random.Random) -> None:
    graph.update_state(config, {"steps": [f"update {step}"]}, as_node=chance.choice(("open", "middle", "twice")))


def _update_call(graph: Any, config: Any, step: int, chance: random.Random) -> None:
    if called := list(calls_in(graph.get_state(config, subgraphs=True))):
        graph.update_state(chance.choice(called).config, {"steps": [f"update {step}"]})


_STEPS: Sequence[Callable[[Any, Any, int, random.Random], None]] = (
    _turn,
    _turn,
    _answer,
    _answer,
    _answer,
    _go_on,
    _update,
    _update_call,
)


def _chain(nodes: dict[str, Any]) -> Any:
    builder: Any = StateGraph(Steps)
    before = START
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(before, name)
        before = name
    return builder


def _count(state: Any, text: str) -> int:
    return sum(step.startswith(text) for step in state["steps"])


def _durability(chance: random.Random) -> str:
    return chance.choice(("sync", "exit"))
