"""Threads with calls of subgraphs: pruning takes the finished ones, and nothing that a run may come back to."""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver as LangGraphsPostgresSaver
from langgraph.types import Command, StateSnapshot

from langgraph_parity.backends import BACKENDS, Backend, cluster
from langgraph_parity.calls import THREAD, calls_in, graph_of_calls, take_step
from langgraph_parity.records import one
from langgraph_parity.scenarios.subgraphs import nested
from threadmark_langgraph import Checkpointer

COPY: Any = {"configurable": {"thread_id": "copy"}}
WALKS = 8
FEWER = 2
"""So many are enough if only the backend differs."""


@pytest.mark.parametrize(
    ("backend", "walks"),
    [(backend, range(WALKS if backend.name == "memory" else FEWER)) for backend in BACKENDS],
    ids=lambda item: getattr(item, "name", len(item)),
)
def test_walk_goes_on_as_if_nothing_had_been_pruned(backend: Backend, walks: range, tmp_path: Path) -> None:
    for number in walks:
        chance = random.Random(number)
        with backend.open(tmp_path / str(number)) as saver:
            graph = graph_of_calls(saver)
            for step in range(chance.randrange(3, 7)):
                known = list(graph.get_state_history(THREAD))
                older = chance.choice(known).config if known and chance.random() < 0.3 else THREAD
                take_step(chance, graph, older, step)
            saver.copy_thread("thread", "copy")
            before = _states(graph)
            saver.prune(["thread"], keep_last=chance.choice((1, 1, 2, 4)))
            after = _states(graph)
            assert after == {checkpoint_id: before[checkpoint_id] for checkpoint_id in after}, f"walk {number}"
            _assert_only_parents_that_are_there(saver)
            seed = chance.random()
            for step in range(100, 103):
                for config in (THREAD, COPY):
                    take_step(random.Random(seed + step), graph, config, step)
                pruned, whole = (one(graph.get_state(config, subgraphs=True)) for config in (THREAD, COPY))
                assert pruned == whole, f"walk {number}, step {step}"


def test_thread_that_is_pruned_after_every_turn_stops_growing(saver: Checkpointer) -> None:
    graph = graph_of_calls(saver)
    sizes = []
    for turn in range(8):
        graph.invoke({"steps": [f"turn {turn}"], "turn": 0}, THREAD)
        saver.prune(["thread"])
        sizes.append(len(list(saver.list(THREAD))))
    assert sizes[1:] == sizes[:1] * 7


def test_going_back_inside_an_open_call(saver: Checkpointer) -> None:
    graph = nested(saver, memory=None)
    for turn in range(2):
        graph.invoke({"steps": [f"turn {turn}"]}, THREAD)
        if turn == 0:
            graph.invoke(Command(resume="yes"), THREAD)
    saver.copy_thread("thread", "copy")
    saver.prune(["thread"])
    ends = []
    for config in (THREAD, COPY):
        inner = list(calls_in(graph.get_state(config, subgraphs=True)))[-1]
        graph.invoke(None, inner.config)
        graph.invoke(Command(resume="no"), config)
        ends.append(one(graph.get_state(config, subgraphs=True)))
    assert ends[0] == ends[1]
    assert ends[0]["values"]["steps"][-1] == "shut"


@pytest.mark.parametrize("memory", [None, True], ids=["without memory", "with memory"])
@pytest.mark.parametrize("answered", [False, True], ids=["waiting", "answered"])
def test_leaves_what_langgraphs_postgres_saver_leaves(tmp_path: Path, *, memory: bool | None, answered: bool) -> None:
    left = []
    with _langgraphs() as theirs:
        for saver in (theirs, *(backend.open(tmp_path / backend.name) for backend in BACKENDS)):
            graph = nested(saver, memory=memory)
            for turn in range(3):
                graph.invoke({"steps": [f"turn {turn}"]}, THREAD)
                if answered or turn < 2:
                    graph.invoke(Command(resume=f"answer {turn}"), THREAD)
            saver.prune(["thread"])
            pruned = _outline(saver), one(graph.get_state(THREAD, subgraphs=True))
            end = graph.invoke(None if answered else Command(resume="at last"), THREAD)
            left.append((*pruned, end, _outline(saver)))
            if isinstance(saver, Checkpointer):
                saver.close()
    assert left[1:] == left[:1] * len(BACKENDS)


@contextmanager
def _langgraphs() -> Iterator[BaseCheckpointSaver[Any]]:
    with LangGraphsPostgresSaver.from_conn_string(cluster().database(f"peer{uuid.uuid4().hex}")) as saver:
        saver.setup()
        yield saver


def _outline(saver: BaseCheckpointSaver[Any]) -> list[tuple[Any, ...]]:
    """Every checkpoint that is left, tasks without their ids: its place, and whether it names a parent."""
    return sorted(
        (
            "|".join(part.partition(":")[0] for part in found.config["configurable"]["checkpoint_ns"].split("|")),
            found.metadata["step"],
            found.parent_config is not None,
            sorted(channel for _, channel, _ in found.pending_writes or ()),
        )
        for found in saver.list(THREAD)
    )


def _states(graph: Any) -> dict[str, Any]:
    """The states of the thread with those of the subgraphs, by checkpoint."""
    found = {}
    for snapshot in graph.get_state_history(THREAD):
        whole: StateSnapshot = graph.get_state(snapshot.config, subgraphs=True)
        inner = [each.config["configurable"].get("checkpoint_id") for each in calls_in(whole)]
        found[snapshot.config["configurable"]["checkpoint_id"]] = (one(whole), inner)
    return found


def _assert_only_parents_that_are_there(saver: Checkpointer) -> None:
    refs = {(ref.ns, ref.id, ref.parent) for ref in saver.list_checkpoint_refs() if ref.thread_id == "thread"}
    there = {(ns, checkpoint_id) for ns, checkpoint_id, _ in refs}
    assert {(ns, parent) for ns, _, parent in refs if parent} <= there
