"""Pruning: the removed and the readable checkpoints, and the bytes given back."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from threadmark.model import PruneReport
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, ids, listed, pending, values

_NOTHING = PruneReport(0, 0, 0, 0, 0)


def _text(number: int) -> str:
    return f"text {number} " * 40


async def the_newest_of_each_namespace_stays(world: World) -> None:
    newest = {}
    for thread in ("thread", "other"):
        for ns in ("", "child", "child2"):
            run = Run(world.saver, thread, ns)
            for number in range(4):
                await run.step({"a": _text(number), "n": number})
                await run.write(("a", number))
            newest[thread, ns] = run.config
    removed = await world.saver.aprune(["thread"])
    assert (removed.checkpoints, removed.writes) == (9, 9)
    for saver in (world.saver, world.another()):
        for config in newest.values():
            assert await values(saver, config) == {"a": _text(3), "n": 3}
            assert await pending(saver, config) == [("task", "a", 3)]
        assert len(await listed(saver, at("thread"))) == 3
        assert len(await listed(saver, at("other"))) == 12


async def the_newest_is_kept_by_rank(world: World) -> None:
    run = Run(world.saver)
    for number in (10, 500, 100):
        newest = await run.step({"a": number}, checkpoint_id=early_id(number))
    await world.saver.aprune(["thread"])
    assert [item.config for item in await listed(world.saver, at("thread"))] == [newest]


async def keep_last_keeps_as_many(world: World) -> None:
    for ns in ("", "child"):
        run = Run(world.saver, ns=ns)
        for number in range(6):
            await run.step({"a": _text(number)})
    for keep, removed in ((100, 0), (6, 0), (4, 4), (1, 6)):
        assert (await world.saver.aprune(["thread"], keep_last=keep)).checkpoints == removed
        for ns in ("", "child"):
            found = await listed(world.another(), at("thread", ns))
            expected = [{"a": _text(number)} for number in (5, 4, 3, 2, 1, 0)[: min(keep, 6)]]
            assert [item.checkpoint["channel_values"] for item in found] == expected


async def only_what_is_old_enough_goes(world: World) -> None:
    run = Run(world.saver)
    for number in range(4):
        await run.step({"a": number})
    assert await world.saver.aprune(["thread"], older_than=timedelta(days=1)) == _NOTHING._replace(threads=1)
    assert (await world.saver.aprune(["thread"], keep_last=3, older_than=timedelta(0))).checkpoints == 1
    assert (await world.saver.aprune(["thread"], older_than=timedelta(days=-1))).checkpoints == 2


async def deleting_by_strategy_leaves_nothing(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": _text(number)})
        await run.write(("a", _text(-number)))
    await world.saver.aput_writes(at("thread", "", early_id(1)), [("a", _text(99))], "early")
    removed = await world.saver.aprune(["thread"], strategy="delete")
    assert (removed.checkpoints, removed.writes) == (3, 4)
    assert await listed(world.another(), None) == []
    assert await world.another().aprune(["thread"], strategy="delete", dry_run=True) == _NOTHING


async def a_dry_run_says_what_would_go_and_leaves_it(world: World) -> None:
    run = Run(world.saver)
    for number in range(5):
        await run.step({"a": _text(number)})
        await run.write(("b", _text(number + 100)))
    before = await listed(world.saver, at("thread"))
    rules: Sequence[dict[str, Any]] = ({}, {"keep_last": 3}, {"strategy": "delete"})
    for options in rules:
        would = await world.saver.aprune(["thread"], dry_run=True, **options)
        assert would.checkpoints > 0
        assert would.size_bytes > 0
        assert await listed(world.another(), at("thread")) == before
        await world.saver.acopy_thread("thread", "copy")
        assert await world.saver.aprune(["copy"], **options) == would
        await world.saver.adelete_thread("copy")


async def nothing_to_prune_is_no_error(world: World) -> None:
    assert await world.saver.aprune([]) == _NOTHING
    assert await world.saver.aprune(["nobody"]) == _NOTHING
    assert await world.saver.aprune(["nobody"], strategy="delete") == _NOTHING
    assert await listed(world.saver, None) == []
    await Run(world.saver).step({"a": _text(1)})
    assert await world.saver.aprune(["thread", "nobody", "thread"]) == _NOTHING._replace(threads=1)
    assert (await world.saver.aprune(["nobody", "thread"], dry_run=True)).threads == 1
    assert (await world.saver.aprune(["nobody", "thread"], strategy="delete")).threads == 1


async def the_bytes_are_freed(world: World) -> None:
    run = Run(world.saver)
    for number in range(10):
        await run.step({"a": "".join(str(number * other) for other in range(1500))})
        await run.write(("a", "".join(str(number + other) for other in range(1500))))
    lone = Run(world.saver, "lone")
    await lone.step(run.values)
    await lone.write(("a", "".join(str(9 + other) for other in range(1500))))
    freed = await world.saver.aprune(["thread"])
    assert freed.size_bytes > 0
    held = await world.saver.aprune(["thread"], strategy="delete", dry_run=True)
    fresh = await world.saver.aprune(["lone"], strategy="delete", dry_run=True)
    assert held.size_bytes < 2 * fresh.size_bytes
    assert await world.another().aprune(["thread"]) == _NOTHING._replace(threads=1)


async def open_interrupts_stay(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": _text(number)})
        await run.write(("__interrupt__", _text(-number)), ("a", number), task=f"task {number}")
    await world.saver.aprune(["thread"])
    expected = [("task 2", "__interrupt__", _text(-2)), ("task 2", "a", 2)]
    assert await pending(world.another(), at("thread")) == expected


async def writes_that_wait_for_their_checkpoint_stay(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": _text(number)})
    coming = checkpoint(checkpoint_id=early_id(5))
    await world.saver.aput_writes(at("thread", "later", coming["id"]), [("a", _text(7))], "task")
    await world.saver.aprune(["thread"])
    config = await world.another().aput(at("thread", "later"), coming, {}, {})
    assert await pending(world.saver, config) == [("task", "a", _text(7))]


async def a_delta_channel_keeps_the_ancestors_it_is_read_from(world: World) -> None:
    run = Run(world.saver)
    await run.step({"other": 0}, unsaved=["d"])
    await run.step({"d": ["seed", _text(0)]})
    run.values.pop("d")
    for number in range(6):
        await run.write(("d", [_text(number)]), task=f"task {number}")
        counters = {"counters_since_delta_snapshot": {"d": [number + 1, number + 1]}}
        await run.step({"other": number}, metadata=counters, unsaved=["d"])
    before = await world.saver.aget_delta_channel_history(config=run.config, channels=["d"])
    assert len(before["d"]["writes"]) == 6
    for dry_run in (True, False):
        pruned = await world.saver.aprune(["thread"], dry_run=dry_run)
        assert (pruned.checkpoints, pruned.kept_for_deltas) == (1, 6)
    for saver in (world.saver, world.another()):
        assert await saver.aget_delta_channel_history(config=run.config, channels=["d"]) == before
        assert await values(saver, run.config) == {"other": 5}
    assert len(await listed(world.saver, at("thread"))) == 7


async def ancestors_are_kept_whatever_their_own_metadata_says(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["seed"]})
    run.values.pop("d")
    for number in range(4):
        await run.write(("d", number))
        await run.step(metadata={"counters_since_delta_snapshot": {"d": [4, 4]}} if number == 3 else {}, unsaved=["d"])
    before = await world.saver.aget_delta_channel_history(config=run.config, channels=["d"])
    assert (len(before["d"]["writes"]), before["d"]["seed"]) == (4, ["seed"])
    await world.saver.aprune(["thread"])
    assert await world.another().aget_delta_channel_history(config=run.config, channels=["d"]) == before


async def a_snapshot_lets_its_ancestors_go(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": [0]})
    run.values.pop("d")
    for number in range(3):
        await run.write(("d", number))
        counters = {"counters_since_delta_snapshot": {"d": [number + 1, number + 1]}}
        await run.step(metadata=counters, unsaved=["d"])
    await run.step({"d": [0, 0, 1, 2]}, metadata={"counters_since_delta_snapshot": {"d": [0, 0]}})
    await world.saver.aprune(["thread"])
    assert [item.config for item in await listed(world.saver, at("thread"))] == [run.config]


async def what_survives_reads_as_before_on_every_branch(world: World) -> None:
    root = Run(world.saver)
    await root.step({"a": _text(0), "b": _text(1)})
    branches = [root.fork(root.config) for _ in range(3)]
    for number in range(9):
        await branches[number % 3].step({"a": _text(number) + _text(0)})
    before = await listed(world.saver, at("thread"), limit=5)
    await world.saver.aprune(["thread"], keep_last=5)
    kept = [item.config for item in before]
    expected = [item if item.parent_config in kept else item._replace(parent_config=None) for item in before]
    assert [item.parent_config is None for item in expected] == [False, False, True, True, True]
    for saver in (world.saver, world.another()):
        after = await listed(saver, at("thread"))
        assert after == expected
        assert ids(after) == ids(before)


async def what_a_saver_remembers_of_pruned_checkpoints_is_not_relied_on(world: World) -> None:
    remembering = world.another()
    run = Run(world.saver)
    texts = ["".join(f"{number * other:x}" for other in range(1500)) for number in (7, 11, 13)]
    for text in texts:
        await run.step({"a": text})
        await remembering.aget_tuple(run.config)
    await world.saver.aprune(["thread"])
    await remembering.aput_writes(run.config, [("a", texts[0]), ("b", [texts[1]])], "task")
    assert await pending(world.another(), run.config) == [("task", "a", texts[0]), ("task", "b", [texts[1]])]
    child = checkpoint({"a": texts[1]}, {"a": 9})
    config = await remembering.aput(run.config, child, {}, {"a": 9})
    assert await values(world.another(), config) == {"a": texts[1]}


async def a_run_goes_on_after_a_prune(world: World) -> None:
    run, other = Run(world.saver), world.another()
    for number in range(4):
        await run.step({"a": _text(number), "kept": _text(50)})
        await other.aget_tuple(run.config)
    await other.aprune(["thread"])
    for number in range(4, 7):
        await run.step({"a": _text(number) + _text(0)})
        await run.write(("a", _text(1)))
        run.saver = other if run.saver is world.saver else world.saver
    assert await values(world.another(), run.config) == {"a": _text(6) + _text(0), "kept": _text(50)}
    assert await pending(world.another(), run.config) == [("task", "a", _text(1))]


async def a_fork_of_a_checkpoint_that_was_pruned_still_has_its_values(world: World) -> None:
    run = Run(world.saver)
    gone = await run.step({"a": _text(1), "b": _text(2)})
    await run.step({"a": _text(3)})
    await world.another().aprune(["thread"])
    late = checkpoint({"a": _text(1), "b": _text(2), "c": 1}, {"a": 1, "b": 1, "c": 1})
    config = await world.saver.aput(gone, late, {}, {"c": 1})
    assert await values(world.another(), config) == {"a": _text(1), "b": _text(2), "c": 1}
