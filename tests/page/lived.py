"""Threads as graphs of today leave them: delta channels, subgraphs that are called again, open questions, errors."""

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from threadmark import SaverProtocol
from threadmark_langgraph import MemorySaver

QUESTION = "Send the draft to the customer?"
FAULT = "the printer is out of paper"


def joined(value: list[str] | None, updates: Sequence[list[str]]) -> list[str]:
    """Return a list with others after it."""
    return [*(value or []), *(item for update in updates for item in update)]


class State(TypedDict, total=False):
    """The state of a graph that writes letters."""

    draft: str
    log: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=3)]
    pages: Annotated[list[int], operator.add]


def letters(saver: Any) -> Any:
    """A graph whose review is a subgraph, called in a new namespace each time."""
    review: Any = StateGraph(State)
    review.add_node("proofread", lambda _: {"log": ["proofread"]}).add_node("confirm", confirm)
    review.add_edge(START, "proofread").add_edge("proofread", "confirm").add_edge("confirm", END)
    builder: Any = StateGraph(State)
    builder.add_node("write", lambda _: {"draft": "Dear customer", "log": ["written"]})
    builder.add_node("review", review.compile()).add_node("send", lambda _: {"log": ["sent"]})
    builder.add_edge(START, "write").add_edge("write", "review").add_edge("review", "send").add_edge("send", END)
    return builder.compile(checkpointer=saver)


def confirm(_: State) -> State:
    """Ask a person."""
    return {"log": [f"confirmed: {interrupt(QUESTION)}"]}


def printing(saver: Any) -> Any:
    """A graph whose first node fails."""
    builder: Any = StateGraph(State)
    builder.add_node("print", fail).add_edge(START, "print").add_edge("print", END)
    return builder.compile(checkpointer=saver)


def fail(_: State) -> State:
    """Fail."""
    raise RuntimeError(FAULT)


def copying(saver: Any) -> Any:
    """A graph that does ten things at once."""
    builder: Any = StateGraph(State)
    builder.add_node("plan", lambda _: {}).add_node("copy", lambda state: {"pages": [state["page"]]})
    builder.add_node("bind", lambda _: {})
    builder.add_edge(START, "plan").add_edge("copy", "bind").add_edge("bind", END)
    builder.add_conditional_edges("plan", lambda _: [Send("copy", {"page": page}) for page in range(10)], ["copy"])
    return builder.compile(checkpointer=saver)


def config_of(thread: str) -> dict[str, Any]:
    """Return the configuration of a run."""
    return {"configurable": {"thread_id": thread}}


@contextmanager
def lived_saver() -> Iterator[SaverProtocol]:
    """Fill a saver in memory."""
    with MemorySaver() as checkpointer:
        letters(checkpointer).invoke({}, config_of("asking"), durability="sync")
        logs = printing(checkpointer)
        with suppress(RuntimeError):
            logs.invoke({}, config_of("failing"), durability="sync")
        for number in range(5):
            letters(checkpointer).update_state(config_of("noting"), {"log": [f"line {number}"]}, "write")
        copying(checkpointer).invoke({}, config_of("finished"), durability="sync")
        yield checkpointer.saver
