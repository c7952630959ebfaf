"""The checkpoints that survive a removal read as before: the ancestors that they need stay."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from threadmark.saver import Saver
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, got, id_of, ids, listed, pending, values

_LONG = "what a task adds to the channel, at length. " * 8
_SENDS = "__pregel_tasks"


class _DeltaSnapshot(NamedTuple):
    """A snapshot as LangGraph stores one."""

    value: Any


def _counted(channel: str) -> dict[str, Any]:
    return {"counters_since_delta_snapshot": {channel: [1, 1]}}


async def a_delta_channel_is_known_by_what_any_step_counted(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["seed", _LONG]}, metadata={"run_id": "old"})
    run.values.pop("d")
    await run.write(("d", 1))
    await run.step(unsaved=["d"], metadata={"run_id": "old", **_counted("d")})
    await run.step({"other": 2}, metadata={"run_id": "old"})
    await run.step(unsaved=["d"], metadata={"source": "update"})  # by hand, for which older releases count nothing
    await _stays_as_it_is(world, run, checkpoints=4)


async def a_delta_channel_is_known_by_its_last_snapshot(world: World) -> None:
    run = Run(world.saver)
    await run.step({"x": 1}, metadata={"run_id": "old"})
    await run.step({"d": _DeltaSnapshot(["seed", _LONG])}, metadata={"run_id": "old"})
    run.values.pop("d")
    await run.step({"x": 2}, unsaved=["d"], metadata={"run_id": "old"})
    await run.step(unsaved=["d"], metadata={"source": "input"})
    await _stays_as_it_is(world, run, checkpoints=3)


async def a_delta_channel_is_known_by_what_was_written_and_not_stored(world: World) -> None:
    run = Run(world.saver)
    await run.step(metadata={"run_id": "old"})  # a thread that begins by hand has no snapshot and no counters
    await run.write(("d", [1, _LONG]))
    await run.step({"other": 1}, unsaved=["d"], metadata={"run_id": "old"})
    await run.step({"other": 2}, unsaved=["d"], metadata={"source": "update"})
    await _stays_as_it_is(world, run, checkpoints=3)


async def a_delta_channel_keeps_the_whole_value_that_it_began_from(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["too old"]}, metadata={"run_id": "old"})
    await run.step({"d": ["an ordinary list", _LONG]}, metadata={"run_id": "old"})
    run.values.pop("d")
    await run.step(unsaved=["d"], metadata={"run_id": "old"})
    await run.write(("d", [1]))
    await run.step(unsaved=["d"], metadata={"source": "update"})
    await _stays_as_it_is(world, run, checkpoints=3)


async def every_branch_keeps_the_delta_channels_it_reads(world: World) -> None:
    root = Run(world.saver)
    await root.step({"d": _DeltaSnapshot([0])})
    root.values.pop("d")
    branches = []
    for name in ("left", "middle", "right"):
        branch = root.fork(root.config)
        for number in range(40):  # a long way back, which is read in several reaches
            await branch.write(("d", f"{name} {number}"))
            await branch.step({"other": number}, unsaved=["d"])
        branches.append(branch)
    before = [await _histories(world.saver, branch.config) for branch in branches]
    await world.saver.aprune(["thread"], keep_last=45)
    assert len(await listed(world.saver, at("thread"))) == 1 + 40 + 40
    for branch, expected in zip(branches[1:], before[1:], strict=True):
        assert await _histories(world.another(), branch.config) == expected
    assert await world.saver.aget_tuple(branches[0].config) is None


async def an_empty_channel_keeps_nothing(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    for number in range(4):
        await run.write(("branch:to:node", None), ("hint", _LONG))
        await run.step({"branch:to:node": None, "hint": _LONG, "__start__": number})
        for channel in ("branch:to:node", "hint", "__start__"):
            run.values.pop(channel)
        await run.write(("a", number))
        await run.step({"a": number}, unsaved=["branch:to:node", "hint", "__start__"])
    await world.saver.aprune(["thread"])
    assert [item.config for item in await listed(world.another(), at("thread"))] == [run.config]


async def packets_of_an_old_format_keep_the_parent_that_holds_them(world: World) -> None:
    for thread in ("pruned", "stripped"):
        config: dict[str, Any] = at(thread, "")
        for number in range(3):
            made = checkpoint({"a": number}, v=3)
            config = await world.saver.aput(config, made, {"run_id": "old" if number < 2 else "new"}, {"a": 1})
            if number == 1:
                await world.saver.aput_writes(config, [(_SENDS, ["a packet", _LONG]), ("a", 2)], "task")
        before = await got(world.saver, config)
        assert before.parent_config is not None
        sent = await pending(world.saver, before.parent_config)
        if thread == "pruned":
            assert (await world.saver.aprune([thread])).checkpoints == 1
        else:
            await world.saver.adelete_for_runs(["old"])
        assert await got(world.another(), config) == before
        assert await pending(world.another(), before.parent_config) == sent
        assert len(await listed(world.saver, at(thread))) == 2


async def packets_keep_no_parent_where_nobody_reads_them_there(world: World) -> None:
    cases: Sequence[tuple[int, dict[str, Any], str]] = [
        (4, {}, _SENDS),
        (3, {_SENDS: ["in the checkpoint itself"]}, _SENDS),
        (3, {}, "another channel"),
    ]
    for number, (form, held, channel) in enumerate(cases):
        config = await world.saver.aput(at(str(number), ""), checkpoint({}, v=form), {}, {})
        await world.saver.aput_writes(config, [(channel, "a packet")], "task")
        head = await world.saver.aput(config, checkpoint(held, v=form), {}, {})
        await world.saver.aprune([str(number)])
        assert [item.config for item in await listed(world.saver, at(str(number)))] == [head]


async def a_survivor_names_no_parent_that_went(world: World) -> None:
    remembering = world.another()
    run = Run(world.saver)
    for number in range(5):
        await run.step({"a": f"{number} {_LONG}"}, metadata={"run_id": f"run {number}"})
        await run.write(("a", number))
        await remembering.aget_tuple(run.config)
    before = await listed(world.saver, at("thread"))
    await world.saver.aprune(["thread"], keep_last=4)
    await world.saver.adelete_for_runs(["run 2"])
    expected = [
        before[0],
        before[1]._replace(parent_config=None),
        before[3]._replace(parent_config=None),
    ]
    for saver in (world.saver, remembering, world.another()):
        assert await listed(saver, at("thread")) == expected
        assert await got(saver, before[1].config) == expected[1]
    assert (await world.saver.averify()).problems == []


async def a_dry_run_leaves_parents_as_they_are(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": number})
    before = await listed(world.saver, at("thread"))
    await world.saver.aprune(["thread"], dry_run=True)
    assert await listed(world.another(), at("thread")) == before


async def hundreds_of_survivors_lose_their_parent_at_once(world: World) -> None:
    root = Run(world.saver)
    parent = await root.step({"a": _LONG}, metadata={"run_id": "root"})
    for number in range(300):
        await world.saver.aput(parent, checkpoint({"a": _LONG, "n": number}), {}, {"n": 1})
    before = await listed(world.saver, at("thread"))
    await world.saver.adelete_for_runs(["root"])
    after = await listed(world.another(), at("thread"))
    assert after == [item._replace(parent_config=None) for item in before[:-1]]


async def a_run_goes_on_from_a_survivor_without_a_parent(world: World) -> None:
    run, other = Run(world.saver), world.another()
    for number in range(3):
        await run.step({"a": f"{number} {_LONG}"})
    await other.aprune(["thread"])
    head = run.config
    await run.step({"b": 1})
    after = await listed(world.another(), at("thread"))
    assert [item.config for item in after] == [run.config, head]
    assert (after[0].parent_config, after[1].parent_config) == (head, None)
    assert await values(world.another(), run.config) == {"a": f"2 {_LONG}", "b": 1}


async def a_survivor_keeps_its_place_in_the_order(world: World) -> None:
    run = Run(world.saver)
    for number in (50, 40, 90, 10):
        await run.step({"a": number}, checkpoint_id=f"{number}", metadata={"run_id": f"run {number}"})
    order = ids(await listed(world.saver, at("thread")))
    await world.saver.adelete_for_runs(["run 90"])
    assert ids(await listed(world.another(), at("thread"))) == [each for each in order if each != "90"]
    newest = await got(world.another(), at("thread"))
    assert (id_of(newest.config), newest.parent_config) == ("10", None)


async def _stays_as_it_is(world: World, run: Run, *, checkpoints: int) -> None:
    """Check that the head of the thread reads its delta channel as before, however its ancestors are removed."""
    before = await got(world.saver, run.config), await _histories(world.saver, run.config)
    await world.saver.acopy_thread("thread", "copy")
    await world.saver.aprune(["thread"])
    after = await got(world.another(), run.config), await _histories(world.another(), run.config)
    assert after == before
    assert len(await listed(world.saver, at("thread"))) == checkpoints
    await world.saver.adelete_for_runs(["old"])
    assert await _histories(world.another(), run.config) == before[1]
    await world.saver.adelete_thread("thread")
    await world.saver.adelete_for_runs(["old"])
    assert await _histories(world.another(), at("copy", "", id_of(run.config))) == before[1]
    assert len(await listed(world.saver, at("copy"))) == checkpoints


async def _histories(saver: Saver, config: Any) -> Any:
    return dict(await saver.aget_delta_channel_history(config=config, channels=["d"]))
