"""Threads that were exported, went on in LangGraph's saver, and come back."""

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_checkpointer.theirs import THEIRS, location, their_sqlite
from threadmark_langgraph import SqliteSaver, export, migrate

ONE, TWO = location("one"), location("two")


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def _graph(saver: Any) -> Any:
    builder: Any = StateGraph(Log).add_node("note", lambda _: {"log": [("noted", 1)]})
    builder.add_node("ask", lambda _: {"log": [interrupt(("which", (1, 2)))]})
    return builder.add_edge(START, "note").add_edge("note", "ask").compile(checkpointer=saver)


@pytest.mark.parametrize("theirs", THEIRS)
def test_a_thread_that_was_exported_comes_back_with_what_it_got(theirs: Any, tmp_path: Path) -> None:
    with SqliteSaver(tmp_path / "ours.db") as ours, theirs(tmp_path) as back:
        for thread in (ONE, TWO):
            _graph(ours).invoke({"log": []}, thread)
        before = _graph(ours).get_state(TWO)
        export(ours, back)
        _graph(back).invoke(Command(resume="this"), ONE)

        moved = migrate(back, ours)
        assert (moved.problems, moved.incomplete, moved.checkpoints, moved.already_there) == ([], [], 1, 6)
        assert moved.writes == 3  # the answer to the run and to its task, and the task's write for it

        assert _graph(ours).get_state(ONE).values == {"log": [["noted", 1], "this"]}
        assert _graph(ours).get_state(TWO) == before  # as it was stored here, with its tuples
        assert migrate(back, ours).already_there == 7
        assert ours.saver.verify().problems == []
        assert _graph(ours).invoke(Command(resume="that"), TWO) == {"log": [("noted", 1), "that"]}


def test_a_checkpoint_that_differs_by_more_than_its_export_is_reported(tmp_path: Path) -> None:
    ours, other, back = tmp_path / "ours.db", tmp_path / "other.db", tmp_path / "back.db"
    with SqliteSaver(ours) as saver:
        _graph(saver).invoke({"log": ["first"]}, ONE)
    migrate(ours, other)
    export(ours, back)
    with SqliteSaver(other) as saver:
        for found in list(saver.list(ONE)):
            changed: Any = {**found.checkpoint, "channel_values": {"log": ["another"]}}
            saver.put(found.parent_config or ONE, changed, found.metadata, changed["channel_versions"])
    moved = migrate(back, other)
    assert (moved.checkpoints, moved.already_there, len(moved.problems)) == (0, 0, 3)
    assert all("it differs in" in problem.reason for problem in moved.problems)
    assert moved.incomplete == []


def test_writes_of_tasks_that_were_before_others_come_back_in_their_order(tmp_path: Path) -> None:
    """The task that answered there is before the one whose writes are here already."""

    def graph(saver: Any) -> Any:
        builder: Any = StateGraph(Log).add_node("note", lambda _: {"log": ["noted"]})
        for name in ("early", "late"):
            builder.add_node(name, lambda _, name=name: {"log": [name + interrupt(name)]}).add_edge(START, name)
        return builder.add_edge(START, "note").compile(checkpointer=saver)

    def answer(saver: Any, name: str) -> Any:
        chosen = {each.id: "!" for each in graph(saver).get_state(ONE).interrupts if each.value == name}
        return graph(saver).invoke(Command(resume=chosen), ONE)

    with SqliteSaver(tmp_path / "ours.db") as ours, their_sqlite(tmp_path) as back:
        graph(ours).invoke({"log": []}, ONE)
        export(ours, back)
        answer(back, "early")
        assert migrate(back, ours).problems == []
        assert answer(ours, "late") == {"log": ["early!", "late!", "noted"]}
