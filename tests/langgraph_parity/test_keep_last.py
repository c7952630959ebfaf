"""LangGraph running on a saver with `keep_last`: every run goes on as if nothing went, and threads stop growing."""

import random
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from langgraph_parity.backends import BACKENDS, Backend
from langgraph_parity.calls import THREAD, graph_of_calls, take_step
from langgraph_parity.records import one
from langgraph_parity.scenarios.subgraphs import nested
from langgraph_parity.walks import graph_of
from threadmark_langgraph import Checkpointer

EVERY = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
WALKS = 3
DURABILITIES: tuple[Any, ...] = ("sync", "async")


def _keeping(saver: Checkpointer, kept: int) -> Checkpointer:
    """The same saver with the option. `InMemorySaver` takes none, as LangGraph's does not."""
    inner: Any = saver.saver
    inner._context = inner._context._replace(threads=inner._context.threads._replace(keep_last=kept))
    return saver


@EVERY
def test_walks_of_subgraphs_end_as_without_it(backend: Backend, tmp_path: Path) -> None:
    for number in range(WALKS):
        ends = []
        for kept in (None, 1):
            chance = random.Random(number)
            with backend.open(tmp_path / f"{number} {kept}") as saver:
                graph = graph_of_calls(_keeping(saver, kept) if kept else saver)
                states = []
                for step in range(5):
                    take_step(chance, graph, THREAD, step)
                    states.append(one(graph.get_state(THREAD, subgraphs=True)))
                ends.append(states)
                if kept:
                    assert (saver.verify()).problems == []
        # Only the newest has no parent any more.
        assert [_without_parents(each) for each in ends[1]] == [_without_parents(each) for each in ends[0]]


def _without_parents(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _without_parents(value) for key, value in state.items() if "parent" not in str(key)}
    return [_without_parents(each) for each in state] if isinstance(state, list) else state


@EVERY
def test_walks_of_delta_channels_end_as_without_it(backend: Backend, tmp_path: Path) -> None:
    for number in range(WALKS):
        ends = []
        for kept in (None, 1):
            with backend.open(tmp_path / f"{number} {kept}") as saver:
                graph = graph_of(number, _keeping(saver, kept) if kept else saver)
                for step in range(9):
                    graph.invoke({"items": [f"turn {step}"], "turn": step}, THREAD, durability=DURABILITIES[step % 2])
                    if step % 3 == 2:
                        graph.invoke(Command(resume=f"answer {step}"), THREAD)
                ends.append(graph.get_state(THREAD).values)
        assert ends[1] == ends[0]


@EVERY
def test_a_thread_stops_growing(backend: Backend, tmp_path: Path) -> None:
    with backend.open(tmp_path) as saver:
        graph = graph_of_calls(_keeping(saver, 1))
        sizes = []
        for turn in range(6):
            graph.invoke({"steps": [f"turn {turn}"], "turn": 0}, THREAD)
            sizes.append(len(list(saver.list(THREAD))))
        assert max(sizes[1:]) <= sizes[0]


@EVERY
def test_an_interrupt_in_a_subgraph_is_answered(backend: Backend, tmp_path: Path) -> None:
    ends = []
    for kept in (None, 1):
        with backend.open(tmp_path / f"{kept}") as saver:
            graph = nested(_keeping(saver, kept) if kept else saver, memory=None)
            for turn in range(3):
                graph.invoke({"steps": [f"turn {turn}"]}, THREAD)
                end = graph.invoke(Command(resume=f"answer {turn}"), THREAD)
            ends.append(end)
    assert ends[1] == ends[0]
