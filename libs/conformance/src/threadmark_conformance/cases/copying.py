"""Copying a thread: the copy is complete and independent of the source."""

import asyncio

from threadmark.model import CheckpointTuple
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, id_of, listed, pending, values

_LONG = "what both threads hold, long enough to be a segment of its own. " * 8


async def a_copy_holds_everything(world: World) -> None:
    for ns in ("", "child"):
        run = Run(world.saver, "source", ns)
        for number in range(4):
            await run.step({"a": f"{number}{_LONG}", "n": number}, metadata={"mine": number})
            await run.write(("a", _LONG), ("__interrupt__", number), path=str(number))
    assert await world.saver.acopy_thread("source", "target") is True
    assert await world.another().acopy_thread("source", "source") is True
    expected = [_in_thread(item, "target") for item in await listed(world.saver, at("source"))]
    assert len(expected) == 8
    for saver in (world.saver, world.another()):
        assert await listed(saver, at("target")) == expected
        assert len(await listed(saver, at("source"))) == 8


async def the_runs_of_a_copy_are_found(world: World) -> None:
    run = Run(world.saver, "source")
    for run_id in ("r1", "r2"):
        await run.step({"a": run_id}, metadata={"run_id": run_id})
    await world.saver.acopy_thread("source", "target")
    await world.another().adelete_for_runs(["r1"])
    assert [item.metadata["run_id"] for item in await listed(world.saver, None)] == ["r2"] * 2


async def a_copy_outlives_its_source(world: World) -> None:
    run = Run(world.saver, "source")
    for number in range(4):
        await run.step({"a": f"{number}{_LONG}"})
        await run.write(("a", _LONG))
    await world.saver.acopy_thread("source", "target")
    before = await listed(world.saver, at("target"))
    await world.saver.adelete_thread("source")
    for saver in (world.saver, world.another()):
        assert await listed(saver, at("target")) == before
        assert await listed(saver, at("source")) == []


async def a_source_outlives_its_copy(world: World) -> None:
    run = Run(world.saver, "source")
    for number in range(4):
        await run.step({"a": f"{number}{_LONG}"})
    await world.saver.acopy_thread("source", "target")
    before = await listed(world.saver, at("source"))
    await world.saver.aprune(["target"])
    assert await listed(world.saver, at("source")) == before
    await world.saver.adelete_thread("target")
    assert await listed(world.another(), at("source")) == before


async def both_go_on_apart(world: World) -> None:
    run = Run(world.saver, "source")
    await run.step({"a": _LONG})
    await world.saver.acopy_thread("source", "target")
    copied = Run(world.saver, "target").fork(at("target", "", id_of(run.config)))
    copied.values, copied.versions = dict(run.values), dict(run.versions)
    await run.step({"a": _LONG + "source"})
    await copied.step({"a": _LONG + "target"})
    assert await values(world.another(), at("source")) == {"a": _LONG + "source"}
    assert await values(world.another(), at("target")) == {"a": _LONG + "target"}


async def a_copy_costs_the_bytes_once(world: World) -> None:
    run = Run(world.saver, "source")
    for number in range(6):
        await run.step({"a": _LONG + str(number)})
    await world.saver.acopy_thread("source", "target")
    source, target = [
        await world.saver.aprune([thread], strategy="delete", dry_run=True) for thread in ("source", "target")
    ]
    assert source == target
    await world.saver.acopy_thread("source", "target")
    assert await world.saver.aprune(["target"], strategy="delete", dry_run=True) == target


async def copying_an_unknown_thread_does_nothing(world: World) -> None:
    await Run(world.saver, "target").step({"a": 1})
    assert await world.saver.acopy_thread("nobody", "target") is False
    assert await world.saver.acopy_thread("nobody", "new") is False
    assert await world.saver.acopy_thread("nobody", "nobody") is False
    assert len(await listed(world.saver, None)) == 1


async def a_deleted_thread_is_an_unknown_one(world: World) -> None:
    await Run(world.saver, "source").step({"a": 1})
    await world.saver.adelete_thread("source")
    await world.saver.acopy_thread("source", "target")
    assert await listed(world.saver, None) == []


async def copying_onto_itself_does_nothing(world: World) -> None:
    run = Run(world.saver, 7)
    await run.step({"a": _LONG})
    await run.write(("a", 1))
    before = await listed(world.saver, None)
    await world.saver.acopy_thread(7, "7")  # type: ignore[arg-type]  # an int names the same thread as its text
    assert await listed(world.another(), None) == before


async def what_the_target_held_stays_beside_the_copy(world: World) -> None:
    shared = early_id(1)
    for thread in ("source", "target"):
        made = checkpoint({"a": thread + _LONG}, checkpoint_id=shared)
        await world.saver.aput(at(thread), made, {"of": thread}, {"a": 1})
    mine = await Run(world.saver, "target").step({"a": "mine" + _LONG})
    await world.saver.acopy_thread("source", "target")
    saver = world.another()
    assert await values(saver, at("target", "", shared)) == {"a": "source" + _LONG}
    assert await values(saver, mine) == {"a": "mine" + _LONG}
    assert len(await listed(saver, at("target"))) == 2


async def no_write_of_a_task_that_wrote_to_both_is_lost(world: World) -> None:
    config = at("source")
    made = checkpoint({})
    stored = await world.saver.aput(config, made, {}, {})
    await world.saver.aput(at("target"), made, {}, {})
    await world.saver.aput_writes(stored, [("x", _LONG), ("y", f"second {_LONG}"), ("z", 3)], "task")
    in_target = {"configurable": {**stored["configurable"], "thread_id": "target"}}
    await world.saver.aput_writes(in_target, [("x", 9)], "task")
    for _ in range(2):  # a second copy changes nothing
        await world.saver.acopy_thread("source", "target")
        for saver in (world.saver, world.another()):
            found = await saver.aget_tuple(at("target"))
            assert found is not None
            assert found.pending_writes == [("task", "x", 9), ("task", "y", f"second {_LONG}"), ("task", "z", 3)]
        assert (await world.saver.averify("target")).problems == []


async def a_long_thread_is_copied_whole(world: World) -> None:
    made = [checkpoint({"n": number}, checkpoint_id=early_id(number)) for number in range(600)]
    await asyncio.gather(*(world.saver.aput(at("source"), each, {}, {"n": 1}) for each in made))
    await world.saver.acopy_thread("source", "target")
    found = await listed(world.saver, at("target"))
    assert [item.checkpoint["channel_values"]["n"] for item in found] == list(range(599, -1, -1))


async def writes_without_their_checkpoint_are_copied(world: World) -> None:
    await Run(world.saver, "source").step()
    coming = checkpoint(checkpoint_id=early_id(3))
    await world.saver.aput_writes(at("source", "", coming["id"]), [("a", _LONG)], "task")
    await world.saver.acopy_thread("source", "target")
    config = await world.saver.aput(at("target"), coming, {}, {})
    assert await pending(world.another(), config) == [("task", "a", _LONG)]


def _in_thread(item: CheckpointTuple, thread_id: str) -> CheckpointTuple:
    config = at(thread_id, item.config["configurable"]["checkpoint_ns"], id_of(item.config))
    parent = item.parent_config
    if parent is not None:
        parent = at(thread_id, parent["configurable"]["checkpoint_ns"], id_of(parent))
    return item._replace(config=config, parent_config=parent)
