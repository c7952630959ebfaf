"""Deleting one checkpoint: the others read as before, and one that they need stays."""

from typing import Any

import pytest

from threadmark.errors import ConfigError, ConflictError, ThreadDeletedError
from threadmark.model import CheckpointTuple
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, early_id, id_of, ids, listed, pending, values

_LONG = "what one checkpoint holds, at a length that makes it a segment of its own. " * 8


async def _history(world: World, count: int = 5) -> list[dict[str, Any]]:
    run = Run(world.saver)
    configs = []
    for number in range(count):
        configs.append(await run.step({"a": f"{number}{_LONG}", "b": _LONG}))
        await run.write(("a", number))
    return configs


async def _segments(world: World) -> int:
    return (await world.cold.aprune(["thread"], strategy="delete", dry_run=True)).segments


async def one_checkpoint_goes_and_the_others_read_as_before(world: World) -> None:
    remembering = world.another()
    for gone in range(5):
        configs = await _history(world)
        before = await listed(remembering, at("thread"))
        assert await world.saver.adelete_checkpoint(configs[gone]) is True
        expected = [_without_parent(item, id_of(configs[gone])) for item in before if item.config != configs[gone]]
        for saver in (world.saver, remembering, world.cold):
            assert await saver.aget_tuple(configs[gone]) is None
            assert await listed(saver, at("thread")) == expected
            assert await saver.aget_tuple(at("thread")) == expected[0]
        await world.assert_sound("thread")
        await world.saver.adelete_thread("thread")


def _without_parent(item: CheckpointTuple, gone: str) -> CheckpointTuple:
    parent = item.parent_config
    return item._replace(parent_config=None) if parent is not None and id_of(parent) == gone else item


async def its_bytes_are_freed(world: World) -> None:
    run = Run(world.saver)
    texts = ["".join(f"{number} {index} " for index in range(99)) for number in range(3)]
    configs = [await run.step({"a": text}) for text in texts]
    held = await _segments(world)
    assert await world.saver.adelete_checkpoint(configs[1]) is True
    assert await _segments(world) < held
    assert (await world.saver.averify()).problems == []  # an orphan would be one


async def a_run_goes_on_from_a_checkpoint_whose_ancestors_went(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step({"a": f"{number}{_LONG}"}) for number in range(4)]
    for config in configs[:3]:
        await world.another().adelete_checkpoint(config)
    await run.step({"a": f"next{_LONG}"})
    assert await values(world.cold, run.config) == {"a": f"next{_LONG}"}
    assert ids(await listed(world.cold, at("thread"))) == [id_of(run.config), id_of(configs[3])]


async def deleting_a_checkpoint_tells_whether_there_was_one(world: World) -> None:
    configs = await _history(world)
    before = await listed(world.cold, at("thread"))
    for missing in (at("nobody", "", early_id(1)), at("thread", "", early_id(1)), at("thread", "a", id_of(configs[0]))):
        assert await world.saver.adelete_checkpoint(missing) is False
    for config in (at("thread"), at("thread", ""), {"configurable": {"checkpoint_id": early_id(1)}}):
        with pytest.raises(ConfigError):
            await world.saver.adelete_checkpoint(config)
    assert await listed(world.cold, at("thread")) == before
    assert await world.saver.adelete_checkpoint(configs[2]) is True
    assert await world.another().adelete_checkpoint(configs[2]) is False


async def another_namespace_keeps_a_checkpoint_of_the_same_id(world: World) -> None:
    for ns in ("", "child"):
        run = Run(world.saver, ns=ns)
        await run.step({"a": ns + _LONG}, checkpoint_id=early_id(1))
        await run.write(("b", ns), task="task")
        await Run(world.saver, ns=ns).step({"a": ns + _LONG}, checkpoint_id=early_id(2))
    assert await world.saver.adelete_checkpoint(at("thread", "child", early_id(1))) is True
    assert await values(world.cold, at("thread", "", early_id(1))) == {"a": _LONG}
    assert await pending(world.cold, at("thread", "", early_id(1))) == [("task", "b", "")]
    assert ids(await listed(world.cold, at("thread", "child"))) == [early_id(2)]


async def a_thread_goes_with_its_last_checkpoint(world: World) -> None:
    configs = await _history(world, 2)
    await world.saver.aupdate_thread("thread", title="a title")
    for config in configs:
        assert await world.saver.aget_thread("thread") is not None
        assert await world.saver.adelete_checkpoint(config) is True
    assert await world.saver.aget_thread("thread") is None
    assert tuple(await world.cold.astats("thread"))[:4] == (0, 0, 0, 0)
    with pytest.raises(ThreadDeletedError, match="deleted"):
        await world.another().aput_writes(configs[1], [("a", 1)], "late")


async def a_checkpoint_stays_that_a_delta_channel_is_read_from(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step({"d": ["seed", _LONG]})]
    run.values.pop("d")
    counted = {"counters_since_delta_snapshot": {"d": [1, 1]}}
    for number in range(3):
        await run.write(("d", f"{number}{_LONG}"))
        configs.append(await run.step(unsaved=["d"], metadata=counted))
    before = await listed(world.cold, at("thread"))
    for config in configs[:3]:
        with pytest.raises(ConflictError, match="later checkpoints are read from it"):
            await world.saver.adelete_checkpoint(config)
    assert await listed(world.cold, at("thread")) == before
    for config in reversed(configs):
        assert await world.saver.adelete_checkpoint(config) is True
    assert await world.saver.aget_thread("thread") is None


async def a_checkpoint_stays_while_a_question_waits_there(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 0})
    asked = await run.step({"a": 1})
    await run.write(("__interrupt__", ["which one?"]))
    with pytest.raises(ConflictError, match="a question waits"):
        await world.another().adelete_checkpoint(asked)
    await run.write(("__resume__", "that one"))
    await run.step({"a": 2})
    assert await world.saver.adelete_checkpoint(asked) is True
    assert len(await listed(world.cold, at("thread"))) == 2


async def the_calls_that_an_open_question_needs_stay(world: World) -> None:
    outer = Run(world.saver)
    caller = await outer.step({"a": 0})
    call = Run(world.saver, ns="node:task")
    first = await call.step({"a": 1}, metadata={"parents": {"": id_of(caller)}})
    newest = await call.step({"a": 2}, metadata={"parents": {"": id_of(caller)}})
    await outer.write(("__interrupt__", ["which one?"]))  # the call stopped before a node, and asked nothing itself
    for config in (caller, newest):
        with pytest.raises(ConflictError, match="a question waits"):
            await world.saver.adelete_checkpoint(config)
    assert await world.saver.adelete_checkpoint(first) is True
    await outer.step({"a": 3})
    assert await world.saver.adelete_checkpoint(caller) is True
    assert [item.config for item in await listed(world.cold, at("thread"))] == [outer.config]
