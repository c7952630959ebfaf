"""Threads whose runs died: their newest checkpoints say which nodes are still to run, as LangGraph stores it.

The checkpoints here have the channels that LangGraph gives a graph; `tests/langgraph_parity` has its own.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from threadmark.errors import ConfigError
from threadmark.model import ThreadInfo
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, id_of
from threadmark_conformance.leasing import LONG, under


class _Packet(NamedTuple):
    """Stands for LangGraph's `Send`."""

    node: str
    arg: Any


class _Found(NamedTuple):
    """A step that a run had come to: the content of the checkpoint, and the nodes that are still to run."""

    values: Mapping[str, Any]
    versions: Mapping[str, Any]
    seen: Mapping[str, Mapping[str, Any]]
    following: Collection[str] = ()
    updated: list[str] | None = None


_BEGUN = {"__input__": {}, "__start__": {"__start__": 1}}

_STEPS = {
    "input": _Found({"__start__": {"a": 1}}, {"__start__": 1}, {"__input__": {}}, ["__start__"], ["__start__"]),
    "next": _Found({"a": 1, "branch:to:y": None}, {"a": 2, "branch:to:y": 2}, _BEGUN, ["y"], ["a", "branch:to:y"]),
    "next, not said": _Found({"a": 1, "branch:to:y": None}, {"a": 2, "branch:to:y": 2}, _BEGUN, ["y"]),
    "again": _Found(
        {"branch:to:y": None}, {"branch:to:y": 4}, {**_BEGUN, "y": {"branch:to:y": 2}}, ["y"], ["branch:to:y"]
    ),
    "tenth": _Found({"branch:to:y": None}, {"branch:to:y": 10}, {**_BEGUN, "y": {"branch:to:y": 9}}, ["y"]),
    "seen otherwise": _Found({"branch:to:y": None}, {"branch:to:y": 1}, {**_BEGUN, "y": {"branch:to:y": True}}, ["y"]),
    "several": _Found(
        {"branch:to:y": None, "branch:to:x": None}, {"branch:to:y": "3.a", "branch:to:x": "3.a"}, _BEGUN, ["x", "y"]
    ),
    "packets": _Found(
        {"__pregel_tasks": [_Packet("w", {"n": 1}), _Packet("w", {"n": 2}), _Packet("v", "a text " * 40)]},
        {"__pregel_tasks": 2},
        _BEGUN,
        ["w", "v"],
    ),
    "joined": _Found({"join:x+y:z": {"x", "y"}}, {"join:x+y:z": 3}, {**_BEGUN, "x": {}, "y": {}}, ["z"]),
    "deferred": _Found({"branch:to:z": (None, True)}, {"branch:to:z": 3}, _BEGUN, ["z"]),
    "deferred and joined": _Found({"join:x+y:z": ({"x", "y"}, True)}, {"join:x+y:z": 3}, _BEGUN, ["z"]),
    "own channels": _Found({"in": 2}, {"in": 2}, {"__input__": {}, "one": {"in": 1}, "other": {"in": 2}}, ["one"]),
    "function": _Found({"__start__": 1}, {"__start__": 3}, {"__input__": {}, "flow": {"__start__": 1}}, ["flow"]),
    "wide": _Found(
        {**{f"channel {number}": number for number in range(200)}, "branch:to:y": None},
        {**{f"channel {number}": 1 for number in range(200)}, "branch:to:y": 2},
        _BEGUN,
        ["y"],
    ),
    "ended": _Found({"a": 1}, {"a": 3, "branch:to:y": 3}, {**_BEGUN, "y": {"branch:to:y": 2}}, (), ["a"]),
    "ended, not said": _Found({"a": 1}, {"a": 3, "branch:to:y": 3}, {**_BEGUN, "y": {"branch:to:y": 2}}, (), []),
    "seen": _Found({"branch:to:y": None}, {"branch:to:y": 2}, {**_BEGUN, "y": {"branch:to:y": 2}}),
    "no packets": _Found({"__pregel_tasks": []}, {"__pregel_tasks": 2}, _BEGUN),
    "half joined": _Found({"join:x+y:z": {"x"}}, {"join:x+y:z": 3}, _BEGUN),
    "joined before": _Found({"join:x+y:z": set()}, {"join:x+y:z": 3}, {**_BEGUN, "z": {"join:x+y:z": 2}}),
    "deferred longer": _Found({"branch:to:z": (None, False)}, {"branch:to:z": 3}, _BEGUN),
    "input asked before": _Found(
        {"__start__": 1}, {"__start__": 1}, {"__interrupt__": {"__start__": 1}}, ["__start__"]
    ),
    "input passed over": _Found({"a": 1}, {"__start__": 2, "a": 2}, {"__input__": {}, "y": {}}),
    "said, and empty": _Found({"a": 1}, {"a": 3, "branch:to:y": 3}, {**_BEGUN, "y": {}}, (), ["a", "branch:to:y"]),
    "snapshot": _Found(
        {"a": 1, "in": 2},
        {"a": 3, "in": 2},
        {
            **{node: {"a": 1} for node in ("__input__", "__start__", "x")},
            "one": {"a": 2, "in": 1},
            "__snapshot_bumps__": {"__input__|a": 1, "__start__|a": 1, "x|a": 1, "one|a": 2, "one:a": 1},
        },
        ["one"],
    ),
    "snapshot alone": _Found(
        {"a": 1}, {"a": 3}, {**_BEGUN, "x": {"a": 1}, "__input__": {"a": 1}, "__snapshot_bumps__": {"x|a": 1}}
    ),
    "asked before": _Found({"a": 1}, {"a": 3}, {**_BEGUN, "__interrupt__": {"a": 2}}, (), ["a"]),
    "no engine": _Found({"branch:to:y": None}, {"branch:to:y": 2}, {}),
    "odd": _Found({"a": 1}, {"a": 3}, {"y": [1], "z": {"b": 1}}, (), [7, "a"]),  # type: ignore[dict-item,list-item]  # an engine may store anything
}


async def _begin(world: World, name: str, step: _Found | None = None, ns: str = "") -> dict[str, Any]:
    """Put a checkpoint that a run had come to, by default one with a node to run."""
    values, versions, seen, _, updated = step or _STEPS["next"]
    made = checkpoint(values, versions, versions_seen=seen, updated_channels=updated)
    return await world.saver.aput(at(name, ns), made, {"step": 1}, versions)


async def _there(world: World, name: str) -> ThreadInfo:
    found = await world.another().aget_thread(name)
    assert found is not None
    return found


async def _names(world: World, **filters: Any) -> list[str]:
    page = await world.saver.alist_threads(limit=100, sort="id", **filters)
    assert await world.saver.acount_threads(**filters) == len(page.threads)
    return [thread.id for thread in page.threads]


async def a_thread_with_nodes_to_run_is_unfinished(world: World) -> None:
    for name, step in _STEPS.items():
        await _begin(world, name, step)
    page = await world.another().alist_threads(limit=100)
    assert {thread.id: (list(thread.next), thread.problems) for thread in page.threads} == {
        name: ([*step.following], []) for name, step in _STEPS.items()
    }
    assert {thread.id: thread.status for thread in page.threads} == {
        name: "unfinished" if step.following else "idle" for name, step in _STEPS.items()
    }
    assert await _names(world, status="unfinished") == sorted(name for name, step in _STEPS.items() if step.following)
    assert await _names(world, status="idle") == sorted(name for name, step in _STEPS.items() if not step.following)


async def only_the_newest_checkpoint_of_the_graph_itself_decides(world: World) -> None:
    config = await _begin(world, "thread")
    first = await _there(world, "thread")
    assert (first.status, first.next, first.newest) == ("unfinished", ["y"], id_of(config))
    values, versions, seen, _, updated = _STEPS["ended"]
    ended = checkpoint(values, versions, versions_seen=seen, updated_channels=updated)
    last = await world.saver.aput(config, ended, {"step": 2}, versions)
    assert ((await _there(world, "thread")).status, (await _there(world, "thread")).next) == ("idle", [])
    await _begin(world, "thread", ns="child")
    assert (await _there(world, "thread")).status == "idle"
    await world.saver.adelete_checkpoint(last)
    assert await _there(world, "thread") == (await world.saver.alist_threads()).threads[0]
    assert ((await _there(world, "thread")).status, (await _there(world, "thread")).next) == ("unfinished", ["y"])


async def a_thread_that_is_held_or_waits_for_a_person_is_not_unfinished(world: World) -> None:
    configs = {name: await _begin(world, name) for name in ("asks", "died", "failed", "held", "wrote")}
    await world.saver.aput_writes(configs["asks"], [("__interrupt__", ["?"])], "task")
    await world.saver.aput_writes(configs["failed"], [("__error__", "boom")], "task")
    await world.saver.aput_writes(configs["wrote"], [("a", 1)], "task")
    async with world.saver.lease("held", ttl=LONG) as lease:
        threads = {thread.id: thread for thread in (await world.another().alist_threads()).threads}
        assert {name: (thread.status, list(thread.next)) for name, thread in threads.items()} == {
            "asks": ("interrupted", []),
            "died": ("unfinished", ["y"]),
            "failed": ("error", []),
            "held": ("busy", ["y"]),
            "wrote": ("unfinished", ["y"]),
        }
        assert await _names(world, status="unfinished") == ["died", "wrote"]
        # A worker that gets the lease sees whether another one was there first.
        values, versions, seen, _, updated = _STEPS["ended"]
        ended = checkpoint(values, versions, versions_seen=seen, updated_channels=updated)
        await world.saver.aput(under(lease, id_of(configs["held"])), ended, {"step": 2}, versions)
        assert ((await _there(world, "held")).status, (await _there(world, "held")).next) == ("busy", [])
    assert (await _there(world, "held")).status == "idle"


async def unfinished_threads_come_longest_idle_first(world: World) -> None:
    for name in ("one", "two", "three"):
        await _begin(world, name)
    await Run(world.saver, "other").step({"a": 1})
    page = await world.saver.aunfinished(idle_for=0, limit=2)
    assert [thread.id for thread in page.threads] == ["one", "two"]
    rest = await world.another().aunfinished(idle_for=timedelta(0), cursor=page.cursor)
    assert ([thread.id for thread in rest.threads], rest.cursor) == (["three"], None)
    assert await world.saver.aunfinished(idle_for=timedelta(hours=1)) == ([], None)
    assert await world.saver.aunfinished(idle_for=timedelta.max) == ([], None)
    assert await world.saver.aunfinished(idle_for=0, limit=0) == ([], None)
    with pytest.raises(ConfigError, match=r"idle_for must be a datetime\.timedelta or number of seconds"):
        await world.saver.aunfinished(idle_for=None)  # type: ignore[arg-type]  # the mistake that is tried here


async def an_owners_view_lists_only_their_unfinished_threads(world: World) -> None:
    await _begin(world, "hers")
    await _begin(world, "his")
    await world.saver.aupdate_thread("hers", owner="ada", title="A run", metadata={"kind": "trip"})
    assert [each.id for each in (await world.saver.for_owner("ada").aunfinished(idle_for=0)).threads] == ["hers"]
    assert await _names(world, status="unfinished", owner="ada") == ["hers"]
    assert await _names(world, status="unfinished", text="run") == ["hers"]
    assert await _names(world, status="unfinished", metadata={"kind": "trip"}) == ["hers"]
    assert await _names(world, status="unfinished", until=(await _there(world, "his")).updated_at) == ["hers"]


async def copies_and_forks_of_an_unfinished_thread_are_unfinished(world: World) -> None:
    for name in ("next", "wide", "packets"):
        config = await _begin(world, name, _STEPS[name])
        expected = [*_STEPS[name].following]
        await world.saver.acopy_thread(name, f"{name} copied")
        await world.saver.afork(config, as_thread=f"{name} forked")
        await world.saver.arename_thread(f"{name} copied", f"{name} renamed")
        await world.saver.afork(config, dict.fromkeys(_STEPS[name].values.keys() & {"a", "channel 7"}, 9))
        for each in (name, f"{name} forked", f"{name} renamed"):
            assert ((await _there(world, each)).status, [*(await _there(world, each)).next]) == ("unfinished", expected)


async def nodes_that_cannot_be_read_are_a_problem_of_their_thread(world: World) -> None:
    await _begin(world, "whole")
    config = await _begin(world, "damaged", _STEPS["packets"])
    found = await world.in_base_store(lambda store: store.rows("damaged", [("", id_of(config))]))
    name = "check" if found[0].check else "header"  # sealed rows are proven by their key
    whole = getattr(found[0], name)
    damaged = found[0]._replace(**{name: whole[:-1] + bytes([whole[-1] ^ 1])})
    await world.in_base_store(lambda store: store.rewrite("damaged", [damaged]))
    threads = {thread.id: thread for thread in (await world.another().alist_threads()).threads}
    assert (threads["whole"].next, threads["whole"].problems) == (["y"], [])
    assert [problem.kind for problem in threads["damaged"].problems] == ["damaged"]
    assert "damaged" in threads["damaged"].problems[0].location
    await world.saver.adelete_thread("damaged")


async def a_checkpoint_put_again_as_ended_ends_its_thread(world: World) -> None:
    made = checkpoint(
        *_STEPS["next"][:2], versions_seen=_STEPS["next"].seen, updated_channels=["branch:to:y"],
        checkpoint_id=early_id(1),
    )  # fmt: skip
    await world.saver.aput(at("thread"), made, {}, made["channel_versions"])
    assert (await _there(world, "thread")).status == "unfinished"
    ended = {**made, "versions_seen": {"y": {"branch:to:y": 2}}, "updated_channels": None}
    await world.saver.aput(at("thread"), ended, {}, made["channel_versions"])  # type: ignore[arg-type]  # as above
    assert (await _there(world, "thread")).status == "idle"
