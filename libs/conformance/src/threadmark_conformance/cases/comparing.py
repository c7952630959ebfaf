"""The data by which two databases are compared: how far threads were copied, sums over rows, and marks of single rows.

A backend whose store lacks these operations runs `WITHOUT_REPLICATION` in place of `CASES`.
"""

from operator import methodcaller
from typing import Any

from threadmark.store.contract import ANYONE, NEVER, Change, Follows, now
from threadmark.store.replica import LONG_MARK, MARK_BYTES, Copied, Replica, ReplicaStore, RowMarks
from threadmark_conformance.backend import World
from threadmark_conformance.base_store import MANY, ODD_NAMES, ask, come, outbox, summaries
from threadmark_conformance.engine import Run, at, early_id
from threadmark_conformance.recording import Recording


async def how_far_threads_have_come_is_kept(world: World) -> None:
    last = {name: Copied(now() * 2 + 1, number) for number, name in enumerate(ODD_NAMES)}
    for name, copied in last.items():
        await come(world, name, Copied(1, 1))
        await come(world, name, copied)
    await Run(world.saver, "never came").step({"a": 1})
    assert await ask(world, ReplicaStore.copied, [*ODD_NAMES, "never came", "nobody"]) == last
    assert await ask(world, ReplicaStore.positions, list(ODD_NAMES)) == {}


async def a_thread_is_summed_up_as_in_memory(world: World) -> None:
    recording = Recording()
    saver = world.over(recording.store)
    await saver.acreate_thread("created", title="a title", owner="ada")
    run, child = Run(saver, "é"), Run(saver, "é", "child:1")
    for number in range(4):
        await run.step({"a": number, "b": "long " * 200}, metadata={"run_id": f"run {number}"})
        await run.write(("a", 1), ("__interrupt__", "?"), task=early_id(number))
    await run.write(("__interrupt__", "again"), task=early_id(3))
    await run.step({"a": "after a clock was set back"}, checkpoint_id=early_id(1))
    await child.step({"a": 1}, metadata={"run_id": "run 2"})
    await saver.aput_writes(at("only written", "", early_id(1)), [("a", 1)], "task")
    await _assert_summed_up(world, recording, ["created", "only written", "é"])
    await saver.adelete_for_runs(["run 2"])
    await saver.aupdate_thread("é", metadata={"k": 1})
    await _assert_summed_up(world, recording, ["created", "only written", "é"])
    await saver.adelete_thread("é")
    await Run(saver, "é").step({"a": 1})
    await saver.adelete_checkpoint(await Run(saver, "emptied").step({"a": 1}))
    await _assert_summed_up(world, recording, ["created", "only written", "é"])


async def a_change_of_another_database_follows_what_came(world: World) -> None:
    recording = Recording()
    run = Run(world.over(recording.store))
    await run.step({"a": "long " * 200})
    await run.step({"a": "long " * 200, "b": 1})
    await run.write(("a", 1), ("__interrupt__", "?"))
    marks, [sums] = await ask(world, ReplicaStore.marks, "thread"), await summaries(world)
    assert all(MARK_BYTES < len(mark) <= LONG_MARK for mark in marks.writes.values())
    assert all(
        MARK_BYTES < len(mark) <= LONG_MARK for _, mark in (*marks.checkpoints.values(), *marks.segments.values())
    )
    assert (len(marks.checkpoints), len(marks.writes), len(marks.segments) > 0) == (2, 3, True)
    first, second, third = (
        call.args[0]._replace(epoch=None, token=ANYONE, continues=None, entry=None) for call in recording.changes
    )
    await ask(world, ReplicaStore.drop, "thread", now())
    assert await ask(world, ReplicaStore.marks, "thread") == RowMarks({}, {}, {})
    await ask(world, ReplicaStore.set_replica, Replica(2, "{}"))

    async def outcome(change: Change, previous: int, position: int, epoch_there: int = 7, **fields: Any) -> Any:
        change = change._replace(copied=Follows(previous, position, epoch_there), **fields)
        added = await ask(world, ReplicaStore.add, change)
        assert added.position == 0
        return "exists" if added.exists else added.refused

    assert await outcome(first, NEVER, 10) == "behind"  # the thread itself has entries
    await ask(world, ReplicaStore.settle, "thread", (await outbox(world))[-1].position)
    assert await outcome(first, 0, 10) == "behind"
    assert await outcome(first, 0, 10, term=1) == "term"
    assert await outcome(first, NEVER, 10, term=2) is None
    assert await ask(world, ReplicaStore.copied, ["thread"]) == {"thread": Copied(10, 7)}
    assert await outcome(second, NEVER, 20) == "behind"
    assert await outcome(second, 11, 20, epoch=1) == "behind"
    assert await outcome(first, 10, 20) == "exists"
    assert await ask(world, ReplicaStore.copied, ["thread"]) == {"thread": Copied(10, 7)}
    assert await outcome(second, 10, 20, 8) == "behind"  # something was removed there since
    assert await outcome(second, 10, 20) is None
    position = await ask(world, ReplicaStore.record, "thread", b"written here", 2)
    assert await outcome(third, 20, 30) == "behind"
    await ask(world, ReplicaStore.settle, "thread", position)
    await ask(world, ReplicaStore.set_copied, "thread", Copied(20, 0))
    assert await outcome(third, 20, 30, 8) is None  # the thread was deleted there, and created again
    assert await ask(world, ReplicaStore.copied, ["thread"]) == {"thread": Copied(30, 8)}
    assert await outbox(world) == []
    assert await ask(world, ReplicaStore.marks, "thread") == marks
    assert (await summaries(world))[0][3:] == sums[3:]
    assert (await world.cold.aget_tuple(run.config)) is not None


async def _assert_summed_up(world: World, recording: Recording, names: list[str]) -> None:
    found = await summaries(world)
    assert [each.thread_id for each in found] == names
    expected = recording.done_in_memory(lambda store: store.summaries("", MANY))
    assert [each[3:] for each in found] == [each[3:] for each in expected]
    assert all(each.digest for each in found)
    positions = await ask(world, ReplicaStore.positions, names)
    for each in found:
        assert each.position == positions[each.thread_id]
        assert each.epoch == await ask(world, ReplicaStore.epoch, each.thread_id)
        marks = recording.done_in_memory(methodcaller("marks", each.thread_id))
        assert await ask(world, ReplicaStore.marks, each.thread_id) == marks
        assert (
            await ask(world, ReplicaStore.summaries, each.thread_id, 1) == found[names.index(each.thread_id) + 1 :][:1]
        )
