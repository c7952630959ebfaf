"""Under LangGraph's names, too, odd arguments are refused with an error of ours, or the value can be read."""

import asyncio
import inspect
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.serde.types import ERROR, TASKS

from threadmark import ConfigError, MemorySaver, ThreadmarkError
from threadmark_conformance.engine import at, checkpoint, early_id
from threadmark_conformance.odd_calls import OddCall, odd_calls
from threadmark_langgraph import Checkpointer, InMemorySaver, wrap

THREAD: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
_METHODS = {name for name, _ in inspect.getmembers(BaseCheckpointSaver, inspect.isfunction)}


async def _call(saver: Checkpointer, call: OddCall) -> str | None:
    """The error of the call, if it is none of ours."""
    arguments = call.arguments("thread")
    if arguments is None:
        return None
    known = inspect.signature(getattr(Checkpointer, call.method)).parameters
    arguments = {name: value for name, value in arguments.items() if name in known}
    try:
        if call.method == "get_next_version":
            saver.get_next_version(**arguments)
        elif call.method == "list":
            [_ async for _ in saver.alist(**arguments)]
        else:
            await getattr(saver, f"a{call.method}")(**arguments)
    except ThreadmarkError:
        pass
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        return f"{call}: {type(error).__name__}: {error}"
    return None


def test_odd_calls_are_refused_or_everything_can_be_read() -> None:
    async def main() -> list[str]:
        raised = []
        for call in odd_calls(1200, seed=7):
            if call.method not in _METHODS:
                continue
            async with wrap(MemorySaver()) as saver:
                made: Any = checkpoint({"a": 1}, checkpoint_id=early_id(2))
                await saver.aput(at("thread", "", early_id(1)), made, {}, {"a": 1})  # type: ignore[arg-type]  # alike
                raised.append(await _call(saver, call))
                list(saver.list(None))
                assert saver.verify().problems == [], str(call)
        return [each for each in raised if each]

    assert asyncio.run(main()) == []


def test_writes_that_can_be_read_once_are_stored() -> None:
    with InMemorySaver() as saver:
        location = saver.put(THREAD, empty_checkpoint(), {}, {})
        writes: Any = (write for write in [("x", 1), (ERROR, "text"), ("y", 2)])
        saver.put_writes(location, writes, "task")
        found = saver.get_tuple(location)
    assert found is not None
    assert sorted(found.pending_writes or ()) == [("task", ERROR, "text"), ("task", "x", 1), ("task", "y", 2)]


@pytest.mark.parametrize("metadata", [None, [], 5, [("a", 1)]])
def test_metadata_that_is_no_dictionary_is_refused(metadata: Any) -> None:
    with InMemorySaver() as saver:
        with pytest.raises(ConfigError, match="metadata"):
            saver.put(THREAD, empty_checkpoint(), metadata, {})
        assert list(saver.list(None)) == []


def test_a_format_that_is_no_number_is_refused_below_a_parent_too() -> None:
    with InMemorySaver() as saver:
        location = saver.put(THREAD, empty_checkpoint(), {}, {})
        odd: Any = {**empty_checkpoint(), "v": "x"}
        with pytest.raises(ConfigError, match="v must be an int"):
            saver.put(location, odd, {}, {})
        assert len(list(saver.list(None))) == 1


def test_an_old_checkpoint_with_versions_of_two_kinds_gets_its_packets() -> None:
    with InMemorySaver() as saver:
        location = saver.put(THREAD, empty_checkpoint(), {}, {})
        saver.put_writes(location, [(TASKS, "packet")], "task")
        versions: Any = {"a": 3, "b": f"{2:032d}.5"}
        old: Any = {**empty_checkpoint(), "v": 2, "channel_versions": versions}
        found = saver.get_tuple(saver.put(location, old, {}, {}))
    assert found is not None
    assert found.checkpoint["channel_values"] == {TASKS: ["packet"]}
    assert found.checkpoint["channel_versions"][TASKS] == versions["b"]


def test_a_version_of_too_many_digits_is_refused() -> None:
    with InMemorySaver() as saver, pytest.raises(ConfigError, match="version"):
        saver.get_next_version("9" * 5000 + ".5", None)
