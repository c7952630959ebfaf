"""Deleting threads and runs: all their data is removed, and late writes do not bring it back."""

import pytest

from threadmark.errors import ThreadDeletedError
from threadmark.model import PruneReport
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, listed, pending, values

_LONG = "what nobody needs any more, at a length that makes it a segment of its own. " * 8


async def a_deleted_thread_is_gone_in_every_namespace(world: World) -> None:
    for thread in ("thread", "other"):
        for ns in ("", "child"):
            run = Run(world.saver, thread, ns)
            await run.step({"a": _LONG + thread})
            await run.write(("a", _LONG))
    await world.saver.adelete_thread("thread")
    for saver in (world.saver, world.another()):
        assert await listed(saver, at("thread")) == []
        assert await saver.aget_tuple(at("thread", "child")) is None
        assert {item.config["configurable"]["thread_id"] for item in await listed(saver, None)} == {"other"}
        assert await values(saver, at("other", "child")) == {"a": _LONG + "other"}


async def deleting_matches_the_thread_whole(world: World) -> None:
    for thread in ("t", "t1", "T", "t%", "%"):
        await Run(world.saver, thread).step({"a": thread})
    await world.saver.adelete_thread("t%")
    await world.saver.adelete_thread("%")
    found = {item.config["configurable"]["thread_id"] for item in await listed(world.saver, None)}
    assert found == {"t", "t1", "T"}


async def deleting_what_is_not_there_does_nothing(world: World) -> None:
    await Run(world.saver).step()
    await world.saver.adelete_thread("nobody")
    await world.saver.adelete_thread("nobody")
    await world.saver.adelete_for_runs(["no run"])
    await world.saver.adelete_for_runs([])
    assert len(await listed(world.saver, None)) == 1


async def deleting_tells_whether_there_was_anything(world: World) -> None:
    for thread in ("thread", "other"):
        await Run(world.saver, thread).step({"a": _LONG})
    await world.saver.aput_writes(at("early", "", early_id(1)), [("a", 1)], "task")
    assert await world.saver.adelete_thread("thraed") is False
    for thread in ("thread", "early"):
        assert await world.another().adelete_thread(thread) is True
        assert await world.saver.adelete_thread(thread) is False
    assert (await world.saver.averify()).threads == 1


async def deleting_runs_tells_what_was_removed(world: World) -> None:
    for thread in ("one", "two"):
        run = Run(world.saver, thread)
        for run_id in ("r1", "r2", "r1", "r3"):
            await run.step({"a": f"{run_id}{_LONG}"}, metadata={"run_id": run_id})
            await run.write(("a", 1))
    assert await world.saver.adelete_for_runs(["r9"]) == PruneReport(0, 0, 0, 0, 0)
    removed = await world.saver.adelete_for_runs(["r1", "r2", "r9"])
    assert removed[:3] == (2, 6, 6)


async def a_thread_may_be_deleted_by_its_number(world: World) -> None:
    await Run(world.saver, 7).step()
    await world.saver.adelete_thread(7)  # type: ignore[arg-type]  # an int names the same thread as its text
    assert await listed(world.saver, None) == []


async def deleting_leaves_no_bytes(world: World) -> None:
    run = Run(world.saver)
    for number in range(5):
        await run.step({"a": f"{number}{_LONG}"})
        await run.write(("a", f"{_LONG}{number}"))
    held = await world.saver.aprune(["thread"], strategy="delete", dry_run=True)
    assert held.segments > 0
    await world.saver.adelete_thread("thread")
    left = await world.another().aprune(["thread"], strategy="delete", dry_run=True)
    assert left == PruneReport(0, 0, 0, 0, 0)


async def a_late_write_does_not_bring_a_deleted_thread_back(world: World) -> None:
    late, run = world.another(), Run(world.saver)
    config = await run.step({"a": _LONG})
    await late.aget_tuple(config)
    await world.saver.adelete_thread("thread")
    for saver in (world.saver, late, world.another()):
        with pytest.raises(ThreadDeletedError, match="deleted"):
            await saver.aput_writes(config, [("a", _LONG)], "late")
        with pytest.raises(ThreadDeletedError, match="deleted"):
            await saver.aput(config, checkpoint({"a": _LONG, "b": 1}), {}, {"b": 1})
        assert await listed(saver, None) == []
        assert await saver.aget_tuple(config) is None


async def a_late_write_for_a_checkpoint_that_was_never_put_is_refused_too(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    coming = at("thread", "", early_id(9))
    await world.saver.aput_writes(coming, [("a", 1)], "task")
    await world.saver.adelete_thread("thread")
    with pytest.raises(ThreadDeletedError, match="deleted"):
        await world.saver.aput_writes(coming, [("a", 2)], "task")


async def a_thread_pruned_whole_is_not_brought_back_either(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    await world.saver.aprune(["thread"], strategy="delete")
    with pytest.raises(ThreadDeletedError, match="deleted"):
        await world.another().aput_writes(config, [("a", 2)], "late")
    assert await listed(world.saver, None) == []


async def a_run_whose_last_checkpoint_was_removed_before_the_thread_does_not_bring_it_back(world: World) -> None:
    # Ids tell their time, or are whatever the caller chooses as long as they grow.
    for thread, ids in (("times", [early_id(number) for number in range(3)]), ("names", ["a", "b", "c"])):
        run = Run(world.saver, thread)
        first, _, last = [await run.step({"a": number}, checkpoint_id=each) for number, each in enumerate(ids)]
        for config in (first, last):
            assert await world.saver.adelete_checkpoint(config)
        await world.saver.adelete_thread(thread)
        for saver in (world.saver, world.another()):
            with pytest.raises(ThreadDeletedError, match="deleted"):
                await saver.aput(last, checkpoint({"a": _LONG}), {}, {"a": 9})
            with pytest.raises(ThreadDeletedError, match="deleted"):
                await saver.aput_writes(last, [("a", 1)], "late")
        assert await world.saver.aget_thread(thread) is None


async def a_checkpoint_that_was_on_its_way_does_not_bring_a_deleted_thread_back(world: World) -> None:
    run = Run(world.saver)
    config = await run.step({"a": 1})
    coming = checkpoint({"a": 2})
    its_config = at("thread", "", coming["id"])
    await world.saver.adelete_thread("thread")
    # The writes of its tasks may come before it does, and its successors after it was refused.
    for saver in (world.saver, world.another()):
        with pytest.raises(ThreadDeletedError, match="deleted"):
            await saver.aput_writes(its_config, [("a", 1)], "task")
        with pytest.raises(ThreadDeletedError, match="deleted"):
            await saver.aput(config, coming, {}, {"a": 2})
        with pytest.raises(ThreadDeletedError, match="deleted"):
            await saver.aput(its_config, checkpoint({"a": 3}), {}, {"a": 3})
    assert await world.saver.aget_thread("thread") is None
    fresh = checkpoint({"a": 1})
    await world.saver.aput_writes(at("thread", "", fresh["id"]), [("a", 1)], "task")
    await world.saver.aput(at("thread", ""), fresh, {}, {"a": 1})
    assert len(await listed(world.saver, at("thread"))) == 1


async def a_deleted_thread_can_be_started_again(world: World) -> None:
    other = world.another()
    old = await Run(world.saver).step({"a": _LONG, "old": 1})
    assert await values(other, old) == {"a": _LONG, "old": 1}
    await world.saver.adelete_thread("thread")
    for saver in (world.saver, other):
        run = Run(saver)
        await run.step({"a": _LONG})
        await run.step({"b": _LONG})
        await run.write(("a", _LONG))
        assert await values(world.another(), run.config) == {"a": _LONG, "b": _LONG}
        assert await pending(world.another(), run.config) == [("task", "a", _LONG)]
    assert len(await listed(world.saver, at("thread"))) == 4
    with pytest.raises(ThreadDeletedError, match="deleted"):
        await other.aput_writes(old, [("a", 1)], "late")


async def what_another_process_deleted_is_not_relied_on(world: World) -> None:
    forgetful, other = Run(world.saver), world.another()
    await forgetful.step({"a": _LONG})
    await other.adelete_thread("thread")
    await Run(other).step({"x": 1})
    fresh = Run(world.saver)
    await fresh.step({"a": _LONG})
    assert await values(world.another(), fresh.config) == {"a": _LONG}


async def a_checkpoint_stored_again_is_continued_from_where_its_bytes_lie_now(world: World) -> None:
    run, other = Run(world.saver), world.another()
    await run.step({f"channel {number}": number for number in range(40)})
    second = await run.step({"channel 1": 100})
    made = (await got(world.saver, second)).checkpoint
    await other.adelete_thread("thread")
    await other.aput(at("thread"), made, {}, made["channel_versions"])
    assert await values(world.saver, second) == run.values
    third = await run.step({"channel 2": 200})
    assert await values(world.another(), third) == run.values


async def runs_are_deleted_across_threads(world: World) -> None:
    for thread in ("one", "two", "three"):
        run = Run(world.saver, thread)
        for number, run_id in enumerate(("r1", "r2", "r1")):
            await run.step({"a": f"{number}{_LONG}"}, metadata={"run_id": run_id})
            await run.write(("a", number))
    await world.saver.adelete_for_runs(["r1", "r3", "r1"])
    found = await listed(world.another(), None)
    assert [item.metadata["run_id"] for item in found] == ["r2"] * 3
    assert [item.checkpoint["channel_values"] for item in found] == [{"a": f"1{_LONG}"}] * 3
    assert [item.pending_writes for item in found] == [[("task", "a", 1)]] * 3
    held = await world.saver.aprune(["one"], strategy="delete", dry_run=True)
    await world.saver.adelete_for_runs(["r2"])
    assert await listed(world.saver, None) == []
    assert held.checkpoints == 1


async def a_run_is_matched_whole_and_by_type(world: World) -> None:
    for run_id in ("r", "r1", "R", 1, True, None, ["r"], "1"):
        await world.saver.aput(at(repr(run_id)), checkpoint(), {"run_id": run_id}, {})
    await world.saver.adelete_for_runs(["r", "1"])
    left = {item.config["configurable"]["thread_id"] for item in await listed(world.saver, None)}
    assert left == {"'r1'", "'R'", "1", "True", "None", "['r']"}


async def deleting_runs_keeps_what_a_surviving_delta_channel_is_read_from(world: World) -> None:
    run = Run(world.saver)
    await run.step({"seed": 1, "d": ["seed"]}, metadata={"run_id": "old"})
    run.values.pop("d")
    for number in range(3):
        await run.write(("d", number))
        counters = {"counters_since_delta_snapshot": {"d": [number + 1, number + 1]}}
        await run.step(metadata={"run_id": "old" if number < 2 else "new", **counters}, unsaved=["d"])
    before = await world.saver.aget_delta_channel_history(config=run.config, channels=["d"])
    await world.saver.adelete_for_runs(["old"])
    after = await world.another().aget_delta_channel_history(config=run.config, channels=["d"])
    assert before == after
    assert [value for _, _, value in after["d"]["writes"]] == [0, 1, 2]
    assert after["d"]["seed"] == ["seed"]


async def an_id_that_was_deleted_with_its_run_can_be_put_again(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": _LONG}, metadata={"run_id": "kept"})
    parent = run.config
    config = await run.step({"a": _LONG + "2"}, metadata={"run_id": "gone"})
    await world.saver.adelete_for_runs(["gone"])
    assert await world.saver.aget_tuple(config) is None
    again = checkpoint({"a": _LONG + "3"}, {"a": 2}, checkpoint_id=id_of(config))
    assert await world.saver.aput(parent, again, {}, {"a": 2}) == config
    assert await values(world.another(), config) == {"a": _LONG + "3"}
