"""Graphs that a process runs until it is killed, and a function that does; a test resumes them in another process."""

import operator
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, TypedDict

from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

import threadmark
from threadmark_langgraph import Checkpointer, wrap

Fatal = Callable[[str], None]
"""The point in a node at which its process dies. It returns if the process lives."""

Build = Callable[[Checkpointer, Fatal], Any]


class State(TypedDict, total=False):
    """The names of the nodes that have run."""

    ran: Annotated[list[str], operator.add]


def _graph(saver: Checkpointer | None, edges: list[tuple[Any, str]], nodes: Mapping[str, Any]) -> Any:
    builder: Any = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for start, end in edges:
        builder.add_edge(start, end)
    return builder.compile(checkpointer=saver)


def _node(name: str, dies: Fatal | None = None) -> Callable[[State], State]:
    def node(_: State) -> State:
        if dies is not None:
            dies(name)
        return {"ran": [name]}

    return node


def chain(saver: Checkpointer, dies: Fatal) -> Any:
    """Dies in the second of three nodes."""
    nodes = {"x": _node("x"), "y": _node("y", dies), "z": _node("z")}
    return _graph(saver, [(START, "x"), ("x", "y"), ("y", "z")], nodes)


def joined(saver: Checkpointer, dies: Fatal) -> Any:
    """Dies in a node that waits for two others."""
    nodes = {"x": _node("x"), "y": _node("y"), "z": _node("z", dies)}
    return _graph(saver, [(START, "x"), (START, "y"), (["x", "y"], "z")], nodes)


def packets(saver: Checkpointer, dies: Fatal) -> Any:
    """Dies in a node that two packets went to."""
    builder: Any = StateGraph(State)
    builder.add_node("x", _node("x")).add_node("w", _node("w", dies)).add_edge(START, "x")
    builder.add_conditional_edges("x", lambda _: [Send("w", {}), Send("w", {})], ["w"])
    return builder.compile(checkpointer=saver)


def nested(saver: Checkpointer, dies: Fatal) -> Any:
    """Dies in the second node of a subgraph."""
    inner = _graph(None, [(START, "p"), ("p", "q")], {"p": _node("p"), "q": _node("q", dies)})
    return _graph(saver, [(START, "x"), ("x", "inner")], {"x": _node("x"), "inner": inner})


def function(saver: Checkpointer, dies: Fatal) -> Any:
    """Dies in the functional API, after a task has ended."""

    @task
    def work(name: str) -> str:
        return name

    @entrypoint(checkpointer=saver)
    def flow(_: State) -> State:
        first = work("one").result()
        dies("flow")
        return {"ran": [first, work("two").result()]}

    return flow


def ends(saver: Checkpointer) -> Any:
    """Comes to its end, and says so."""
    return _graph(saver, [(START, "x")], {"x": _node("x")})


def asks(saver: Checkpointer) -> Any:
    """Asks a question."""
    return _graph(saver, [(START, "x")], {"x": lambda _: {"ran": [interrupt("?")]}})


def fails(saver: Checkpointer) -> Any:
    """Raises an error."""

    def node(_: State) -> State:
        raise ValueError("no")

    return _graph(saver, [(START, "x")], {"x": node})


DYING: Mapping[str, tuple[Build, list[str], list[str]]] = {
    "chain": (chain, ["y"], ["x", "y", "z"]),
    "joined": (joined, ["z"], ["x", "y", "z"]),
    "packets": (packets, ["w"], ["x", "w", "w"]),
    "nested": (nested, ["inner"], ["x", "x", "p", "q"]),
    "function": (function, ["__start__"], ["one", "two"]),
}
"""Graphs that die, by their threads: with the nodes that are to run then, and all that have run in the end."""

LIVING: Mapping[str, tuple[Callable[[Checkpointer], Any], str]] = {
    "ends": (ends, "idle"),
    "asks": (asks, "interrupted"),
    "fails": (fails, "error"),
}
"""Graphs that do not die, and the status that their threads get."""


def run_all(url: str, options: Mapping[str, Any]) -> None:
    """Run all graphs, each on a thread of the process. Print a line for each that has come to its end or its death."""

    def die(_: str) -> None:
        sys.stdout.write("there\n")
        sys.stdout.flush()
        threading.Event().wait()

    def run(name: str, graph: Any) -> None:
        with suppress(ValueError):
            graph.invoke({"ran": []}, {"configurable": {"thread_id": name}}, durability="sync")
        sys.stdout.write("there\n")
        sys.stdout.flush()

    with wrap(threadmark.open(url, **options)) as saver:
        dying = {name: build(saver, die) for name, (build, *_) in DYING.items()}
        living = {name: build(saver) for name, (build, _) in LIVING.items()}
        workers = [threading.Thread(target=run, args=each) for each in (*dying.items(), *living.items())]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


PLACES = len(DYING) + len(LIVING) + 1
"""The lines that `run_all` prints: the packets make two tasks."""
