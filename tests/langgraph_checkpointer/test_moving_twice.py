"""Threads that move while some of their questions are answered, and move again: each write is there once."""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_checkpointer.theirs import checkpoint, location, store, their_postgres, their_sqlite
from threadmark_langgraph import InMemorySaver, SqliteSaver, export, migrate

THREAD = location("one")


def _appended(state: list[str] | None, writes: list[list[str]]) -> list[str]:
    return [*(state or []), *(each for write in writes for each in write)]


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    delta: Annotated[list[str], DeltaChannel(_appended)]


def _graph(saver: Any) -> Any:
    """Six tasks of one step, each of which asks: three write to an ordinary channel, three to a delta channel."""
    builder: Any = StateGraph(State)
    for name in "abc":
        for channel in ("log", "delta"):
            node = f"{channel}-{name}"
            builder.add_node(node, lambda _, node=node, channel=channel: {channel: [f"{node} {interrupt(node)}"]})
            builder.add_edge(START, node)
    return builder.compile(checkpointer=saver)


def _answer(saver: Any, name: str, config: Any = THREAD, answer: str = "yes", **more: Any) -> None:
    """Answer the questions of the tasks whose names end so, of both channels."""
    graph = _graph(saver)
    questions = {each.value: each.id for each in graph.get_state(config).interrupts}
    chosen = {questions[f"{channel}-{name}"]: answer for channel in ("log", "delta")}
    graph.invoke(Command(resume=chosen, **more), config)


def _states(saver: Any) -> list[Any]:
    """The values and pending writes of every checkpoint of the thread."""
    states, stored = list(_graph(saver).get_state_history(THREAD)), list(saver.list(THREAD))
    return [
        (state.values, [write[1:] for write in found.pending_writes if write[1] in ("log", "delta")])
        for state, found in zip(states, stored, strict=True)
    ]


def _expected(*steps: Callable[[Any], Any]) -> list[Any]:
    """The states after the same steps in LangGraph's saver, without a move."""
    saver = TheirMemory()
    for step in steps:
        step(saver)
    return _states(saver)


def _damage(saver: Any) -> list[Any]:
    """What `verify` finds except the leftovers of replaced questions, which the next prune sweeps."""
    problems = saver.saver.verify().problems if isinstance(saver, SqliteSaver) else []
    return [problem for problem in problems if problem.kind != "orphan"]


@contextmanager
def _ours(folder: Path) -> Iterator[Any]:
    with SqliteSaver(folder / "ours.db") as saver:
        yield saver


@contextmanager
def _ours_too(folder: Path) -> Iterator[Any]:
    with SqliteSaver(folder / "ours too.db") as saver:
        yield saver


class _Way(NamedTuple):
    """Two savers, and the functions that move to the second and back."""

    first: Any
    second: Any
    there: Any = migrate
    back: Any = migrate


WAYS = [
    *(_Way(_ours, theirs, export, migrate) for theirs in (their_sqlite, their_postgres)),
    *(_Way(theirs, _ours, migrate, export) for theirs in (their_sqlite, their_postgres)),
    _Way(_ours, _ours_too),
]
"""Between savers that tell the places of writes."""


def _name(way: _Way) -> str:
    return f"{way.first.__name__}-{way.second.__name__}"


def _begin(saver: Any) -> None:
    _graph(saver).invoke({"log": ["begun"], "delta": []}, THREAD)


@pytest.mark.parametrize("way", WAYS, ids=_name)
def test_a_write_is_there_once_after_coming_back(way: _Way, tmp_path: Path) -> None:
    with way.first(tmp_path) as first, way.second(tmp_path) as second:
        _begin(first)
        _answer(first, "b")
        assert way.there(first, second).problems == []
        _answer(second, "a")
        assert way.back(second, first).problems == []
        expected = _expected(_begin, lambda saver: _answer(saver, "b"), lambda saver: _answer(saver, "a"))
        assert (_states(first), _states(second)) == (expected, expected)
        _answer(first, "c")
        assert way.there(first, second).problems == []
        for saver in (first, second):
            values = _graph(saver).get_state(THREAD).values
            assert values["log"] == ["begun", "log-a yes", "log-b yes", "log-c yes"]
            assert values["delta"] == ["delta-a yes", "delta-b yes", "delta-c yes"]
            assert _damage(saver) == []


@pytest.mark.parametrize("way", WAYS, ids=_name)
def test_a_task_that_runs_again_after_a_move_stores_its_writes_in_their_places(way: _Way, tmp_path: Path) -> None:
    """The state after the first run, too, has its delta channel from the step's writes."""

    def answer_all(saver: Any) -> None:
        for name in "abc":
            _answer(saver, name)

    def answer_again(saver: Any) -> None:
        config = list(_graph(saver).get_state_history(THREAD))[-2].config
        _answer(saver, "a", config, "no")

    with way.first(tmp_path) as first, way.second(tmp_path) as second:
        _begin(first)
        answer_all(first)
        assert way.there(first, second).problems == []
        answer_again(second)
        assert _states(second) == _expected(_begin, answer_all, answer_again)


@pytest.mark.parametrize("way", WAYS, ids=_name)
def test_updates_that_commands_bring_are_added_to_those_that_moved(way: _Way, tmp_path: Path) -> None:
    with way.first(tmp_path) as first, way.second(tmp_path) as second:
        _begin(first)
        _answer(first, "a", update={"log": ["first"]})
        assert way.there(first, second).problems == []
        _answer(second, "b", update={"delta": ["second"], "log": ["third"]})
        assert way.back(second, first).problems == []
        expected = _expected(
            _begin,
            lambda saver: _answer(saver, "a", update={"log": ["first"]}),
            lambda saver: _answer(saver, "b", update={"delta": ["second"], "log": ["third"]}),
        )
        assert (_states(first), _states(second)) == (expected, expected)


def _ask_twice(saver: Any) -> Any:
    """One task asks two questions, and another one keeps the step open."""
    builder: Any = StateGraph(State).add_node("twice", lambda _: {"log": [interrupt("one") + interrupt("two")]})
    builder.add_node("open", lambda _: {"log": [interrupt("three")]})
    return builder.add_edge(START, "twice").add_edge(START, "open").compile(checkpointer=saver)


@pytest.mark.parametrize("way", WAYS, ids=_name)
def test_a_task_that_answers_again_after_a_move_gets_all_its_answers_and_writes(way: _Way, tmp_path: Path) -> None:
    def answer(saver: Any, question: str) -> Any:
        graph = _ask_twice(saver)
        questions = {each.value: each.id for each in graph.get_state(THREAD).interrupts}
        return graph.invoke(Command(resume={questions[question]: f"<{question}>"}), THREAD)

    with way.first(tmp_path) as first, way.second(tmp_path) as second:
        _ask_twice(first).invoke({"log": []}, THREAD)
        answer(first, "one")
        assert way.there(first, second).problems == []
        answer(first, "two")
        assert way.there(first, second).problems == []
        for saver in (first, second):
            found = saver.get_tuple(THREAD)
            assert [write[2] for write in found.pending_writes if write[1] == "log"] == [["<one><two>"]]
            assert answer(saver, "three")["log"] == ["<three>", "<one><two>"]


def test_a_write_with_an_absurd_place_is_moved(tmp_path: Path) -> None:
    theirs: Any
    with their_sqlite(tmp_path) as theirs, _ours(tmp_path) as ours:
        _begin(theirs)
        _answer(theirs, "a")
        theirs.conn.execute("UPDATE writes SET idx = 4611686018427387904 WHERE idx = 1 AND channel = 'log'")
        assert migrate(theirs, ours).problems == []
        assert _states(ours) == _expected(_begin, lambda saver: _answer(saver, "a"))


@pytest.mark.parametrize("channel", [ERROR, INTERRUPT])
def test_the_target_keeps_an_error_or_a_question_until_its_task_is_done(channel: str) -> None:
    """Which of the two is newer cannot be known."""
    source: Any = TheirMemory()
    target: Any = InMemorySaver()
    config = store(source, THREAD, checkpoint({"log": []}))
    source.put_writes(config, [(channel, "first")], "task")
    assert migrate(source, target).problems == []
    source.put_writes(config, [(channel, "second")], "task")
    (problem,) = migrate(source, target).problems
    assert f"the newest write of a task to channel {channel!r}, since the task ran again" in problem.reason
    assert target.get_tuple(config).pending_writes == [("task", channel, "first")]
    source.put_writes(config, [("log", ["done"])], "task")
    assert migrate(source, target).problems == []
    assert target.get_tuple(config).pending_writes == source.get_tuple(config).pending_writes
