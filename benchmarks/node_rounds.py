"""The part of the transaction rounds in which the nodes of a graph put items: `transaction_rounds.py` runs it.

Each node makes a new number, puts an item under it, and adds it to the state. So each number that is in the
state or in a task's writes must have its item, and each item its number.
"""

import asyncio
import operator
import time
from collections.abc import Callable
from itertools import cycle
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph

from threadmark import Saver
from threadmark_langgraph import wrap
from threadmark_store import Store

_DURABILITIES: Any = ("async", "sync", "exit")


class Numbers(TypedDict):
    """The state: the numbers of all nodes that have run."""

    numbers: Annotated[list[int], operator.add]


def node_graph(saver: Saver, namespace: str) -> Any:
    """A node, then two in parallel."""
    checkpointer = wrap(saver)
    store = Store(checkpointer, with_tasks=True)

    def node(state: Numbers) -> Numbers:  # noqa: ARG001 - LangGraph's name
        number = time.time_ns()
        store.put((namespace,), str(number), {"number": number})
        if store.get((namespace,), str(number)) is None:
            raise SystemExit(f"a node does not find the item {number} that it has put")
        return {"numbers": [number]}

    builder = StateGraph(Numbers)
    for name in ("first", "left", "right"):
        builder.add_node(name, node)
        builder.add_edge("first" if name != "first" else START, name)
    return builder.compile(checkpointer=checkpointer, store=store)


def work(
    saver: Saver, thread_id: str, begun: Callable[[], None], done: Callable[[int], None], *, blocking: bool
) -> None:
    """Run the graph for ever, first from where a killed process left it."""
    graph = node_graph(saver, thread_id)
    config: Any = {"configurable": {"thread_id": thread_id}}
    for durability in cycle(_DURABILITIES):
        given: Any = None if graph.get_state(config).next else {"numbers": []}
        begun()
        if blocking:
            result = graph.invoke(given, config, durability=durability)
        else:
            result = asyncio.run(graph.ainvoke(given, config, durability=durability))
        done(result["numbers"][-1])


def compared_nodes(saver: Saver, thread_id: str) -> tuple[set[int], set[int]]:
    """Return the numbers that are in the state or in writes without their item or the reverse, and all numbers."""
    config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    in_state: set[int] = set()
    for found in saver.list(config):
        in_state.update(found.checkpoint["channel_values"].get("numbers", ()))
        in_state.update(*(value for _, channel, value in found.pending_writes or () if channel == "numbers"))
    items = {int(item.key) for item in Store(saver).search((thread_id,), limit=1_000_000)}
    return in_state ^ items, in_state | items
