"""The simple interfaces and LangGraph on the same threads: each reads the other's checkpoints."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from threadmark import ConflictError, Sessions, States
from threadmark_langgraph import InMemorySaver


class _State(TypedDict):
    items: Annotated[list[str], operator.add]
    count: int


def _count(state: _State) -> dict[str, Any]:
    return {"count": len(state["items"]), "items": ["counted"]}


def _ask(_: _State) -> dict[str, Any]:
    return {"items": [interrupt("what else?")]}


def _at(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def _graph(checkpointer: InMemorySaver, node: Any = _count) -> Any:
    return StateGraph(_State).add_node("node", node).add_edge(START, "node").compile(checkpointer=checkpointer)


def test_a_graphs_thread_is_read_as_a_state_and_as_a_session() -> None:
    with InMemorySaver() as checkpointer:
        _graph(checkpointer).invoke({"items": ["a"], "count": 0}, _at("graph"))
        expected = {"items": ["a", "counted"], "count": 1}
        assert States(checkpointer.saver).load("graph") == expected
        newest, *_, oldest = Sessions(checkpointer.saver).list("graph")
        assert newest.state == expected
        assert (newest.metadata.step, oldest.metadata.step) == (1, -1)
        assert newest.metadata.timestamp is not None
        assert States(checkpointer.saver).size() == 0


def test_a_graph_goes_on_from_a_state_that_was_saved_into_its_thread() -> None:
    with InMemorySaver() as checkpointer:
        states, graph = States(checkpointer.saver), _graph(checkpointer)
        graph.invoke({"items": ["a"], "count": 0}, _at("graph"))
        for number in range(2):
            states.save("graph", {"items": [f"saved {number}"], "count": 7})
        snapshot = graph.get_state(_at("graph"))
        assert (snapshot.values, snapshot.next) == ({"items": ["saved 1"], "count": 7}, ())
        assert [each.metadata["step"] for each in graph.get_state_history(_at("graph"))] == [3, 2, 1, 0, -1]
        expected = {"items": ["saved 1", "more", "counted"], "count": 2}
        assert graph.invoke({"items": ["more"]}, _at("graph")) == expected
        assert states.load("graph") == expected
        assert checkpointer.verify(decode=True).problems == []


def test_a_graph_shows_a_state_that_was_saved_without_it() -> None:
    with InMemorySaver() as checkpointer:
        States(checkpointer.saver).save("thread", {"items": ["saved"], "count": 7})
        assert _graph(checkpointer).get_state(_at("thread")).values == {"items": ["saved"], "count": 7}


def test_an_open_question_of_a_graph_is_not_deleted_alone() -> None:
    with InMemorySaver() as checkpointer:
        graph = _graph(checkpointer, _ask)
        graph.invoke({"items": [], "count": 0}, _at("graph"))
        states = States(checkpointer.saver)
        newest = states.history("graph").states[0].id
        with pytest.raises(ConflictError, match="a question waits"):
            states.delete("graph", newest)
        assert len(graph.get_state(_at("graph")).interrupts) == 1
        assert states.delete("graph") is True
