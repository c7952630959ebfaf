"""What a backend keeps for replication: a term, an outbox, and how far copies have come.

A backend whose store has none of it runs `WITHOUT_REPLICATION` in place of `CASES`.
"""

from collections.abc import Callable
from itertools import count, pairwise
from typing import Any, cast

import pytest

from threadmark.program import Program
from threadmark.replica_store import Copied, Entry, Replica, ReplicaStore, Summary, Waiting
from threadmark.store import Change, Store, now
from threadmark_conformance.backend import World
from threadmark_conformance.crashes import DeathError, Mortal
from threadmark_conformance.engine import Run, at, checkpoint, early_id, id_of
from threadmark_conformance.recording import Recording

_ODD_NAMES = ("", "a", "é", "a:b", "a/b", "z\x00", "\U0001f600", "\ud800")
_MANY = 100


async def a_smaller_term_is_refused_before_anything_else(world: World) -> None:
    recording = Recording(term=3)
    run = Run(world.over(recording.store))
    assert await _ask(world, ReplicaStore.replica) == Replica(0, "")
    await run.step({"a": 1})
    for given, left in (
        (Replica(3, '{"active": "primary"}'),) * 2,
        (Replica(2, "{}"), Replica(3, '{"active": "primary"}')),
        (Replica(3, '{"\\u0000": "é"}'),) * 2,
        (Replica(4, "{}"),) * 2,
        (Replica(3, "[]"), Replica(4, "{}")),
    ):
        assert await _ask(world, ReplicaStore.set_replica, given) == left
        assert await _ask(world, ReplicaStore.replica) == left
    (made,) = recording.changes
    before = await _everything(world)
    for change in (
        made.args[0],
        made.args[0]._replace(epoch=1),
        made.args[0]._replace(token=5, continues=early_id(1), expects="another", term=0),
        made.args[0]._replace(thread_id="new", entry=None),
    ):
        for method in (ReplicaStore.add, ReplicaStore.replace):
            refused = await _ask(world, method, change)
            assert (refused.refused, refused.position, refused.exists, refused.replaced) == ("term", 0, False, False)
    for name in ("thread", "new"):
        assert await _ask(world, ReplicaStore.record, name, b"removed", 3) is None
    assert await _everything(world) == before
    assert await world.cold.athread("new") is None
    recording.term = 4
    await run.step({"a": 2})
    recording.term = 5  # greater than the one that is there
    await run.write(("a", 3))
    assert await _ask(world, ReplicaStore.record, "thread", b"removed", 5)
    assert len(await _outbox(world, "thread")) == 4  # with that of the change before the term was raised


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
    entries = await _outbox(world, "thread")
    assert [(entry.position, entry.body) for entry in entries] == [(c.position, c.body) for c in recording.changes]
    assert [call.method for call in recording.changes] == ["add"] * 4 + ["replace"]
    assert started <= entries[0].position
    assert [call.answer.previous for call in recording.changes] == [0, *(entry.position for entry in entries[:-1])]
    await Run(world.saver, "bare").step({"a": 1})
    assert await _ask(world, ReplicaStore.positions, ["bare"]) == {}


async def an_entry_is_not_recorded_with_a_change_that_is_not_made(world: World) -> None:
    recording = Recording()
    saver = world.over(recording.store)
    run = Run(saver)
    await run.step({"a": 1})
    await run.step({"a": 2})
    change: Change = recording.changes[-1].args[0]
    fresh = change._replace(checkpoints=[_named(change, early_id(1))])
    before = await _everything(world)
    outcomes = [
        await _ask(world, method, each)
        for method, each in (
            (ReplicaStore.add, change),
            (ReplicaStore.add, change._replace(epoch=1)),
            (ReplicaStore.add, change._replace(thread_id="another", epoch=1)),
            (ReplicaStore.replace, change._replace(epoch=1)),
            (ReplicaStore.add, change._replace(token=1)),
            (ReplicaStore.replace, change._replace(token=1)),
            (ReplicaStore.add, fresh._replace(expects="another")),
        )
    ]
    assert [(each.refused, each.exists) for each in outcomes] == [
        (None, True),
        *[(None, False)] * 3,
        *[("lost", False)] * 2,
        ("conflict", False),
    ]
    assert all(each.position == 0 for each in outcomes)
    assert await _everything(world) == before
    await saver.adelete_thread("thread")
    before = await _everything(world)
    late = await _ask(world, ReplicaStore.add, change._replace(epoch=None))
    assert (late.too_late, late.position) == (True, 0)
    assert await _everything(world) == before


async def a_thread_that_is_deleted_and_begins_anew_counts_on(world: World) -> None:
    recording = Recording()
    saver = world.over(recording.store)
    for name in ("a", "b", "a"):
        await Run(saver, name).step({"a": 1})
    await _come(world, "a", Copied(17, 5))
    await saver.adelete_thread("a")
    assert [entry.body for entry in await _outbox(world, "a")] == [b"0: add", b"2: add", b"3: drop"]
    assert await _ask(world, ReplicaStore.copied, ["a", "b"]) == {"a": Copied(17, 5)}
    assert [each.thread_id for each in await _summaries(world)] == ["b"]
    await _ask(world, ReplicaStore.settle, "a", (await _outbox(world, "a"))[1].position)
    await Run(saver, "a").step({"a": 2})
    await _ask(world, ReplicaStore.record, "never there", b"dropped", 0)
    await _come(world, "never there", Copied(18, 0))
    kept = await _outbox(world, "a")
    assert [entry.body for entry in kept] == [b"3: drop", b"4: add"]
    positions = [call.position for call in recording.changes if call.args[0].thread_id == "a"]
    assert all(one < other for one, other in pairwise([*positions[:-1], *(entry.position for entry in kept)]))
    assert recording.changes[-1].answer.previous == kept[0].position
    found = await _ask(world, ReplicaStore.positions, ["a", "b", "never there", "nobody", "a"])
    assert list(map(found.get, ("a", "nobody"))) == [kept[-1].position, None]
    assert found.keys() == {"a", "b", "never there"}
    assert await _ask(world, ReplicaStore.copied, ["never there", "nobody"]) == {"never there": Copied(18, 0)}
    assert await world.cold.athread("never there") is None
    assert [thread.id for thread in (await world.cold.athreads(sort="id")).threads] == ["a", "b"]


async def the_outbox_is_read_in_order_until_it_is_settled(world: World) -> None:
    assert await _ask(world, ReplicaStore.waiting) == Waiting(0, 0)
    assert await _outbox(world) == []
    recorded = []
    for number, name in enumerate((*_ODD_NAMES, *_ODD_NAMES)):
        body = bytes([number, 0, 255]) * number
        recorded.append(Entry(name, await _ask(world, ReplicaStore.record, name, body, 0), body))
    in_order = sorted(recorded, key=lambda entry: (entry.position, entry.thread_id))
    assert await _outbox(world) == in_order
    assert await _ask(world, ReplicaStore.outbox, None, 5) == in_order[:5]
    assert await _ask(world, ReplicaStore.outbox, "é", 1) == recorded[2:3]
    assert await _outbox(world, "é") == [entry for entry in recorded if entry.thread_id == "é"]
    assert await _outbox(world, "nobody") == []
    assert await _ask(world, ReplicaStore.waiting) == Waiting(len(recorded), in_order[0].position)
    for name, position in (("é", recorded[2].position), ("é", 0), ("nobody", 2**53), ("", recorded[8].position)):
        await _ask(world, ReplicaStore.settle, name, position)
    left = [entry for entry in in_order if entry not in (recorded[0], recorded[2], recorded[8])]
    assert await _outbox(world) == left
    assert await _ask(world, ReplicaStore.waiting) == Waiting(len(left), left[0].position)
    assert await _ask(world, ReplicaStore.positions, ["é", ""]) == {
        "é": recorded[10].position,
        "": recorded[8].position,
    }


async def how_far_threads_have_come_is_kept(world: World) -> None:
    last = {name: Copied(now() * 2 + 1, number) for number, name in enumerate(_ODD_NAMES)}
    for name, copied in last.items():
        await _come(world, name, Copied(1, 1))
        await _come(world, name, copied)
    await Run(world.saver, "never came").step({"a": 1})
    assert await _ask(world, ReplicaStore.copied, [*_ODD_NAMES, "never came", "nobody"]) == last
    assert await _ask(world, ReplicaStore.positions, list(_ODD_NAMES)) == {}
    found: dict[str, Copied] = {}
    while page := await _ask(world, ReplicaStore.copied_page, list(found)[-1] if found else "", 2):
        assert not page.keys() & found.keys()
        found |= page
    assert found == {name: copied for name, copied in last.items() if name}  # "" is not greater than itself
    assert [name for name in found if name.isascii()] == ["a", "a/b", "a:b", "z\x00"]


async def a_thread_is_summed_up_as_in_memory(world: World) -> None:
    recording = Recording()
    saver = world.over(recording.store)
    await saver.acreate_thread("created", title="a title", owner="ada")
    run, child = Run(saver, "é"), Run(saver, "é", "child:1")
    for number in range(4):
        await run.step({"a": number, "b": "long " * 200}, metadata={"run_id": f"run {number}"})
        await run.write(("a", 1), ("__interrupt__", "?"), task=early_id(number))
    await run.write(("__interrupt__", "again"), task=early_id(3))
    await child.step({"a": 1}, metadata={"run_id": "run 2"})
    await saver.aput_writes(at("only written", "", early_id(1)), [("a", 1)], "task")
    await _assert_summed_up(world, recording, ["created", "only written", "é"])
    await saver.adelete_for_runs(["run 2"])
    await saver.aupdate_thread("é", metadata={"k": 1})
    await _assert_summed_up(world, recording, ["created", "only written", "é"])
    await saver.adelete_thread("é")
    await _assert_summed_up(world, recording, ["created", "only written"])
    await Run(saver, "é").step({"a": 1})
    await saver.adelete_checkpoint(await Run(saver, "emptied").step({"a": 1}))
    await _assert_summed_up(world, recording, ["created", "only written", "é"])


async def what_is_rolled_back_or_dies_leaves_no_entry(world: World) -> None:
    recording = Recording()
    await Run(world.over(recording.store)).step({"a": 1})
    before = await _everything(world)

    def fail(store: Store) -> Program[None]:
        replicating = _replicating(store)
        yield from replicating.lock("thread")
        yield from replicating.drop("thread", now())
        yield from replicating.record("thread", b"dropped", 0)
        yield from replicating.set_copied("thread", Copied(1, 1))
        raise DeathError

    with pytest.raises(DeathError):
        await world.in_base_store(fail)
    assert await _everything(world) == before
    mortal: Any = None

    def wrap(driver: Any) -> Any:
        nonlocal mortal
        mortal = Mortal(driver)
        return mortal

    saver = world.over(recording.store, world.behind(wrap))
    for steps in count():
        mortal.steps_left = steps
        try:
            await Run(saver, f"thread {steps}").step({"a": "long " * 200})
        except DeathError:
            is_there = await world.cold.athread(f"thread {steps}") is not None
            assert len(await _outbox(world, f"thread {steps}")) == is_there
        else:
            break
    assert steps


def _replicating(store: Store) -> ReplicaStore:
    assert isinstance(store, ReplicaStore), (
        f"{type(store).__name__} has no operations for replication: add those of ReplicaStore, or run "
        "WITHOUT_REPLICATION in place of CASES"
    )
    return store


async def _ask(world: World, method: Callable[..., Program[Any]], *args: Any) -> Any:
    """Ask the base store, in a transaction of its own."""
    return await world.in_base_store(lambda store: getattr(_replicating(store), method.__name__)(*args))


async def _outbox(world: World, thread_id: str | None = None) -> list[Entry]:
    return cast("list[Entry]", await _ask(world, ReplicaStore.outbox, thread_id, _MANY))


async def _come(world: World, thread_id: str, copied: Copied) -> None:
    def program(store: Store) -> Program[None]:
        yield from store.lock(thread_id)
        yield from _replicating(store).set_copied(thread_id, copied)

    await world.in_base_store(program)


async def _summaries(world: World) -> list[Summary]:
    return cast("list[Summary]", await _ask(world, ReplicaStore.summaries, "", _MANY))


async def _everything(world: World) -> list[Any]:
    """Return what must be the same after a change that is not made."""
    copied = await _ask(world, ReplicaStore.copied_page, "", _MANY)
    return [await _ask(world, ReplicaStore.replica), await _outbox(world), await _summaries(world), copied]


def _named(change: Change, checkpoint_id: str) -> Any:
    """Return the change's checkpoint with another id. It is for changes that are refused: its check is the old one."""
    (row,) = change.checkpoints
    return row._replace(outline=row.outline._replace(id=checkpoint_id, rank=checkpoint_id))


async def _assert_summed_up(world: World, recording: Recording, names: list[str]) -> None:
    found = await _summaries(world)
    assert [each.thread_id for each in found] == names
    expected = recording.done_in_memory(lambda store: store.summaries("", _MANY))
    assert [each[3:] for each in found] == [each[3:] for each in expected]
    assert all(each.digest for each in found)
    positions = await _ask(world, ReplicaStore.positions, names)
    for each in found:
        assert each.position == positions[each.thread_id]
        assert each.epoch == await _ask(world, ReplicaStore.epoch, each.thread_id)
        assert (
            await _ask(world, ReplicaStore.summaries, each.thread_id, 1) == found[names.index(each.thread_id) + 1 :][:1]
        )
