"""Metadata is merged, cleaned and stored as LangGraph's savers do it."""

import enum
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver as Theirs

from threadmark import SerializationError
from threadmark_langgraph import InMemorySaver


class Mood(enum.StrEnum):
    CALM = "calm"


CONFIG: Any = {
    "configurable": {
        "thread_id": "1",
        "checkpoint_ns": "",
        "user": "Ada",
        "nul": "a\x00b",
        "mood": Mood.CALM,
        "__private": "no",
        "object": object(),
        "step": "not mine",
        "langgraph_node": "no",
    },
    "metadata": {"tag": "x", "number": 1.5, "flag": True, "list": [1]},
}


def kept(saver: Any, metadata: Any) -> Any:
    """The metadata that comes back."""
    stored = saver.put(CONFIG, empty_checkpoint(), metadata, {})
    return saver.get_tuple(stored).metadata


def test_configuration_is_merged_as_langgraph_merges_it() -> None:
    metadata = {"source": "loop", "step": 3, "parents": {"": "p"}, "own": {"deep": ["x", None]}}
    with InMemorySaver() as ours:
        assert kept(ours, metadata) == kept(Theirs(), metadata)


def test_metadata_comes_back_as_json_gives_it() -> None:
    with InMemorySaver() as saver:
        found = kept(saver, {"counters": {"a": (1, 2)}, "mood": Mood.CALM, 7: "seven"})
    assert found["counters"] == {"a": [1, 2]}
    assert type(found["mood"]) is str
    assert found["7"] == "seven"


def test_what_json_cannot_hold_is_refused_by_name() -> None:
    with InMemorySaver() as saver, pytest.raises(SerializationError, match="here"):
        kept(saver, {"here": object()})


def test_number_and_string_name_the_same_thread() -> None:
    with InMemorySaver() as saver:
        number: Any = {"configurable": {"thread_id": 7, "checkpoint_ns": ""}}
        saver.put(number, empty_checkpoint(), {}, {})
        assert saver.get_tuple({"configurable": {"thread_id": "7"}}) is not None
