"""Threads with delta channels, walked at random: after any removal the rest is read as before.

The walks are of the LangGraph that is installed, and of older releases, which wrote less with a delta channel; the
calls of those are recordings.
"""

import random
from pathlib import Path
from typing import Any

import pytest

from langgraph_parity.backends import BACKENDS, Backend
from langgraph_parity.recorded.recording import load, play
from langgraph_parity.records import one
from langgraph_parity.walks import DELTAS, graph_of, take_step, walk
from threadmark_langgraph import Checkpointer

RECORDED = sorted(Path(__file__).with_name("recorded").glob("*.jsonl.gz"))
RELEASES = ("1.2.6", "1.2.12", "1.2.13")
WALKS = 6
FEWER = 2
"""So many are enough if only the backend differs."""


BACKENDS_AND_WALKS = [(backend, range(WALKS if backend.name == "memory" else FEWER)) for backend in BACKENDS]


@pytest.mark.parametrize(("backend", "walks"), BACKENDS_AND_WALKS, ids=lambda item: getattr(item, "name", len(item)))
def test_walk_of_the_installed_release(backend: Backend, walks: range, tmp_path: Path) -> None:
    with backend.open(tmp_path) as saver:
        for number in walks:
            walk(number, saver, f"walk {number}")
            _remove_and_go_on(number, saver, f"walk {number}")


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
@pytest.mark.parametrize(("backend", "walks"), BACKENDS_AND_WALKS, ids=lambda item: getattr(item, "name", len(item)))
def test_walk_of_an_older_release(backend: Backend, walks: range, recording: Path, tmp_path: Path) -> None:
    recordings = load(recording)
    with backend.open(tmp_path) as saver:
        for number in walks:
            play(recordings[number], saver, f"walk {number}")
            _remove_and_go_on(number, saver, f"walk {number}")


def test_there_is_a_recording_of_every_release() -> None:
    assert {path.name for path in RECORDED} == {f"langgraph-{release}.jsonl.gz" for release in RELEASES}


def _remove_and_go_on(number: int, saver: Checkpointer, thread_id: str) -> None:
    """Remove and take steps, in random order; after each removal all that is left reads as before."""
    chance = random.Random(number)
    graph = graph_of(number, saver)
    before = _everything(graph, saver, thread_id)
    for step in range(100, 106):
        if chance.random() < 0.3:
            take_step(chance, graph, thread_id, step)
            before = _everything(graph, saver, thread_id)
            continue
        if chance.random() < 0.5:
            saver.prune([thread_id], keep_last=chance.choice((1, 2, 4)))
        else:
            runs = sorted({run for reading in before.values() if (run := reading["metadata"].get("run_id"))})
            saver.delete_for_runs(chance.sample(runs, min(len(runs), 2)))
        after = _everything(graph, saver, thread_id)
        for checkpoint_id, reading in after.items():
            expected = before[checkpoint_id]
            if expected["parent"] not in after:
                expected = {**expected, "parent": None}
            assert reading == expected, f"walk {number}, step {step}, checkpoint {checkpoint_id}"
        before = after


def _everything(graph: Any, saver: Checkpointer, thread_id: str) -> dict[str, dict[str, Any]]:
    """All that can be read of every checkpoint, by our methods and by the engine's."""
    readings: dict[str, dict[str, Any]] = {}
    for found in saver.list({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}):
        checkpoint = found.checkpoint
        # The engine asks for the history of those channels only that have a version and no value.
        asked = [
            each
            for each in DELTAS
            if each in checkpoint["channel_versions"] and each not in checkpoint["channel_values"]
        ]
        readings[checkpoint["id"]] = {
            "parent": found.parent_config and found.parent_config["configurable"]["checkpoint_id"],
            "checkpoint": checkpoint,
            "metadata": found.metadata,
            "pending writes": found.pending_writes,
            "deltas": saver.get_delta_channel_history(config=found.config, channels=asked),
            "state": one(graph.get_state(found.config)),
        }
    return readings
