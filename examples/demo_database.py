"""A database to look at: threads of a support agent, with forks, an open question, an error and subgraphs.

    python examples/demo_database.py [demo.db]

LangGraph runs the agent. The model is a script, and the clock is the story's own, so that the same checkpoints come out
each time. Then look at them: `threadmark threads demo.db`, `threadmark log demo.db support-42 --graph`.
"""

import operator
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypedDict
from unittest.mock import patch

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from threadmark import SaverProtocol
from threadmark_langgraph import SqliteSaver

BEGIN = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
BILLION = 1_000_000_000
LARGEST_REFUND = 50

POLICY = """Damaged on the way: refund in full, or send a new one.
Lost on the way: wait for ten days, then send a new one.
Changed mind: take it back within 30 days.
Refunds of more than 50 euros need the approval of a person."""

NEW_POLICY = POLICY.replace("ten days", "seven days").replace("50 euros", "100 euros")


@dataclass
class Order:
    """The shop's record of an order."""

    number: str
    item: str
    price: int
    shipped: str


ORDERS = {
    "A-1042": Order("A-1042", "desk lamp", 89, "2026-11-14"),
    "A-1077": Order("A-1077", "tea kettle", 35, "2026-11-18"),
}


class Clock:
    """The time of the story. It moves when something happens in it."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Let the story begin."""
        self.now = int(BEGIN.timestamp()) * BILLION

    def pass_time(self, seconds: float) -> None:
        """Let some time pass."""
        self.now += int(seconds * BILLION)

    def time_ns(self) -> int:
        """The time, in place of the machine's."""
        return self.now


clock = Clock()


class Support(TypedDict, total=False):
    """The state of the support agent."""

    messages: Annotated[list[AnyMessage], add_messages]
    order: Order
    policy: str
    refund: int
    notes: Annotated[list[str], operator.add]


class Lookup(TypedDict, total=False):
    """The state of the subgraph that finds an order."""

    messages: Annotated[list[AnyMessage], add_messages]
    order: Order
    candidates: list[str]


def support_agent(saver: Any) -> Any:
    """The graph: find the order, propose something, let a person approve it if it is much, answer."""
    lookup: Any = StateGraph(Lookup)
    lookup.add_node("search", search).add_node("choose", choose)
    lookup.add_edge(START, "search").add_edge("search", "choose").add_edge("choose", END)
    builder: Any = StateGraph(Support)
    builder.add_node("lookup", lookup.compile()).add_node("propose", propose)
    for node in (approve, carrier, answer):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "lookup").add_edge("lookup", "propose").add_edge("carrier", "answer")
    builder.add_conditional_edges("propose", after_proposal, ["approve", "carrier", "answer"])
    builder.add_edge("approve", "answer").add_edge("answer", END)
    return builder.compile(checkpointer=saver)


def search(state: Lookup) -> Lookup:
    """Find the numbers of orders that the customer may mean."""
    clock.pass_time(31)
    question = str(state["messages"][-1].content)
    return {"candidates": [number for number in ORDERS if number in question] or list(ORDERS)}


def choose(state: Lookup) -> Lookup:
    """Take the first of them."""
    clock.pass_time(30)
    return {"order": ORDERS[state["candidates"][0]]}


def propose(state: Support) -> Support:
    """Ask a tool for the place of a parcel; propose a refund of damaged goods."""
    clock.pass_time(42)
    question, order = str(state["messages"][-1].content), state["order"]
    policy: Support = {"policy": state.get("policy", POLICY)}
    if "Where" in question:
        call = {"name": "carrier", "args": {"order": order.number}, "id": f"call-{len(state['messages'])}"}
        return {**policy, "messages": [AIMessage("", tool_calls=[call], id=message_id(state))]}
    refund = order.price if "damaged" in question or "broken" in question else 0
    return {**policy, "refund": refund, "notes": [f"{order.item}: refund of {refund} euros proposed"]}


def after_proposal(state: Support) -> str:
    """The next node."""
    last = state["messages"][-1]
    if isinstance(last, AIMessage) and last.tool_calls:
        return "carrier"
    return "approve" if state.get("refund", 0) > LARGEST_REFUND else "answer"


def carrier(state: Support) -> Support:
    """The tool: the place of an order's parcel. It does not always answer."""
    clock.pass_time(35)
    call = state["messages"][-1].tool_calls[0]  # type: ignore[union-attr]  # `after_proposal` has seen to it
    if call["args"]["order"] == "A-1077":
        raise TimeoutError("the carrier did not answer within 30 seconds")
    found = ToolMessage("handed over to a neighbour", tool_call_id=call["id"], id=message_id(state))
    return {"messages": [found], "notes": ["asked the carrier"]}


def approve(state: Support) -> Support:
    """Wait until a person has said whether the refund is right."""
    clock.pass_time(33)
    said = interrupt({"question": f"Refund {state['refund']} euros for the {state['order'].item}?"})
    clock.pass_time(45)
    return {"refund": state["refund"] if said == "yes" else 0, "notes": [f"a person said {said}"]}


def answer(state: Support) -> Support:
    """Tell the customer."""
    clock.pass_time(38)
    last, refund, item = state["messages"][-1], state.get("refund", 0), state["order"].item
    if isinstance(last, ToolMessage):
        text = f"Your {item} was {last.content}."
    elif refund:
        text = f"We are sorry about the {item}. You get {refund} euros back within three days."
    else:
        text = f"We send you a new {item} today; please keep the old one until it arrives."
    return {"messages": [AIMessage(text, id=message_id(state))]}


class Report(TypedDict, total=False):
    """The state of the agent that writes a report."""

    draft: str
    sources: Annotated[list[str], operator.add]


DRAFTS = (
    "# Parcels in November\n\n12 parcels were reported as damaged.\nMost of them were lamps.\n",
    "# Parcels in November\n\n14 parcels were reported as damaged.\nMost of them were lamps.\nTwo were lost.\n",
    "# Parcels in November\n\n14 parcels were reported as damaged, nine were lamps.\nTwo were lost.\n\nTo do: boxes.\n",
)


def report_agent(saver: Any) -> Any:
    """A graph that writes a text and revises it until it is done."""
    builder: Any = StateGraph(Report)
    builder.add_node("revise", revise).add_edge(START, "revise")
    builder.add_conditional_edges("revise", lambda state: END if state["draft"] == DRAFTS[-1] else "revise")
    return builder.compile(checkpointer=saver)


def revise(state: Report) -> Report:
    """Write the next draft."""
    clock.pass_time(64)
    done = len(state.get("sources", []))
    return {"draft": DRAFTS[done], "sources": [f"week {45 + done}"]}


def message_id(state: Support) -> str:
    """The id of the next message, which would be random."""
    return f"message-{len(state['messages']) + 1}"


def config_of(thread_id: str, owner: str | None) -> dict[str, Any]:
    """The configuration of a run."""
    return {"configurable": {"thread_id": thread_id, **({"user_id": owner} if owner else {})}}


def ask(graph: Any, config: dict[str, Any], text: str) -> None:
    """Let a customer write something, and run the agent until it waits or has answered."""
    clock.pass_time(120)
    there = len(graph.get_state(config).values.get("messages", []))
    question = HumanMessage(text, id=f"message-{there + 1}")
    with suppress(TimeoutError):  # it is stored with the thread
        graph.invoke({"messages": [question]}, config, durability="sync")


def resume(graph: Any, config: dict[str, Any], said: str) -> None:
    """Let a person answer the agent's question."""
    clock.pass_time(300)
    graph.invoke(Command(resume=said), config, durability="sync")


def damaged_lamp(graph: Any, saver: SaverProtocol) -> None:
    """A refund that a person approves; then the past is tried again with another policy, and with another answer."""
    config = config_of("support-42", "customer-17")
    ask(graph, config, "Order A-1042 arrived damaged: the lamp is broken.")
    waiting = graph.get_state(config).config
    resume(graph, config, "yes")
    ask(graph, config, "Thank you. Where is the return label? My order is A-1042.")
    clock.pass_time(900)
    other_policy = graph.update_state(waiting, {"policy": NEW_POLICY, "notes": ["policy of 2027 tried"]}, "lookup")
    graph.invoke(None, other_policy, durability="sync")
    resume(graph, config, "no")
    saver.update_thread("support-42", title="Lamp arrived damaged", metadata={"team": "returns", "priority": 2})


def late_kettle(graph: Any, saver: SaverProtocol) -> None:
    """A tool fails."""
    config = config_of("support-43", "customer-23")
    ask(graph, config, "Where is my tea kettle? The order is A-1077.")
    saver.update_thread("support-43", title="Kettle has not arrived", metadata={"team": "parcels"})


def open_question(graph: Any, saver: SaverProtocol) -> None:
    """A person has not answered yet."""
    config = config_of("support-44", "customer-31")
    ask(graph, config, "The lamp of order A-1042 came broken.")
    saver.update_thread("support-44", title="Another broken lamp", metadata={"team": "returns"})


def small_refund(graph: Any, saver: SaverProtocol) -> None:
    """No person has to approve."""
    config = config_of("support-45", "customer-17")
    ask(graph, config, "The kettle of order A-1077 is damaged.")
    saver.update_thread("support-45", title="Kettle damaged")


def november(graph: Any, saver: SaverProtocol) -> None:
    """A text that is revised."""
    clock.pass_time(600)
    graph.invoke({}, config_of("report-2026-11", None), durability="sync")
    saver.update_thread("report-2026-11", title="Parcels in November", metadata={"kind": "report"})


STORIES: tuple[tuple[Callable[[Any, SaverProtocol], None], Callable[[Any], Any]], ...] = (
    (late_kettle, support_agent),
    (small_refund, support_agent),
    (damaged_lamp, support_agent),
    (november, report_agent),
    (open_question, support_agent),
)
"""The scenes, in their order, each with its agent."""


def tell(checkpointer: Any) -> int:
    """Let everything happen, in a database that is empty. Returns how many checkpoints it has then."""
    with in_its_own_time():
        for story, agent in STORIES:
            story(agent(checkpointer), checkpointer.saver)
    return sum(thread.checkpoints for thread in checkpointer.list_threads().threads)


def make(path: Path) -> int:
    """Make the database file, which must not be there yet. Returns how many checkpoints it has."""
    if path.exists():
        raise FileExistsError(f"{path} is there already: remove it, or name another file")
    with SqliteSaver(path) as checkpointer:
        return tell(checkpointer)


@contextmanager
def in_its_own_time() -> Iterator[None]:
    """Let ids and times be the story's."""
    chance = random.Random(7)  # noqa: S311 - the same each time
    clock.begin()
    with (
        patch("time.time_ns", clock.time_ns),
        patch("random.getrandbits", chance.getrandbits),
        patch("langgraph.checkpoint.base.id._last_v6_timestamp", None),
    ):
        yield


def main() -> None:
    """Make the file that was named, or demo.db."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "demo.db")
    if path.name.startswith("-"):
        sys.exit("the only argument is the file to make: python examples/demo_database.py demo.db")
    try:
        checkpoints = make(path)
    except FileExistsError as error:
        raise SystemExit(str(error)) from None
    print(f"{path} has {checkpoints} checkpoints. Look at them: threadmark threads {path}")


if __name__ == "__main__":
    import_module("demo_database").main()  # so that `Order` is stored under the module's name, not as __main__:Order
