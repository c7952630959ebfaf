"""Forks of threads that were walked at random: each reads like its origin, and leaves all else as it was.

The walks have delta channels, whose values lie in the writes of ancestors' tasks: as the installed LangGraph stores
them, and as older releases did. Others call subgraphs of every kind.
"""

import random
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import EmptyInputError

from langgraph_parity.backends import BACKENDS, Backend
from langgraph_parity.calls import graph_of_calls
from langgraph_parity.calls import take_step as take_call
from langgraph_parity.recorded.recording import load, play
from langgraph_parity.releases import needs_sound_deltas
from langgraph_parity.test_pruned_deltas import RECORDED
from langgraph_parity.walks import graph_of, walk
from threadmark_langgraph import Checkpointer

MEMORY = BACKENDS[0]
WALKS = 3
FEWER = 1
"""So many are enough if only the backend differs."""

FORKED = 5
"""Checkpoints of each walk."""

BACKENDS_AND_WALKS = [(backend, range(WALKS if backend is MEMORY else FEWER)) for backend in BACKENDS]


@needs_sound_deltas
@pytest.mark.parametrize(("backend", "walks"), BACKENDS_AND_WALKS, ids=lambda item: getattr(item, "name", len(item)))
def test_forks_of_delta_channels(backend: Backend, walks: range, tmp_path: Path) -> None:
    with backend.open(tmp_path) as saver:
        for number in walks:
            walk(number, saver, f"walk {number}")
            _fork(graph_of(number, saver), saver, f"walk {number}")


@needs_sound_deltas
@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_forks_of_what_an_older_release_stored(recording: Path, tmp_path: Path) -> None:
    recordings = load(recording)
    with MEMORY.open(tmp_path) as saver:
        for number in range(WALKS):
            play(recordings[number], saver, f"walk {number}")
            _fork(graph_of(number, saver), saver, f"walk {number}")


@pytest.mark.parametrize(("backend", "walks"), BACKENDS_AND_WALKS, ids=lambda item: getattr(item, "name", len(item)))
def test_forks_of_subgraphs(backend: Backend, walks: range, tmp_path: Path) -> None:
    with backend.open(tmp_path) as saver:
        graph = graph_of_calls(saver)
        for number in walks:
            chance = random.Random(number)
            for step in range(6):
                take_call(chance, graph, _thread(f"walk {number}"), step)
            _fork(graph, saver, f"walk {number}")


def test_a_run_goes_on_from_a_fork_as_from_the_old_checkpoint(tmp_path: Path) -> None:
    """LangGraph goes back to a checkpoint by itself if a configuration names one: a fork is like that."""
    with MEMORY.open(tmp_path) as saver:
        for number in range(WALKS):
            walk(number, saver, f"walk {number}")
            graph = graph_of(number, saver)
            known = saver.history(f"walk {number}", limit=50).entries
            for each in random.Random(number).sample(known, FORKED):
                places: list[Any] = []
                for copy in range(2):
                    saver.copy_thread(f"walk {number}", f"{each.id} {copy}")
                    places.append({"configurable": {"thread_id": f"{each.id} {copy}", "checkpoint_id": each.id}})
                saver.fork(places[1])
                expected = _run(graph, places[0])
                assert _run(graph, _thread(f"{each.id} 1")) == expected
                saver.fork(places[0], as_thread=f"{each.id} 2")
                assert _run(graph, _thread(f"{each.id} 2")) == expected


def _run(graph: Any, config: Any) -> Any:
    """The result of a run without input: the values, and the questions that it ends with."""
    try:
        values = graph.invoke(None, config)
    except EmptyInputError:
        return "nothing to do"
    return values and {**values, "__interrupt__": [each.value for each in values.get("__interrupt__", ())]}


def _thread(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


def _fork(graph: Any, saver: Checkpointer, thread_id: str) -> None:
    """Fork at some checkpoints, in the thread and as separate threads, and compare all that can be read."""
    before = _everything(graph, thread_id)
    chance = random.Random(thread_id)
    for number, (config, reading) in enumerate(chance.sample(list(before.values()), min(FORKED, len(before)))):
        stored = saver.stats(thread_id).bytes_stored
        made: Any = saver.fork(config)
        assert _state(graph, made) == reading["state"]
        assert saver.stats(thread_id).bytes_stored - stored < 2048
        newest = graph.get_state(_thread(thread_id)).config["configurable"]["checkpoint_id"]
        assert newest == made["configurable"]["checkpoint_id"]
        other = f"{thread_id}, fork {number}"
        made = saver.fork(config, as_thread=other)
        copied = _everything(graph, other)
        assert made["configurable"]["checkpoint_id"] == config["configurable"]["checkpoint_id"]
        assert copied.keys() == set(_ancestry(before, config["configurable"]["checkpoint_id"]))
        for checkpoint_id, (_, found) in copied.items():
            assert found == before[checkpoint_id][1]
    after = _everything(graph, thread_id)
    assert {key: after[key] for key in before} == before
    assert saver.verify().problems == []


def _ancestry(readings: dict[str, Any], checkpoint_id: str | None) -> list[str]:
    found = []
    while checkpoint_id in readings:
        found.append(checkpoint_id)
        checkpoint_id = readings[checkpoint_id][1]["parent"]
    return found


def _everything(graph: Any, thread_id: str) -> dict[str, Any]:
    """For each checkpoint its configuration, and LangGraph's reading of it."""
    readings = {}
    for found in graph.checkpointer.list({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}):
        parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
        reading = {"parent": parent, "state": _state(graph, found.config)}
        readings[found.checkpoint["id"]] = found.config, reading
    return readings


def _state(graph: Any, config: Any) -> Any:
    """The values at a checkpoint, and the nodes that run next."""
    found = graph.get_state(config)
    return found.values, sorted(task.name for task in found.tasks)
