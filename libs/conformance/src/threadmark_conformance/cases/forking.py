"""Going back: a new branch or a new thread from any checkpoint, and an old checkpoint made the newest again."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from threadmark.errors import (
    CheckpointNotFoundError,
    ConfigError,
    ConflictError,
    CorruptDataError,
    LeaseLostError,
    SerializationError,
    ThreadBusyError,
    ThreadDeletedError,
)
from threadmark.store.contract import Store
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, ids, listed, values
from threadmark_conformance.leasing import taken, under

_LONG = "what a fork shares with the checkpoint that it was made from. " * 40


async def _history(world: World, steps: int = 4) -> tuple[Run, list[dict[str, Any]]]:
    """A thread with pending writes and an open question, and the configurations of its checkpoints."""
    run = Run(world.saver)
    configs = []
    for number in range(steps):
        metadata = {"source": "loop", "run_id": "r", "user": "ada", "parents": {}}
        configs.append(await run.step({"a": f"{number}{_LONG}", "n": number}, metadata=metadata))
        await run.write(("a", _LONG), ("__interrupt__", "?"), task=f"t{number}", path="~__pregel_pull, node")
    return run, configs


async def a_fork_is_the_newest_and_shares_its_bytes(world: World) -> None:
    _, configs = await _history(world)
    before = await listed(world.cold, at("thread"))
    source = await got(world.saver, configs[1])
    for saver in (world.saver, world.another()):
        stored = (await saver.astats("thread")).bytes_stored
        made = await saver.afork({**configs[1], "metadata": {"tag": "x"}})
        assert (await saver.astats("thread")).bytes_stored - stored < 600
        for reader in (saver, world.cold):
            found = await got(reader, at("thread"))
            assert found.config == made == await _config(reader, made)
            assert found.parent_config == source.config
            assert found.pending_writes == []
            assert found.metadata == {"source": "fork", "step": 2, "user": "ada", "parents": {}, "tag": "x"}
            assert found.checkpoint["id"] > source.checkpoint["id"]
            assert found.checkpoint["ts"] > source.checkpoint["ts"]
            assert _without(found.checkpoint, "id", "ts") == _without(source.checkpoint, "id", "ts")
    assert (await listed(world.cold, at("thread")))[2:] == before
    tree = await world.cold.atree("thread")
    assert [branch.forked_from for branch in tree.branches] == [None, id_of(configs[1]), id_of(configs[1])]
    child = checkpoint({"n": 9}, {"n": 9})
    await world.saver.aput(made, child, {}, {"n": 9}, expect_newest=True)


async def a_fork_holds_new_values_under_greater_versions(world: World) -> None:
    for number, versions in enumerate(
        (
            {"a": 3, "b": 7, "n": 7},
            {"a": 1.5, "b": 7.0, "n": 2.0},
            {"a": f"{1:032d}.5", "b": f"{41:032d}.25", "n": f"{2:032d}.5"},
        )
    ):
        kept: Any = {"a": _LONG, "b": [1, (2,)], "n": 1}
        initial: Mapping[str, Any] = versions  # type: ignore[assignment]  # of three kinds
        made = checkpoint(kept, initial, updated_channels=["a"], odd={1, 2}, versions_seen={"node": {"a": 1}})
        placed = await world.saver.aput(at(f"thread {number}"), made, {"step": 1}, initial)
        forked = await world.saver.afork(placed, {"n": {"any": _LONG}, "b": None})
        for saver in (world.saver, world.cold):
            found = await got(saver, forked)
            new = found.checkpoint["channel_versions"]
            assert new["a"] == initial["a"]
            assert new["n"] == new["b"] > max(initial.values())
            assert type(new["n"]) is type(initial["n"])
            assert found.checkpoint["channel_values"] == {**kept, "n": {"any": _LONG}, "b": None}
            assert found.checkpoint["updated_channels"] is None
            assert found.checkpoint["odd"] == {1, 2}  # type: ignore[typeddict-item]  # a field of the engine's own
            assert found.checkpoint["versions_seen"] == {"node": {"a": 1}}
        assert (await got(world.cold, placed)).checkpoint == made
        (entry, _) = (await world.cold.ahistory(f"thread {number}")).entries
        assert (entry.changed, entry.nodes, entry.source, entry.step) == (["b", "n"], [], "fork", 2)


async def a_fork_comes_behind_whatever_is_the_newest(world: World) -> None:
    run = Run(world.saver)
    old = await run.step({"a": 1}, checkpoint_id=early_id(1))
    newest = await run.step({"a": 2}, checkpoint_id="zz, of a clock that was wrong")
    made = [await world.saver.arestore(old), await world.another().afork(old), await world.saver.afork(newest)]
    assert ids(await listed(world.cold, at("thread"))) == [*map(id_of, made[::-1]), id_of(newest), id_of(old)]
    many = await asyncio.gather(*(world.saver.afork(old) for _ in range(6)))
    assert len({id_of(config) for config in many}) == 6
    assert len(await listed(world.cold, at("thread"))) == 11
    tree = await world.saver.atree("thread")
    assert [branch.checkpoints for branch in tree.branches if branch.is_newest] != []


async def a_restored_checkpoint_is_the_newest_and_nothing_is_lost(world: World) -> None:
    _, configs = await _history(world)
    before = await listed(world.cold, at("thread"))
    restored = await world.saver.arestore(configs[0])
    found, old = await got(world.cold, at("thread")), await got(world.cold, configs[0])
    assert found.config == restored
    assert found.parent_config == old.config
    assert _without(found.checkpoint, "id", "ts") == _without(old.checkpoint, "id", "ts")
    assert (await listed(world.cold, at("thread")))[1:] == before
    # Restoring the newest checkpoint leaves it as it is, with its pending writes.
    again = await world.another().arestore(restored)
    assert again == restored == await world.saver.arestore(at("thread"))
    assert len(await listed(world.cold, at("thread"))) == 5
    back = await world.saver.arestore(configs[3])
    assert (await values(world.saver, back))["n"] == 3
    inner = Run(world.saver, ns="child:1")
    first = await inner.step({"a": 1})
    await inner.step({"a": 2})
    assert await values(world.saver, await world.saver.arestore(first)) == {"a": 1}
    assert await values(world.saver, at("thread", "child:1")) == {"a": 1}


async def a_new_thread_has_the_checkpoint_and_its_ancestors(world: World) -> None:
    run, configs = await _history(world)
    side = run.fork(configs[1])
    await side.step({"a": bytes(range(256)) * 2})
    await world.saver.aupdate_thread("thread", title="a title", metadata={"k": 1}, owner="ada")
    for number, config in enumerate((configs[2], configs[3])):
        name = f"new {number}"
        made = await world.saver.afork(config, as_thread=name)
        assert made == at(name, "", id_of(config))
        for saver in (world.saver, world.cold):
            found = await listed(saver, at(name))
            assert ids(found) == [id_of(each) for each in configs[: 3 + number][::-1]]
            for item in found:
                source = await got(saver, at("thread", "", item.checkpoint["id"]))
                assert item.checkpoint == source.checkpoint
                assert item.metadata == source.metadata
                # The question of the newest checkpoint stays open. After the other checkpoint, the step runs again.
                waits = source.checkpoint["id"] != id_of(configs[2]) or number == 1
                assert item.pending_writes == (source.pending_writes if waits else [])
        info = await world.cold.aget_thread(name)
        assert info is not None
        assert info[1:4] == ("ada", "a title", {"k": 1})
    removed = await world.saver.aprune(["new 0"], strategy="delete", dry_run=True)
    whole = await world.saver.aprune(["thread"], strategy="delete", dry_run=True)
    assert removed.segments < whole.segments
    assert (await world.cold.averify("new 0")).problems == []
    before = await listed(world.cold, at("new 1"))
    await world.saver.adelete_thread("thread")
    assert await listed(world.cold, at("new 1")) == before
    assert (await values(world.another(), at("new 0")))["n"] == 2


async def a_new_thread_may_begin_with_new_values(world: World) -> None:
    _, configs = await _history(world)
    made = await world.saver.afork(configs[2], {"a": "new" + _LONG}, as_thread="new")
    for saver in (world.saver, world.cold):
        assert await values(saver, at("new")) == {"a": "new" + _LONG, "n": 2}
        found = await listed(saver, at("new"))
        assert ids(found)[1:] == [id_of(config) for config in configs[2::-1]]
        assert found[0].parent_config == found[1].config
        assert found[0].config == made
    assert len(await listed(world.saver, at("thread"))) == 4


async def what_subgraphs_stored_goes_along_where_a_run_comes_back_to_it(world: World) -> None:
    run = Run(world.saver)
    callers = []
    for number in range(3):
        callers.append(await run.step({"a": number}))
        metadata = {"parents": {"": id_of(callers[-1])}}
        for ns in (f"call:{number}", "memory"):
            place = at("thread", ns)
            latest = await world.saver.aget_tuple(place)
            made = checkpoint({"m": f"{number}{ns}{_LONG}"}, {"m": number + 1})
            placed = await world.saver.aput(latest.config if latest else place, made, metadata, {"m": number + 1})
            await world.saver.aput_writes(placed, [("m", _LONG)], "task")
    for number, expected in enumerate(([0], [0, 1], [0, 1, 2])):
        name = f"new {number}"
        await world.saver.afork(callers[number], as_thread=name)
        memory = await listed(world.cold, at(name, "memory"))
        # The step of an old checkpoint runs again, and calls again.
        remembered = expected if number == 2 else expected[:-1]
        assert [item.checkpoint["channel_values"]["m"][0] for item in memory] == [
            str(each) for each in remembered[::-1]
        ]
        assert all(len(item.pending_writes or []) == 1 for item in memory)
        calls = {ref.ns for ref in await world.cold.alist_checkpoint_refs() if ref.thread_id == name and ":" in ref.ns}
        assert calls == ({"call:2"} if number == 2 else set())
        assert (await world.cold.averify(name, decode=True)).problems == []
    with pytest.raises(ConfigError, match="of the graph itself, not of the namespace 'memory'"):
        await world.saver.afork(at("thread", "memory"), as_thread="other")
    assert await world.saver.aget_thread("other") is None


async def a_delta_channel_reads_the_same_from_a_fork(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["seed"], "n": 0}, metadata={"counters_since_delta_snapshot": {"d": [1, 1]}})
    del run.values["d"]
    configs = []
    for number in range(4):
        await run.write(("d", number))
        configs.append(await run.step({"n": number}, unsaved=["d"]))
    await run.write(("d", "not applied"))

    async def history(saver: Any, config: Any) -> Any:
        return (await saver.aget_delta_channel_history(config=config, channels=["d"]))["d"]

    for config in (configs[1], configs[3]):
        before = await history(world.cold, config)
        name = f"new {id_of(config)}"
        fork_configs = [await world.saver.afork(config), await world.saver.afork(config, {"n": "new"})]
        fork_configs += [await world.saver.afork(config, as_thread=name), await world.saver.arestore(config)]
        fork_configs.append(await world.saver.afork(config, {"n": "new"}, as_thread=f"{name}, changed"))
        for place in fork_configs:
            assert await history(world.cold, place) == before
        assert (await values(world.cold, fork_configs[1]))["n"] == "new"
        await world.saver.aprune([name], keep_last=1)
        assert await history(world.cold, at(name)) == before
    with pytest.raises(ConfigError, match=r"channel 'd' of .* is a delta channel.*graph.update_state"):
        await world.saver.afork(configs[3], {"d": ["whole"]})


async def what_is_not_there_or_no_channel_is_refused(world: World) -> None:
    _, configs = await _history(world, 2)
    before = await listed(world.cold, None)
    saver = world.another()
    for method in (saver.afork, saver.arestore):
        for place in (at("nobody"), at("thread", "other"), at("thread", "", "unknown")):
            with pytest.raises(CheckpointNotFoundError, match=f"thread '{place['configurable']['thread_id']}'"):
                await method(place)
        with pytest.raises(ConfigError, match="is reserved for messages"):
            await method(at("thread", "__messages__"))
    with pytest.raises(ConfigError, match=r"no channel 'm'.*'a', 'n'.*graph.update_state"):
        await saver.afork(configs[0], {"m": 1})
    with pytest.raises(SerializationError, match='channel "a"'):
        await saver.afork(configs[0], {"a": lambda: None})
    wrong: Any
    for wrong in ([], "text", {1: 2}):
        with pytest.raises(ConfigError, match=r"dictionary|a channel's name"):
            await saver.afork(configs[0], wrong)
    await saver.acreate_thread("taken")
    for taken_id in ("taken", "thread"):
        with pytest.raises(ConflictError, match=f"'{taken_id}' exists already"):
            await saver.afork(configs[0], as_thread=taken_id)
    assert await listed(world.cold, None) == before


async def a_fork_is_a_write_under_the_rules_of_the_thread(world: World) -> None:
    _, configs = await _history(world)
    lease = await taken(world.saver, holder="somebody")
    other = world.another()
    for method in (other.afork, other.arestore):
        with pytest.raises(ThreadBusyError, match="somebody"):
            await method(configs[0])
        with pytest.raises(LeaseLostError):
            await method({"configurable": {**configs[0]["configurable"], "lease_token": lease.token - 1}})
    made = await other.afork(under(lease, id_of(configs[0])))
    assert made["configurable"]["lease_token"] == lease.token
    assert (await other.arestore(under(lease, id_of(configs[1]))))["configurable"]["lease_token"] == lease.token
    # Reading the thread needs no lease; that of the new thread counts.
    assert await other.afork(configs[1], as_thread="new") == at("new", "", id_of(configs[1]))
    waiting = await taken(world.saver, "coming")
    with pytest.raises(ThreadBusyError):
        await other.afork(configs[1], as_thread="coming")
    await waiting.arelease()
    await lease.arelease()
    # A fork is marked as one, so its put expects nothing.
    strict = world.with_rules(expect_newest=True, keep_last=2)
    assert (await values(strict, await strict.afork(configs[0])))["n"] == 0
    assert len(await listed(world.cold, at("thread"))) == 2
    assert len(await listed(world.cold, at("new"))) == 2
    with pytest.raises(CheckpointNotFoundError):
        await strict.afork(configs[0])
    await world.saver.adelete_thread("thread")
    for method in (strict.afork, world.saver.afork, world.saver.arestore):
        with pytest.raises((CheckpointNotFoundError, ThreadDeletedError)):
            await method(made)
    assert await world.saver.aget_thread("thread") is None


async def a_fork_of_what_is_damaged_is_refused(world: World) -> None:
    _, configs = await _history(world)

    def lose(store: Store) -> Any:
        yield from store.lock("thread")
        sizes = yield from store.segment_sizes("thread")
        yield from store.remove("thread", [], list(sizes))

    await world.in_store(lose)
    saver = world.another()
    for attempt in (
        saver.afork(configs[1]),
        saver.afork(configs[1], {"a": 1}),
        saver.afork(configs[1], as_thread="new"),
        saver.arestore(configs[1]),
    ):
        with pytest.raises(CorruptDataError):
            await attempt
    assert await saver.aget_thread("new") is None
    assert len((await saver.ahistory("thread")).entries) == 4
    await saver.adelete_thread("thread")


async def _config(saver: Any, config: Any) -> Any:
    return (await got(saver, config)).config


def _without(made: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in made.items() if key not in fields}
