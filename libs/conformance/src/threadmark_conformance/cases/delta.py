"""Delta channels: a channel that is stored as its ancestors' writes since its last whole value."""

from typing import Any

import pytest

from threadmark.errors import CheckpointNotFoundError
from threadmark.model import DeltaChannelHistory
from threadmark.saver import Saver
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, ids, listed

_COUNTERS = {"counters_since_delta_snapshot": {"d": [1, 1], "snapshot": [1, 1], "other graph's": [1, 1]}}
_LONG = "what a task adds to the channel, at length. " * 8


async def without_ancestors_there_is_no_history(world: World) -> None:
    await Run(world.saver).step({"d": [1]})
    found = await _histories(world.saver, at("thread"), "d", "unknown")
    assert found == {"d": {"writes": []}, "unknown": {"writes": []}}


async def an_unknown_place_has_no_history(world: World) -> None:
    await Run(world.saver).step({"d": [1]})
    for config in (at("nobody"), at("thread", "other"), at("thread", "", "unknown")):
        assert await _histories(world.saver, config, "d") == {"d": {"writes": []}}


async def no_channels_have_no_history(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": [1]})
    assert await _histories(world.saver, run.config) == {}


async def the_ancestors_writes_come_oldest_first_upon_their_seed(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["too old"]})
    await run.write(("d", "too old"))
    await run.step({"d": ["seed", _LONG]})
    del run.values["d"]
    for number in range(4):
        await run.write(("d", number), ("other", number), ("d", _LONG), task="b", path="~1")
        await run.write(("d", -number), task="a", path="~2")
        await run.step(unsaved=["d"])
    await run.write(("d", "pending, so not of an ancestor"))
    expected = [item for number in range(4) for item in (("b", "d", number), ("b", "d", _LONG), ("a", "d", -number))]
    for saver in (world.saver, world.another()):
        for config in (run.config, at("thread")):
            found = await _history(saver, config)
            assert (found["writes"], found["seed"]) == (expected, ["seed", _LONG])


async def without_any_stored_value_there_is_no_seed(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step(unsaved=["d"])
        await run.write(("d", number))
    await run.step(unsaved=["d"])
    assert await _history(world.another(), run.config) == {
        "writes": [("task", "d", 0), ("task", "d", 1), ("task", "d", 2)]
    }


async def none_can_be_a_seed(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": None})
    del run.values["d"]
    await run.step(unsaved=["d"])
    assert await _history(world.saver, run.config) == {"writes": [], "seed": None}


async def the_checkpoint_itself_is_no_ancestor(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["parent"]})
    await run.write(("d", "parent's write"))
    await run.step({"d": ["own"]})
    found = await _history(world.saver, run.config)
    assert found == {"writes": [("task", "d", "parent's write")], "seed": ["parent"]}


async def each_channel_ends_at_its_own_seed(world: World) -> None:
    run = Run(world.saver)
    await run.step({"early": "E", "late": "too old"})
    for number in range(5):
        run.values.clear()
        await run.write(("early", number), ("late", number))
        await run.step({"late": "L"} if number == 2 else {}, unsaved=["early", *(["late"] if number != 2 else [])])
    found = await _histories(world.another(), run.config, "early", "late", "none")
    assert [value for _, _, value in found["early"]["writes"]] == [0, 1, 2, 3, 4]
    assert [value for _, _, value in found["late"]["writes"]] == [3, 4]
    assert (found["early"]["seed"], found["late"]["seed"], found["none"]) == ("E", "L", {"writes": []})


async def each_fork_has_its_own_history(world: World) -> None:
    root = Run(world.saver)
    await root.step({"d": ["seed"]})
    del root.values["d"]
    await root.step(unsaved=["d"])
    await root.write(("d", "shared"))
    await root.step(unsaved=["d"])
    for name in ("left", "right"):
        fork = root.fork(root.config)
        await fork.step({"name": name}, unsaved=["d"])
        await fork.write(("d", name))
        await fork.step(unsaved=["d"])
        found = await _history(world.another(), fork.config)
        assert [value for _, _, value in found["writes"]] == ["shared", name]
        assert found["seed"] == ["seed"]


async def namespaces_do_not_mix(world: World) -> None:
    for ns in ("", "a", "ab"):
        run = Run(world.saver, ns=ns)
        await run.step({"d": ns})
        del run.values["d"]
        await run.write(("d", f"write of {ns}"))
        await run.step(unsaved=["d"])
    for ns in ("", "a", "ab"):
        found = await _history(world.saver, at("thread", ns))
        assert found == {"writes": [("task", "d", f"write of {ns}")], "seed": ns}


async def a_long_chain_is_walked_to_its_end(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["seed"]})
    del run.values["d"]
    configs = []
    for number in range(700):
        if number % 10 == 0:
            await run.write(("d", number))
        configs.append(await run.step(unsaved=["d"]))
    for depth in (1, 62, 63, 64, 65, 511, 512, 513, 577, 578, 700):
        found = await _history(world.cold, configs[depth - 1])
        assert [value for _, _, value in found["writes"]] == list(range(0, depth, 10))
        assert found["seed"] == ["seed"]


async def a_chain_whose_clock_stepped_back_is_walked_by_parents(world: World) -> None:
    from threadmark_conformance.engine import early_id

    run = Run(world.saver)
    await run.step({"d": "seed"}, checkpoint_id=early_id(50))
    del run.values["d"]
    for number in (40, 90, 10, 60):
        await run.write(("d", number))
        await run.step(unsaved=["d"], checkpoint_id=early_id(number))
    found = await _history(world.another(), at("thread"))
    assert ([value for _, _, value in found["writes"]], found["seed"]) == ([40, 90, 10, 60], "seed")


async def a_gap_ends_the_history(world: World) -> None:
    run = Run(world.saver)
    gone = await run.step({"d": "seed"})
    del run.values["d"]
    await run.write(("d", 1))
    await run.step(unsaved=["d"])
    await run.write(("d", 2))
    await run.step(unsaved=["d"])
    await world.in_store(lambda store: store.remove("thread", [("", gone["configurable"]["checkpoint_id"])], ()))
    found = await _history(world.saver, run.config)
    assert found == DeltaChannelHistory(writes=[("task", "d", 2)])


async def changes_of_a_pruned_checkpoint_are_refused(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": "seed", "snapshot": 1})
    del run.values["d"]
    early = await run.step({"snapshot": 2}, unsaved=["d"], metadata=_COUNTERS)
    savers = (world.saver, world.another())
    for saver in savers:
        assert await saver.aget_tuple(early) is not None
    for _ in range(2):
        await run.step({"d": "another seed"})
    await world.another().aprune(["thread"], keep_last=1)
    there = ids(await listed(world.saver, at("thread")))
    for saver in (*savers, world.cold):
        late = run.fork(early)
        late.saver = saver
        late.values.pop("d", None)
        with pytest.raises(CheckpointNotFoundError, match=r'perhaps it was pruned .* Delta channel "d" is read from'):
            await late.step({"snapshot": 3}, unsaved=["d"], metadata=_COUNTERS)
    assert ids(await listed(world.saver, at("thread"))) == there
    late = run.fork(early)
    await late.step({"d": "a snapshot", "snapshot": 3}, metadata=_COUNTERS)  # it needs no ancestor
    assert len(await listed(world.saver, at("thread"))) == len(there) + 1


async def an_inherited_value_seeds_at_every_step(world: World) -> None:
    run = Run(world.saver)
    await run.step({"d": ["kept", _LONG]})
    config = await world.saver.aput(run.config, checkpoint({}, {"d": 1, "x": 1}), {}, {"x": 1})
    child = await world.saver.aput(config, checkpoint({}, {"d": 2, "x": 1}), {}, {"d": 2})
    found = await _history(world.another(), child)
    assert (found["writes"], found["seed"]) == ([], ["kept", _LONG])


async def _histories(saver: Saver, config: dict[str, Any], *channels: str) -> dict[str, DeltaChannelHistory]:
    return dict(await saver.aget_delta_channel_history(config=config, channels=channels))


async def _history(saver: Saver, config: Any) -> DeltaChannelHistory:
    return (await _histories(saver, config, "d"))["d"]
