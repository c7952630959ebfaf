"""Differences between two checkpoints, and views of objects without their classes."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from threadmark.errors import (
    CheckpointNotFoundError,
    ConfigError,
    ForbiddenTypeError,
    SerializationError,
)
from threadmark.travel.model import Diff, ValueChange
from threadmark.types import ObjectView
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, early_id, values


@contextmanager
def _app() -> Iterator[Any]:
    """Provide a module with a class, as an application has it, and remove it afterwards."""
    module: Any = ModuleType("an_application")
    sys.modules[module.__name__] = module

    @dataclass
    class Plan:
        goal: str
        steps: list[Any]

    Plan.__module__, Plan.__qualname__ = module.__name__, "Plan"
    module.Plan = Plan
    try:
        yield module
    finally:
        del sys.modules[module.__name__]


async def objects_are_viewed_where_their_classes_are_missing(world: World) -> None:
    run, view = Run(world.saver), ObjectView("an_application:Plan", {"goal": "home", "steps": [1, (2, "x" * 300)]})
    with _app() as app:
        plan = app.Plan("home", [1, (2, "x" * 300)])
        await run.step({"plan": plan, "plans": [plan, plan], "n": 1})
        await run.write(("plan", plan))
        # The answer does not depend on the imports.
        assert await values(world.saver.without_classes(), at("thread")) == {
            "plan": view,
            "plans": [view] * 2,
            "n": 1,
        }
    with pytest.raises(ForbiddenTypeError):
        await world.cold.aget(at("thread"))
    for saver in (world.saver.without_classes(), world.cold.without_classes()):
        found = await saver.aget_tuple(at("thread"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"plan": view, "plans": [view, view], "n": 1}
        assert found.pending_writes == [("task", "plan", view)]
        assert await saver.aextract("thread", "plans[-1].steps[1][1]") == "x" * 300
        assert (await saver.aextract_items("thread", channel="plans", limit=1)).messages == [view]
        verified = await saver.averify("thread", decode=True)
        assert (verified.problems, verified.unreadable) == ([], [])
        with pytest.raises(SerializationError, match=r"'plan'.*without_classes") as refused:
            await Run(saver, "another").step({"list": {"plan": view}})
        assert "channel" in refused.value.location
        assert await Run(saver, "another").step({"plain": [1, {2}]})
    assert await values(world.cold, at("another")) == {"plain": [1, {2}]}
    await world.saver.adelete_thread("thread")


def _described(diff: Diff) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in diff.changes]


async def a_diff_tells_what_differs_by_channel_and_place(world: World) -> None:
    run, long = Run(world.saver), "text that stands in a segment of its own. " * 40
    first = await run.step({"same": long, "gone": long, "n": 1, "kept": [1], "m": [{"id": "a", "content": long}]})
    await run.write(("n", "a pending write is no part of the state"))
    child = Run(world.saver, ns="child")
    below = await child.step({"same": long, "n": True})
    run.values.pop("gone")
    items = [{"id": "a", "content": long + "new"}, {"id": "b", "content": "x"}]
    second = await run.step({"n": 1.0, "new": {"a": long}, "m": items, "kept": [1]}, unsaved=["gone"])
    for saver in (world.saver, world.cold):
        diff = await saver.adiff(first, second)
        assert _described(diff) == [
            ("gone", "removed"),
            ('m[0]["content"]', "changed"),
            ("m[1]", "added"),
            ("n", "changed"),
            ("new", "added"),
        ]
        assert (diff.equal, diff.left_out) == (["kept", "same"], 0)
        assert diff.changes[0] == ValueChange("gone", "removed", long, None)
        assert "".join(edit.text for edit in diff.changes[1].edits if edit.kind != "removed") == long + "new"
        for change in diff.changes[1:]:
            assert await saver.aextract(second, change.path) == change.after
        assert (await saver.adiff(first, at("thread"))).changes == diff.changes
        assert await saver.adiff(second, second) == Diff([], ["kept", "m", "n", "new", "same"], 0, 0)
        assert _described(await saver.adiff(second, first, path="m[1]")) == [("m[1]", "removed")]
        assert _described(await saver.adiff(first, second, path='m[0]["content"]')) == [('m[0]["content"]', "changed")]
        assert _described(await saver.adiff(first, second, path="nobody")) == []
        cut = await saver.adiff(first, second, limit=2)
        assert (_described(cut), cut.left_out) == (_described(diff)[:2], 3)
        assert ("n", "changed") in _described(await saver.adiff(first, below))
    with pytest.raises(ConfigError, match="of one thread"):
        await world.saver.adiff(first, at("another"))
    for missing in (at("thread", "", early_id(1)), at("thread", "nowhere")):
        with pytest.raises(CheckpointNotFoundError, match="never stored"):
            await world.saver.adiff(first, missing)


async def a_diff_reads_no_segment_of_what_is_equal(world: World) -> None:
    chance = random.Random(3)
    run = Run(world.saver)
    first = await run.step({"large": chance.randbytes(100_000), "list": [chance.randbytes(2000) for _ in range(9)]})
    changed = [*run.values["list"][:4], b"another", *run.values["list"][5:]]
    second = await run.step({"list": changed})
    saver, reads = world.counting()
    diff = await saver.adiff(first, second)
    assert _described(diff) == [("list[4]", "changed")]
    assert not {"find", "newest", "writes"} & set(reads.questions)
    assert 0 < diff.bytes_read < 20_000
    assert reads.bytes < 22_000  # with headers
