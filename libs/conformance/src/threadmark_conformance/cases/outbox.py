"""The data of a backend for replication: a term, an outbox, and how far threads were copied.

A backend whose store lacks these operations runs `WITHOUT_REPLICATION` in place of `CASES`.
"""

import asyncio
from functools import partial
from itertools import count, pairwise
from typing import Any

import pytest

from threadmark.program import Program
from threadmark.store.contract import NEVER, TOMBSTONE_MICROSECONDS, Change, Follows, Key, Store, now
from threadmark.store.replica import Copied, Entry, Replica, ReplicaStore, Waiting
from threadmark_conformance.backend import World
from threadmark_conformance.base_store import ODD_NAMES, ask, come, everything, outbox, replicating, summaries
from threadmark_conformance.crashes import DeathError, Mortal
from threadmark_conformance.engine import Run, at, checkpoint, early_id, id_of
from threadmark_conformance.judged import OWN_REASONS, PAIR_REASONS, TERM, judge, judged_for
from threadmark_conformance.recording import Recording


async def a_smaller_term_is_refused_before_anything_else(world: World) -> None:
    recording = Recording(term=3)
    run = Run(world.over(recording.store))
    assert await ask(world, ReplicaStore.replica) == Replica(0, "")
    await run.step({"a": 1})
    for stored_replica, left in (
        (Replica(3, '{"active": "primary"}'),) * 2,
        (Replica(2, "{}"), Replica(3, '{"active": "primary"}')),
        (Replica(3, '{"\\u0000": "é"}'),) * 2,
        (Replica(4, "{}"),) * 2,
        (Replica(3, "[]"), Replica(4, "{}")),
    ):
        assert await ask(world, ReplicaStore.set_replica, stored_replica) == left
        assert await ask(world, ReplicaStore.replica) == left
    (made,) = recording.changes
    before = await everything(world)
    for change in (
        made.args[0],
        made.args[0]._replace(epoch=1),
        made.args[0]._replace(token=5, continues=early_id(1), expects="another", term=0),
        made.args[0]._replace(thread_id="new", entry=None),
    ):
        for method in (ReplicaStore.add, ReplicaStore.replace):
            refused = await ask(world, method, change)
            assert (refused.refused, refused.position, refused.exists, refused.replaced) == ("term", 0, False, False)
    for name in ("thread", "new"):
        assert await ask(world, ReplicaStore.record, name, b"removed", 3) is None
    assert await everything(world) == before
    assert await world.cold.aget_thread("new") is None
    recording.term = 4
    await run.step({"a": 2})
    recording.term = 5  # greater than the one that is there
    await run.write(("a", 3))
    assert await ask(world, ReplicaStore.record, "thread", b"removed", 5)
    assert len(await outbox(world, "thread")) == 4  # with that of the change before the term was raised


async def what_a_pair_asks_of_a_change_counts_before_all_else(world: World) -> None:
    await world.in_base_store(lambda store: replicating(store).set_replica(Replica(TERM, "{}")))
    await judge(world, judged_for((*PAIR_REASONS, *OWN_REASONS)), at_once=False)


async def an_entry_is_recorded_with_a_change_that_is_made(world: World) -> None:
    recording = Recording()
    saver = world.over(recording.store)
    run = Run(saver)
    started = now()
    first = await run.step({"a": "long " * 200})
    await run.step({"a": "long " * 200})
    await run.write(("a", 1), ("__error__", "failed"))
    await run.write(("__error__", "failed again"))
    other = checkpoint({"a": 2}, {"a": 2}, checkpoint_id=id_of(run.config))
    await saver.aput(first, other, {}, {"a": 2})  # takes the place of the second one
    entries = await outbox(world, "thread")
    assert [(entry.position, entry.body) for entry in entries] == [(c.position, c.body) for c in recording.changes]
    assert [call.method for call in recording.changes] == ["add"] * 4 + ["replace"]
    assert started <= entries[0].position
    assert await ask(world, ReplicaStore.outbox, "thread", 2**31 - 1) == entries
    assert [call.answer.previous for call in recording.changes] == [0, *(entry.position for entry in entries[:-1])]
    await Run(world.saver, "bare").step({"a": 1})
    assert await ask(world, ReplicaStore.positions, ["bare"]) == {}


async def entries_follow_each_other_however_many_put_at_once(world: World) -> None:
    recordings = [Recording(), Recording()]
    runs = [Run(world.over(recording.store)) for recording in recordings for _ in range(4)]
    await asyncio.gather(*(run.step({"a": number}) for number, run in enumerate(runs)))
    made = [call.answer for recording in recordings for call in recording.changes]
    positions = [entry.position for entry in await outbox(world)]
    assert {added.position for added in made} >= set(positions)
    kept = [added for added in made if added.position in positions]  # others belong to attempts that were undone
    assert sorted(added.previous for added in kept) == [0, *positions[:-1]]


async def an_entry_is_not_recorded_with_a_change_that_is_not_made(world: World) -> None:
    recording = Recording()
    saver = world.over(recording.store)
    run = Run(saver)
    await run.step({"a": 1})
    await run.step({"a": 2})
    change: Change = recording.changes[-1].args[0]
    fresh = change._replace(checkpoints=[_named(change, early_id(1))])
    before = await everything(world)
    outcomes = [
        await ask(world, method, each)
        for method, each in (
            (ReplicaStore.add, change),
            (ReplicaStore.add, change._replace(epoch=1)),
            (ReplicaStore.add, change._replace(thread_id="another", epoch=1)),
            (ReplicaStore.replace, change._replace(epoch=1)),
            (ReplicaStore.add, change._replace(token=1)),
            (ReplicaStore.replace, change._replace(token=1)),
            (ReplicaStore.add, fresh._replace(expects="another")),
            (ReplicaStore.add, fresh._replace(copied=Follows(NEVER, 1, 0))),  # the thread has entries itself
        )
    ]
    assert [(each.refused, each.exists) for each in outcomes] == [
        (None, True),
        *[(None, False)] * 3,
        *[("lost", False)] * 2,
        ("conflict", False),
        ("behind", False),
    ]
    assert all(each.position == 0 for each in outcomes)
    assert await everything(world) == before
    await saver.adelete_thread("thread")
    before = await everything(world)
    late = await ask(world, ReplicaStore.add, change._replace(epoch=None))
    assert (late.too_late, late.position) == (True, 0)
    assert await everything(world) == before
    await ask(world, ReplicaStore.set_copied, "copied", Copied(3, 5))  # from an epoch that is over since
    other = fresh._replace(thread_id="copied", epoch=None, copied=Follows(3, 4, 6))
    assert (await ask(world, ReplicaStore.add, other)).refused == "behind"


async def a_thread_that_is_deleted_and_starts_again_counts_on(world: World) -> None:
    recording = Recording()
    saver = world.over(recording.store)
    for name in ("a", "b", "a"):
        await Run(saver, name).step({"a": 1})
    await come(world, "a", Copied(17, 5))
    await saver.adelete_thread("a")
    assert [entry.body for entry in await outbox(world, "a")] == [b"0: add", b"2: add", b"3: drop"]
    assert await ask(world, ReplicaStore.copied, ["a", "b"]) == {"a": Copied(17, 5)}
    assert [each.thread_id for each in await summaries(world)] == ["b"]
    last = await ask(world, ReplicaStore.positions, ["b"])
    await world.saver.adelete_thread("b")
    assert await ask(world, ReplicaStore.positions, ["b"]) == last
    in_days = (now() // 1000) * 1000 + 2 * TOMBSTONE_MICROSECONDS  # when "a" would be forgotten, by any backend
    await ask(world, ReplicaStore.drop, "b", in_days)
    assert await ask(world, ReplicaStore.copied, ["a", "b"]) == {"a": Copied(17, 5)}
    await Run(saver, "b").step({"a": 1})
    await ask(world, ReplicaStore.settle, "a", (await outbox(world, "a"))[1].position)
    await Run(saver, "a").step({"a": 2})
    await ask(world, ReplicaStore.record, "never there", b"dropped", 0)
    await come(world, "never there", Copied(18, 0))
    kept = await outbox(world, "a")
    assert [entry.body for entry in kept] == [b"3: drop", b"5: add"]
    positions = [call.position for call in recording.changes if call.args[0].thread_id == "a"]
    assert all(one < other for one, other in pairwise([*positions[:-1], *(entry.position for entry in kept)]))
    assert recording.changes[-1].answer.previous == kept[0].position
    found = await ask(world, ReplicaStore.positions, ["a", "b", "never there", "nobody", "a"])
    assert list(map(found.get, ("a", "nobody"))) == [kept[-1].position, None]
    assert found.keys() == {"a", "b", "never there"}
    assert await ask(world, ReplicaStore.copied, ["never there", "nobody"]) == {"never there": Copied(18, 0)}
    assert await world.cold.aget_thread("never there") is None
    assert [thread.id for thread in (await world.cold.alist_threads(sort="id")).threads] == ["a", "b"]


async def the_outbox_is_read_in_order_until_it_is_settled(world: World) -> None:
    assert await ask(world, ReplicaStore.waiting) == Waiting(0, 0)
    assert await outbox(world) == []
    recorded = []
    for number, name in enumerate((*ODD_NAMES, *ODD_NAMES)):
        body = bytes([number, 0, 255]) * number
        recorded.append(Entry(name, await ask(world, ReplicaStore.record, name, body, 0), body))
    in_order = sorted(recorded, key=lambda entry: (entry.position, entry.thread_id))
    assert await outbox(world) == in_order
    assert await ask(world, ReplicaStore.outbox, None, 5) == in_order[:5]
    assert await ask(world, ReplicaStore.outbox, "é", 1) == recorded[2:3]
    assert await outbox(world, "é") == [entry for entry in recorded if entry.thread_id == "é"]
    assert await outbox(world, "nobody") == []
    assert await ask(world, ReplicaStore.waiting) == Waiting(len(recorded), in_order[0].position)
    for name, position in (("é", recorded[2].position), ("é", 0), ("nobody", 2**53), ("", recorded[8].position)):
        await ask(world, ReplicaStore.settle, name, position)
    left = [entry for entry in in_order if entry not in (recorded[0], recorded[2], recorded[8])]
    assert await outbox(world) == left
    assert await ask(world, ReplicaStore.waiting) == Waiting(len(left), left[0].position)
    assert await ask(world, ReplicaStore.positions, ["é", ""]) == {
        "é": recorded[10].position,
        "": recorded[8].position,
    }


async def what_is_to_stay_away_is_for_a_pair_to_note(world: World) -> None:
    """A database that is used alone notes nothing, and a removal of a missing checkpoint has no entry."""
    run = Run(world.saver)
    first = await run.step({"a": 1})
    await run.step({"a": 2})
    before = await everything(world)
    for thread in ("thread", *ODD_NAMES):
        for removes in (True, False):
            keys = [("", id_of(first)), *((name, name) for name in ODD_NAMES)]
            await world.in_base_store(partial(_forget, thread, keys, removes))
    assert await world.saver.adelete_checkpoint(at("nobody", "", early_id(1))) is False
    assert await world.saver.adelete_checkpoint(at("thread", "", early_id(1))) is False
    assert await everything(world) == before
    assert await world.saver.adelete_checkpoint(first) is True
    assert await outbox(world) == []


def _forget(thread_id: str, keys: list[Key], removes: bool, store: Store) -> Program[None]:  # noqa: FBT001 - for `partial`
    return store.forget(thread_id, keys, removes=removes)


async def what_is_rolled_back_or_dies_leaves_no_entry(world: World) -> None:
    recording = Recording()
    await Run(world.over(recording.store)).step({"a": 1})
    before = await everything(world)

    def fail(store: Store) -> Program[None]:
        base = replicating(store)
        yield from base.lock("thread")
        yield from base.drop("thread", now())
        yield from base.record("thread", b"dropped", 0)
        yield from base.set_copied("thread", Copied(1, 1))
        raise DeathError

    with pytest.raises(DeathError):
        await world.in_base_store(fail)
    assert await everything(world) == before
    saver = world.over(recording.store, world.behind(Mortal))
    mortal: Any = saver._driver  # noqa: SLF001 - the test sets the moment of its death
    for steps in count():
        mortal.steps_left = steps
        try:
            await Run(saver, f"thread {steps}").step({"a": "long " * 200})
        except DeathError:
            is_there = await world.cold.aget_thread(f"thread {steps}") is not None
            assert len(await outbox(world, f"thread {steps}")) == is_there
        else:
            break
    assert steps


def _named(change: Change, checkpoint_id: str) -> Any:
    """Return the change's checkpoint with another id, for changes that are refused: it keeps the old check."""
    (row,) = change.checkpoints
    return row._replace(outline=row.outline._replace(id=checkpoint_id, rank=checkpoint_id))
