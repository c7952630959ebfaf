"""Metadata: every key is kept, any JSON value comes back equal, and the run's configuration adds to it."""

import json
import math
from datetime import UTC, datetime

import pytest

from threadmark.errors import SerializationError
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, got, listed


async def every_key_is_kept(world: World) -> None:
    original = {
        "source": "loop",
        "step": -1,
        "parents": {"": "x"},
        "run_id": "r",
        "thread_id": "what the user wrote",
        "langgraph_node": "kept where the caller gives it",
        "__private": 1,
        "counters_since_delta_snapshot": {"a": [1, 2]},
        "": "an empty key",
        "a.b": {"$gt": 1},
    }
    config = await world.saver.aput(at("thread"), checkpoint(), original, {})
    assert (await got(world.another(), config)).metadata == original


async def numbers_and_order_come_back_exactly(world: World) -> None:
    original = {
        "z": 1,
        "a": 1.0,
        "big": 1 << 200,
        "exponent": 1e16,
        "small": 5e-324,
        "minus zero": -0.0,
        "infinite": [float("inf"), float("-inf")],
        "true": True,
        "null": None,
        "nested": [{"b": [[]], "a": {}}],
    }
    config = await world.saver.aput(at("thread"), checkpoint(), original, {})
    found = (await got(world.another(), config)).metadata
    assert json.dumps(found) == json.dumps(original)
    assert list(found) == list(original)


async def nan_comes_back(world: World) -> None:
    config = await world.saver.aput(at("thread"), checkpoint(), {"score": float("nan")}, {})
    assert math.isnan((await got(world.another(), config)).metadata["score"])


async def a_tuple_in_metadata_is_a_json_list(world: World) -> None:
    config = await world.saver.aput(at("thread"), checkpoint(), {"path": ("a", (1,))}, {})
    assert (await got(world.saver, config)).metadata == {"path": ["a", [1]]}


async def the_runs_configuration_is_merged_in(world: World) -> None:
    config = {
        "metadata": {"user": "u1", "step": 99, "score": 0.5, "graph": {"no": "scalar"}, "thread_id": "not kept"},
        "configurable": {
            "thread_id": "thread",
            "checkpoint_ns": "",
            "tenant": "t1",
            "user": "from the configurable",
            "flag": True,
            "__pregel_task_id": "not kept",
            "langgraph_step": 1,
            "checkpoint_map": {},
        },
    }
    placed = await world.saver.aput(config, checkpoint(), {"step": 1}, {})
    assert (await got(world.saver, placed)).metadata == {
        "step": 1,
        "user": "u1",
        "score": 0.5,
        "tenant": "t1",
        "flag": True,
    }


async def what_the_caller_passed_is_left_as_it_was(world: World) -> None:
    config, metadata = {**at("thread"), "metadata": {"user": "u1"}}, {"step": 1}
    await world.saver.aput(config, checkpoint(), metadata, {})
    assert (config, metadata) == ({**at("thread"), "metadata": {"user": "u1"}}, {"step": 1})


async def metadata_that_is_no_json_is_refused_by_its_key(world: World) -> None:
    for value in (datetime(2026, 1, 1, tzinfo=UTC), {1: "a"}, [b"x"], {"deep": [object()]}):
        with pytest.raises(SerializationError, match="metadata"):
            await world.saver.aput(at("thread"), checkpoint({"a": 1}), {"step": 0, "when": value}, {"a": 1})
    assert await listed(world.saver, None) == []


async def metadata_changes_from_step_to_step(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": 1}, metadata={"mine": number})
    assert [item.metadata for item in await listed(world.another(), at("thread"))] == [
        {"step": number, "mine": number} for number in (2, 1, 0)
    ]
