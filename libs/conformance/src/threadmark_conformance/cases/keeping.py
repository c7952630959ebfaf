"""The option `keep_last`: a put removes older checkpoints, and the others read as before."""

from typing import Any

from threadmark.store.contract import Change
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, listed, pending, values

_LONG = "so much that it is a segment of its own. " * 30


async def a_put_leaves_so_many(world: World) -> None:
    for kept in (1, 2, 9):
        run = Run(world.with_rules(keep_last=kept), f"keeps {kept}")
        for number in range(30):
            config = await run.step({"a": f"{number} {_LONG}", "n": number})
            await run.write(("a", number))
            found = await listed(run.saver, at(f"keeps {kept}"))
            assert min(kept, number + 1) <= len(found) <= kept + kept // 8
            assert found[0].config == config
        assert await values(world.cold, at(f"keeps {kept}")) == {"a": f"29 {_LONG}", "n": 29}
        assert await pending(world.cold, config) == [("task", "a", 29)]
    assert (await world.saver.aprune(None, keep_last=10)).segments == 0


async def a_saver_without_a_memory_leaves_as_many(world: World) -> None:
    config: dict[str, Any] = at("thread", "")
    for number in range(12):
        saver = world.with_rules(keep_last=3)  # each put by another process
        config = await saver.aput(config, checkpoint({"a": f"{number} {_LONG}"}, {"a": number}), {}, {"a": number})
    assert len(await listed(world.saver, at("thread"))) == 3


async def open_interrupts_stay(world: World) -> None:
    run = Run(world.with_rules(keep_last=1))
    for number in range(3):
        await run.step({"a": number})
        for task in ("one", "two"):
            await run.write(("__interrupt__", f"{task} {number}"), task=task)
    assert await pending(world.cold, at("thread")) == [
        ("one", "__interrupt__", "one 2"),
        ("two", "__interrupt__", "two 2"),
    ]


async def delta_channels_read_as_without_it(world: World) -> None:
    runs = [Run(world.saver, "whole"), Run(world.with_rules(keep_last=1), "kept")]
    histories = []
    for run in runs:
        for snapshot in range(2):
            await run.step({"d": [snapshot, _LONG]})
            run.values.pop("d")
            for number in range(20):
                await run.write(("d", f"{snapshot} {number}"))
                counted = {"counters_since_delta_snapshot": {"d": [number + 1, number + 1]}}
                await run.step({"other": number}, unsaved=["d"], metadata=counted)
        histories.append(await world.cold.aget_delta_channel_history(config=run.config, channels=["d"]))
    assert histories[1] == histories[0]
    assert len(histories[1]["d"]["writes"]) == 20
    # The second snapshot with its twenty, and perhaps an eighth of those that had to be left before.
    assert 21 <= len(await listed(world.saver, at("kept"))) <= 21 + 21 // 8


async def calls_of_subgraphs_go_with_their_caller(world: World) -> None:
    saver = world.with_rules(keep_last=1)
    outer = Run(saver)
    for turn in range(5):
        await outer.step({"a": turn})
        call = Run(saver, ns=f"node:task {turn}")
        for number in range(3):
            parents = {"parents": {"": id_of(outer.config)}}
            await call.step({"b": number}, metadata=parents)
            await call.write(("__interrupt__", f"question {turn} {number}"))
    assert {ref[1:3] for ref in await saver.alist_checkpoint_refs()} == {
        ("", id_of(outer.config)),
        ("node:task 4", id_of(call.config)),
    }
    assert await pending(world.cold, call.config) == [("task", "__interrupt__", "question 4 2")]


async def what_was_just_put_is_never_removed(world: World) -> None:
    """A run on an older branch, under a clock that was set back, goes on."""
    saver = world.with_rules(keep_last=2)
    root = Run(saver)
    await root.step({"a": 0}, checkpoint_id=early_id(10))
    branch = root.fork(root.config)
    await root.step({"a": "ahead"}, checkpoint_id=early_id(90))
    await root.step({"a": "further ahead"}, checkpoint_id=early_id(99))
    for number in range(4):
        config = await branch.step({"a": f"{number} {_LONG}"}, checkpoint_id=early_id(20 + number))
        assert await values(world.cold, config) == {"a": f"{number} {_LONG}"}
    assert len(await listed(world.saver, at("thread"))) <= 3


async def a_survivor_names_no_parent_that_went(world: World) -> None:
    run = Run(world.with_rules(keep_last=1))
    for number in range(3):
        await run.step({"a": number})
    assert (await got(world.cold, run.config)).parent_config is None
    assert (await world.saver.averify()).problems == []


async def late_writes_do_not_pile_up(world: World) -> None:
    """A task's writes may come after their checkpoint was removed: they go with the next one."""
    saver = world.with_rules(keep_last=1)
    run = Run(saver)
    for number in range(8):
        before = run.config
        await run.step({"a": number}, checkpoint_id=early_id(number + 1))
        if number:
            await saver.aput_writes(before, [("a", f"late {number} {_LONG}")], "task")
            assert len(await saver.alist_orphan_writes()) == 1
    await run.step({"a": 8})
    assert await world.saver.alist_orphan_writes() == []
    assert (await world.saver.astats()).writes == 0


async def writes_of_a_call_that_is_over_do_not_pile_up(world: World) -> None:
    saver = world.with_rules(keep_last=1)
    outer = Run(saver)
    for turn in range(4):
        await outer.step({"a": turn}, checkpoint_id=early_id(10 * turn + 1))
        call = at("thread", f"node:task {turn}", early_id(10 * turn + 2))
        await saver.aput_writes(call, [("a", f"late {turn}")], "task")
    await outer.step({"a": "over"})
    assert await world.saver.alist_orphan_writes() == []


async def writes_that_wait_for_their_checkpoint_stay(world: World) -> None:
    run = Run(world.with_rules(keep_last=1))
    coming = [checkpoint() for _ in range(2)]
    for made in coming:
        await run.saver.aput_writes(at("thread", "", made["id"]), [("a", _LONG)], "early")
        await run.saver.aput_writes(at("thread", "memory", made["id"]), [("a", _LONG)], "early")
    for number in range(3):
        await run.step({"a": number})
    assert len(await world.saver.alist_orphan_writes()) == 4
    config = await run.saver.aput(run.config, coming[0], {}, {})
    assert await pending(world.cold, config) == [("early", "a", _LONG)]


async def damage_that_is_met_is_left_to_its_reader(world: World) -> None:
    run = Run(world.with_rules(keep_last=1))
    await run.step({"a": _LONG})

    def damage(store: Any) -> Any:
        rows = yield from store.rows("thread", [("", id_of(run.config))])
        broken = rows[0]._replace(check=bytes(len(rows[0].check)))
        yield from store.replace(Change("thread", None, rows[0].outline.created_at, {}, [broken], (), None))

    await world.in_store(damage)
    other = Run(run.saver)
    config = await other.step({"a": 1})
    assert await values(world.cold, config) == {"a": 1}
    await world.saver.adelete_thread("thread")
