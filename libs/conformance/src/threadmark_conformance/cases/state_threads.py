"""The threads of `States` and their owners. Threads of graphs are left alone."""

from datetime import timedelta
from typing import Any

import pytest

from threadmark.errors import LeaseLostError, ThreadBusyError, ThreadNotFoundError
from threadmark.interfaces import States
from threadmark.program import Driver
from threadmark_conformance.backend import World
from threadmark_conformance.crashes import DeathError, Mortal
from threadmark_conformance.engine import Run, at, checkpoint, got, id_of, listed
from threadmark_conformance.leasing import taken

_LONG = "a part of a state that is long enough for a segment of its own. " * 8
_MOMENT = timedelta(microseconds=1)


async def the_thread_of_a_graph_is_read_and_otherwise_left_alone(world: World) -> None:
    states = world.interface(States)
    run = Run(world.saver, "graph")
    first = await run.step({"messages": [_LONG], "n": 1}, metadata={"source": "loop"})
    await run.step({"n": 2})
    before = await listed(world.saver, at("graph"))
    await states.asave("thread", {"a": 1})
    assert await states.aload("graph") == {"messages": [_LONG], "n": 2}
    assert await states.aload("graph", id_of(first)) == {"messages": [_LONG], "n": 1}
    infos = (await states.ahistory("graph")).states
    assert [(info.size_bytes, info.metadata) for info in infos] == [
        (None, {"step": 1}),
        (None, {"source": "loop", "step": 0}),
    ]
    assert [info.thread_id for info in (await states.alist()).states] == ["thread"]
    assert await states.asize() == 1
    assert (await states.acleanup_old(_MOMENT)).idle == 1
    assert await states.asize() == 0
    assert await listed(world.cold, at("graph")) == before
    assert await states.adelete("graph") is True
    assert await world.saver.aget_thread("graph") is None


async def a_graph_goes_on_from_a_state_that_was_saved_into_its_thread(world: World) -> None:
    states = world.interface(States)
    version = f"{3:032}.{5:016}"
    made = checkpoint({"a": 1, "b": _LONG}, {"a": version, "b": version})
    metadata = {"source": "loop", "step": 4, "parents": {}}
    await world.saver.aput(at("thread"), made, metadata, {"a": version, "b": version})
    await states.asave("thread", {"a": 2, "b": _LONG, "c": 3})
    found = (await got(world.cold, at("thread"))).checkpoint["channel_versions"]
    assert found["b"] == version
    assert str(found["a"]) == str(found["c"]) > version
    assert world.saver.get_next_version(max(map(str, found.values()))) > found["a"]  # type: ignore[operator]  # texts
    about = await world.saver.aget_thread("thread")
    assert about is not None
    assert about.metadata == {}  # it is still the graph's
    await states.asave("thread", {"a": 3}, {"why": "by hand"})
    infos = (await states.ahistory("thread")).states
    by_hand = {"source": "update", "parents": {}}
    expected = [{**by_hand, "step": 6, "why": "by hand"}, {**by_hand, "step": 5}, metadata]
    assert [info.metadata for info in infos] == expected


async def metadata_is_as_stored_and_nothing_of_the_state_before(world: World) -> None:
    states = world.interface(States)
    inputs: list[dict[str, Any]] = [{"source": "web", "step": 3}, {"source": "loop", "step": 3}, {"parents": {}}, {}]
    for metadata in inputs:
        await states.asave("thread", 1, metadata)
    assert [info.metadata for info in (await states.ahistory("thread")).states] == inputs[::-1]


async def a_thread_is_marked_with_its_first_state(world: World) -> None:
    states = world.interface(States)
    await world.saver.acreate_thread("created", title="a title", metadata={"k": 1})
    await world.saver.acreate_thread("of another kind", metadata={"kind": "mine"})
    for name in ("created", "of another kind", "new"):
        await states.asave(name, 1)
    found = {info.id: (info.title, info.metadata) for info in (await world.saver.alist_threads()).threads}
    assert found == {
        "created": ("a title", {"k": 1, "kind": "state"}),
        "of another kind": (None, {"kind": "mine"}),
        "new": (None, {"kind": "state"}),
    }
    assert await states.asize() == 2


async def a_death_leaves_no_thread_without_its_mark(world: World) -> None:
    mortals: list[Mortal] = []

    def mortal(driver: Driver) -> Driver:
        mortals.append(Mortal(driver))
        return mortals[-1]

    states = world.interface(States, world.behind(mortal))
    for moment in ("steps_left", "answers_left"):
        for count in range(100):
            name = f"{moment} {count}"
            setattr(mortals[0], moment, count)
            died = False
            try:
                await states.asave(name, {"a": _LONG})
            except DeathError:
                died = True
            setattr(mortals[0], moment, None)
            found = await world.saver.aget_thread(name)
            assert found is None or (found.checkpoints, found.metadata) == (1, {"kind": "state"})
            if not died:
                break
            await states.asave(name, {"a": _LONG})
            assert await world.interface(States, world.cold).aload(name) == {"a": _LONG}
        else:
            raise AssertionError("a save has more steps than that")
        assert count > 1


async def a_save_respects_a_lease(world: World) -> None:
    states = world.interface(States)
    await states.asave("thread", 1)
    lease = await taken(world.another())
    with pytest.raises(ThreadBusyError):
        await states.asave("thread", 2)
    await states.asave("thread", 3, lease_token=lease.token)
    await taken(world.another(), on_busy="interrupt")
    with pytest.raises(LeaseLostError):
        await states.asave("thread", 4, lease_token=lease.token)
    assert await states.aload("thread") == 3
    assert (await states.acleanup_old(_MOMENT)).busy == 1


async def a_first_save_under_a_lease_begins_the_thread(world: World) -> None:
    lease = await taken(world.another())
    states = world.interface(States)
    with pytest.raises(ThreadBusyError):
        await states.asave("thread", 1)
    assert await world.saver.aget_thread("thread") is None
    await states.asave("thread", 2, lease_token=lease.token)
    assert await states.asize() == 1


async def a_thread_expires_as_after_a_put(world: World) -> None:
    states = world.interface(States, world.with_rules(ttl=3600 * 1_000_000))
    await states.asave("thread", 1)
    found = await world.saver.aget_thread("thread")
    assert found is not None
    assert found.expires_at is not None
    assert found.expires_at - found.created_at >= timedelta(hours=1)


async def an_owner_sees_its_own_states_only(world: World) -> None:
    adas, eves = (world.interface(States, world.saver.for_owner(name)) for name in ("ada", "eve"))
    saved = await adas.asave("adas", {"secret": _LONG}, {"about": "ada"})
    await eves.asave("eves", 1)
    assert (await world.saver.aget_thread("adas")).owner == "ada"  # type: ignore[union-attr]  # it is there
    assert await eves.aload("adas", default="nothing") == "nothing"
    assert await eves.aload("adas", saved) is None
    assert (await eves.aexists("adas"), await eves.adelete("adas"), await eves.adelete("adas", saved)) == (False,) * 3
    assert [info.thread_id for info in (await eves.alist()).states] == ["eves"]
    assert (await eves.ahistory("adas"), await eves.asize()) == (([], None), 1)
    with pytest.raises(ThreadNotFoundError):
        await eves.asave("adas", {"planted": 1})
    assert (await eves.acleanup_old(_MOMENT)).idle == 1
    assert (await adas.aload("adas"), await adas.asize()) == ({"secret": _LONG}, 1)
