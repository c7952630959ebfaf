"""A process that ran graphs is killed, and another one finds the threads whose runs died and goes on with them."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Send

import threadmark
from children import child, line_from
from langgraph_parity.backends import cluster
from langgraph_parity.dying import DYING, LIVING, PLACES, ends, packets
from langgraph_parity.releases import needs_sound_deltas
from threadmark_langgraph import Checkpointer, wrap

CHILD = """
import json, sys
sys.path.insert(0, sys.argv[3])
from langgraph_parity.dying import run_all
run_all(sys.argv[1], json.loads(sys.argv[2]))
"""
TESTS = Path(__file__).parents[1]


@pytest.fixture(params=["sqlite", "postgres"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    """A saver on a database in which a killed process has left its runs."""
    url, options = f"sqlite:///{tmp_path}/agents.db", {}
    if request.param == "postgres":
        url, options = cluster().url, {"schema": f"unfinished{next(_numbers)}"}
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {options['schema']}")
    with wrap(threadmark.open(url, **options)) as found:
        found.setup()
        with child(CHILD, url, json.dumps(options), TESTS) as process:
            heard = [line_from(process.stdout) for _ in range(PLACES)]
            process.kill()
            assert heard == ["there"] * PLACES, process.stderr and process.stderr.read()
        yield found


_numbers = itertools.count()


def test_runs_that_died_are_found_and_come_to_their_ends(saver: Checkpointer) -> None:
    threads = {thread.id: [*thread.next] for thread in saver.unfinished(idle_for=0).threads}
    assert threads == {name: following for name, (_, following, _) in DYING.items()}
    assert {thread.id for thread in asyncio.run(saver.aunfinished(idle_for=0)).threads} == threads.keys()
    assert saver.count_threads(status="unfinished") == len(DYING)
    assert saver.unfinished(idle_for=timedelta(hours=1)).threads == []
    assert {name: _state(saver, name) for name in LIVING} == {
        name: (status, []) for name, (_, status) in LIVING.items()
    }
    for name, (build, following, ran) in DYING.items():
        graph = build(saver, lambda _: None)
        assert following == _said_by_langgraph(graph, name)
        saver.copy_thread(name, "copy")
        _change_by_hand(saver, graph, following)
        saver.delete_thread("copy")
        with saver.lease(name) as lease:
            assert _state(saver, name) == ("busy", following)
            assert graph.invoke(None, lease.config)["ran"] == ran
            assert _state(saver, name) == ("busy", [])
        assert _state(saver, name) == ("idle", [])
    assert saver.unfinished(idle_for=0).threads == []


def _state(saver: Checkpointer, name: str) -> tuple[str, list[str]]:
    """The status of a thread, and the nodes that are still to run."""
    thread = saver.get_thread(name)
    assert thread is not None
    return thread.status, [*thread.next]


def _said_by_langgraph(graph: Any, name: str) -> list[str]:
    """The same nodes, as the graph says it.

    The functional API names its one node by its function, which nothing has stored before it first ends.
    """
    following = graph.get_state({"configurable": {"thread_id": name}}).next
    return ["__start__"] if name == "function" else list(dict.fromkeys(following))


def _change_by_hand(saver: Checkpointer, graph: Any, following: list[str]) -> None:
    """Put checkpoints with `update_state`, which does not store which channels were updated."""
    config = {"configurable": {"thread_id": "copy"}}
    graph.update_state(config, None, "__copy__")
    assert _state(saver, "copy") == ("unfinished", following)
    graph.update_state(config, None, "__end__")
    assert _state(saver, "copy") == ("idle", [])


class _Chat(TypedDict, total=False):
    items: Annotated[
        list[str],
        DeltaChannel(
            lambda state, writes: [*(state or []), *(item for write in writes for item in write)], snapshot_frequency=1
        ),
    ]
    turn: int


def test_of_a_state_that_was_changed_by_hand_the_same_nodes_are_to_run_as_in_langgraph() -> None:
    with wrap(threadmark.MemorySaver()) as saver:
        graph = ends(saver)
        thread: Any = {"configurable": {"thread_id": "input"}}
        graph.invoke({"ran": []}, thread)
        first = list(graph.get_state_history(thread))[-1]
        assert _both(saver, graph, "input") == []
        graph.invoke(None, first.config)
        [again] = [each for each in graph.get_state_history(thread) if each.metadata["source"] == "fork"]
        graph.update_state(again.config, None, "__copy__")  # which a person was asked at
        assert _both(saver, graph, "input") == ["__start__"]
        graph.update_state(first.config, {"ran": ["x"]}, "x")  # its input is passed over
        assert _both(saver, graph, "input") == []


@needs_sound_deltas
def test_a_snapshot_that_a_fork_stores_has_no_nodes_run() -> None:
    with wrap(threadmark.MemorySaver()) as saver:
        builder: Any = StateGraph(_Chat)
        builder.add_node("x", lambda values: {"items": ["x"]} if values["turn"] else {"turn": 0})
        builder.add_edge(START, "x").add_node("y", lambda _: {"turn": 0}).add_edge("x", "y")
        graph = builder.compile(checkpointer=saver)
        thread: Any = {"configurable": {"thread_id": "chat"}}
        graph.invoke({"turn": 1}, thread)
        [_, _, before_x, _] = graph.get_state_history(thread)
        graph.update_state(before_x.config, {"turn": 0}, "y")
        graph.invoke({"turn": 1}, thread)
        graph.update_state(thread, {"items": ["z"]}, "y")
        assert _both(saver, graph, "chat") == []


def test_a_fork_that_changes_a_trigger_is_unfinished() -> None:
    with wrap(threadmark.MemorySaver()) as saver:
        graph = packets(saver, lambda _: None)
        thread: Any = {"configurable": {"thread_id": "fork"}}
        graph.invoke({"ran": ["a text"] * 200}, thread)
        last, sent, *_ = graph.get_state_history(thread)
        for values, following in (
            ({"branch:to:x": None}, ["x"]),
            ({"__start__": {"ran": []}}, ["__start__"]),
            ({"__pregel_tasks": [Send("w", "a text" * 200)]}, ["w"]),
            ({"ran": []}, []),
        ):
            saver.fork(last.config, values)
            assert _both(saver, graph, "fork") == following
            saver.fork(last.config, values, as_thread=f"fork to {following}")
            assert _both(saver, graph, f"fork to {following}") == following
        saver.fork(sent.config, {"ran": []})
        assert _both(saver, graph, "fork") == ["w"]
        saver.fork(sent.config, {"__pregel_tasks": []})
        assert _both(saver, graph, "fork") == []


def _both(saver: Checkpointer, graph: Any, name: str) -> list[str]:
    """The nodes that are still to run, which LangGraph and the saver agree about."""
    status, following = _state(saver, name)
    assert following == [*dict.fromkeys(graph.get_state({"configurable": {"thread_id": name}}).next)]
    assert status == ("unfinished" if following else "idle")
    return following
