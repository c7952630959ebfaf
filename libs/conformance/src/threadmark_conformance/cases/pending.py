"""Pending writes: the writes of tasks before their step is complete."""

from uuid import UUID, uuid4

from threadmark.ids import new_id
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, listed, pending

_LONG = "what a task says, at length, so that it is more than a row holds. " * 4


async def writes_come_back_with_their_checkpoint(world: World) -> None:
    run = Run(world.saver)
    earlier = await run.step({"a": 0})
    await run.step({"a": 1})
    await run.write(("a", [1, (2,)]), ("b", _LONG), task="t1")
    expected = [("t1", "a", [1, (2,)]), ("t1", "b", _LONG)]
    for saver in (world.saver, world.another()):
        assert await pending(saver, run.config) == expected
        assert await pending(saver, at("thread")) == expected
        assert await pending(saver, earlier) == []
        assert [item.pending_writes for item in await listed(saver, at("thread"))] == [expected, []]


async def writes_are_ordered_by_path_task_and_place(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    inputs = [("~2", "b"), ("~10", "c"), ("", "z"), ("~2", "a"), ("", "m"), ("~1", "y")]
    for path, task in inputs:
        await run.write(("x", path), ("y", task), ("x", 3), task=task, path=path)
    expected = [
        (task, channel, value)
        for path, task in sorted(inputs)
        for channel, value in (("x", path), ("y", task), ("x", 3))
    ]
    for saver in (world.saver, world.another()):
        assert await pending(saver, run.config) == expected


async def more_than_ten_writes_of_a_task_stay_in_order(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    await run.write(*[("a", number) for number in range(120)])
    assert [value for _, _, value in await pending(world.saver, run.config)] == list(range(120))


async def a_plain_write_is_kept_when_it_comes_again(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    await run.write(("a", 1), ("b", _LONG))
    await run.write(("a", 2), ("b", 3), ("c", 4))
    expected = [("task", "a", 1), ("task", "b", _LONG), ("task", "c", 4)]
    assert await pending(world.another(), run.config) == expected


async def a_special_write_is_replaced_when_it_comes_again(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    for channel in ("__error__", "__scheduled__", "__interrupt__", "__resume__"):
        for attempt in (1, _LONG, 3):
            await run.write((channel, attempt))
            assert ("task", channel, attempt) in await pending(world.saver, run.config)
    found = await pending(world.another(), run.config)
    assert sorted(found) == sorted(
        ("task", channel, 3) for channel in ("__error__", "__scheduled__", "__interrupt__", "__resume__")
    )


async def special_and_plain_writes_share_a_batch(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    await run.write(("a", 1), ("__interrupt__", "why?"), ("b", 2))
    await run.write(("a", 9), ("__interrupt__", "really?"), ("b", 9))
    found = await pending(world.saver, run.config)
    assert [item for item in found if item[1] != "__interrupt__"] == [("task", "a", 1), ("task", "b", 2)]
    assert [item for item in found if item[1] == "__interrupt__"] == [("task", "__interrupt__", "really?")]


async def of_two_special_writes_in_a_batch_the_last_counts(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    await run.write(("__resume__", 1), ("__resume__", 2))
    assert await pending(world.saver, run.config) == [("task", "__resume__", 2)]


async def tasks_do_not_touch_each_others_writes(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    for task in ("t", "t1", "T", str(UUID(int=7)), UUID(int=7).hex, str(UUID(int=10)).upper(), str(UUID(int=10))):
        await run.write(("a", task), ("__interrupt__", task), task=task)
    found = await pending(world.another(), run.config)
    assert len(found) == 14
    assert all(task == value for task, _, value in found)


async def writes_of_other_checkpoints_and_namespaces_stay_apart(world: World) -> None:
    shared = new_id()
    for ns in ("", "a", "ab"):
        await world.saver.aput(at("thread", ns), checkpoint(checkpoint_id=shared), {}, {})
        await world.saver.aput_writes(at("thread", ns, shared), [("x", ns)], "task")
    await world.saver.aput(at("other"), checkpoint(checkpoint_id=shared), {}, {})
    for ns in ("", "a", "ab"):
        assert await pending(world.another(), at("thread", ns, shared)) == [("task", "x", ns)]
    assert await pending(world.saver, at("other", "", shared)) == []


async def writes_may_arrive_before_their_checkpoint(world: World) -> None:
    made = checkpoint({"a": 1}, checkpoint_id=early_id(7))
    location = at("thread", "child", made["id"])
    await world.another().aput_writes(location, [("a", _LONG), ("__error__", "x")], "task")
    assert await world.saver.aget_tuple(location) is None
    assert await listed(world.saver, at("thread")) == []
    await world.saver.aput(at("thread", "child"), made, {}, {"a": 1})
    assert sorted(await pending(world.saver, location)) == [("task", "__error__", "x"), ("task", "a", _LONG)]


async def writes_for_a_checkpoint_of_another_process_arrive(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": _LONG})
    await world.another().aput_writes(run.config, [("a", _LONG)], "elsewhere")
    assert await pending(world.saver, run.config) == [("elsewhere", "a", _LONG)]


async def a_missing_namespace_is_the_root(world: World) -> None:
    config = await Run(world.saver).step()
    bare = at("thread", None, config["configurable"]["checkpoint_id"])
    await world.saver.aput_writes(bare, [("a", 1)], "task")
    assert await pending(world.saver, config) == [("task", "a", 1)]


async def no_writes_are_no_error(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    await run.write()
    assert await pending(world.saver, run.config) == []


async def writes_survive_their_checkpoint_being_put_again(world: World) -> None:
    made = checkpoint({"a": 1})
    config = await world.saver.aput(at("thread"), made, {}, {"a": 1})
    await world.saver.aput_writes(config, [("a", 2)], "task")
    await world.saver.aput(at("thread"), made, {"again": True}, {"a": 1})
    found = await got(world.another(), config)
    assert (found.metadata, found.pending_writes) == ({"again": True}, [("task", "a", 2)])


async def what_many_tasks_repeat_comes_back_whole(world: World) -> None:
    run = Run(world.saver)
    prompt = _LONG * 50
    await run.step({"prompt": prompt})
    tasks = sorted(str(uuid4()) for _ in range(16))
    for task in tasks:
        await run.write(("send", {"prompt": prompt, "task": task}), task=task)
    expected = [(task, "send", {"prompt": prompt, "task": task}) for task in tasks]
    assert await pending(world.another(), run.config) == expected
