"""Putting checkpoints: which values a checkpoint has, forks, and the meaning of a repeated id."""

from typing import Any

from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, listed, values

_LONG = "a text that is too long to stand in a row, so that it is stored by its digest. " * 4


async def a_channel_that_is_not_new_inherits_its_value(world: World) -> None:
    for number, value in enumerate(("short", _LONG)):
        first = await world.saver.aput(at(number), checkpoint({"a": value}), {}, {"a": 1})
        later = checkpoint({}, {"a": 1, "b": 1})
        second = await world.another().aput(first, later, {}, {"b": 1})
        assert await values(world.saver, second) == {"a": value}


async def inheriting_goes_on_through_many_steps(world: World) -> None:
    run = Run(world.saver)
    await run.step({"kept": _LONG})
    for number in range(40):
        config = await run.saver.aput(
            run.config, checkpoint({"n": number}, {"kept": 1, "n": number + 1}), {}, {"n": number + 1}
        )
        run.config = config
    assert await values(world.another(), config) == {"kept": _LONG, "n": 39}


async def a_channel_that_no_parent_has_takes_the_passed_value(world: World) -> None:
    config = await world.saver.aput(at("thread"), checkpoint({"a": [1], "b": _LONG}), {}, {})
    assert await values(world.another(), config) == {"a": [1], "b": _LONG}
    child = await world.another().aput(config, checkpoint({"a": [1], "b": _LONG, "c": 2}), {}, {})
    assert await values(world.saver, child) == {"a": [1], "b": _LONG, "c": 2}


async def a_new_version_without_a_value_is_an_empty_channel(world: World) -> None:
    first = await world.saver.aput(at("thread"), checkpoint({"a": 1, "b": 2}), {}, {"a": 1, "b": 1})
    second = await world.saver.aput(first, checkpoint({"b": 2}, {"a": 2, "b": 1}), {}, {"a": 2})
    found = await got(world.another(), second)
    assert found.checkpoint["channel_values"] == {"b": 2}
    assert found.checkpoint["channel_versions"] == {"a": 2, "b": 1}


async def an_emptied_channel_stays_empty_and_can_be_filled_again(world: World) -> None:
    first = await world.saver.aput(at("thread"), checkpoint({"a": 1}), {}, {"a": 1})
    second = await world.saver.aput(first, checkpoint({}, {"a": 2}), {}, {"a": 2})
    third = await world.saver.aput(second, checkpoint({}, {"a": 2}), {}, {})
    fourth = await world.saver.aput(third, checkpoint({"a": 5}, {"a": 3}), {}, {"a": 3})
    assert [await values(world.saver, config) for config in (second, third, fourth)] == [{}, {}, {"a": 5}]


async def a_channel_without_a_version_is_gone(world: World) -> None:
    first = await world.saver.aput(at("thread"), checkpoint({"a": 1, "b": 2}), {}, {"a": 1, "b": 1})
    second = await world.saver.aput(first, checkpoint({"b": 2}, {"b": 1}), {}, {})
    assert await values(world.another(), second) == {"b": 2}


async def none_is_a_value(world: World) -> None:
    config = await Run(world.saver).step({"a": None})
    assert await values(world.another(), config) == {"a": None}


async def a_value_is_stored_though_its_version_did_not_grow(world: World) -> None:
    run = Run(world.saver)
    first = await run.step({"a": "old"})
    second = await world.saver.aput(first, checkpoint({"a": "new"}), {}, {"a": 1})
    assert await values(world.saver, second) == {"a": "new"}
    assert await values(world.another(), first) == {"a": "old"}


async def forks_whose_integer_versions_meet_keep_their_own_values(world: World) -> None:
    await _fork_and_compare(world, [1, 2, 3, 4])


async def forks_whose_float_versions_meet_keep_their_own_values(world: World) -> None:
    await _fork_and_compare(world, [1.0, 2.0, 3.0, 4.0])


async def forks_whose_string_versions_meet_keep_their_own_values(world: World) -> None:
    await _fork_and_compare(world, [f"{number:032d}.0000000000000001" for number in range(1, 5)])


async def versions_keep_their_kind(world: World) -> None:
    mixed: dict[str, Any] = {"int": 3, "float": 2.0, "text": "00000000000000000000000000000002.0123456789012345"}
    made = checkpoint(dict.fromkeys(mixed, "x"), mixed, versions_seen={"node": mixed})
    config = await world.saver.aput(at("thread"), made, {}, mixed)
    found = await got(world.another(), config)
    for versions in (found.checkpoint["channel_versions"], found.checkpoint["versions_seen"]["node"]):
        assert [(key, type(value), value) for key, value in versions.items()] == [
            (key, type(value), value) for key, value in mixed.items()
        ]


async def the_next_version_continues_in_kind(world: World) -> None:
    follows = world.saver.get_next_version
    assert (follows(None), follows(1), type(follows(7))) == (1, 2, int)
    assert (follows(1.0), type(follows(1.0))) == (2.0, float)
    version = "00000000000000000000000000000009.0999999999999999"
    for _ in range(3):
        after = follows(version)
        assert isinstance(after, str)
        assert len(after) == len(version)
        assert (after > version, int(after.partition(".")[0])) == (True, int(version.partition(".")[0]) + 1)
        version = after


async def putting_an_id_again_replaces_the_checkpoint(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 0})
    made = checkpoint({"a": 1}, {"a": 2})
    before = run.config
    await world.saver.aput(before, made, {"try": 1}, {"a": 2})
    again = checkpoint({"a": _LONG}, {"a": 3}, checkpoint_id=made["id"])
    config = await world.another().aput(before, again, {"try": 2}, {"a": 3})
    for saver in (world.saver, world.another()):
        found = await got(saver, config)
        assert (found.checkpoint, found.metadata, found.parent_config) == (again, {"try": 2}, before)
    assert len(await listed(world.saver, at("thread"))) == 2


async def a_remembered_parent_that_another_process_replaced_is_not_trusted_for_values(world: World) -> None:
    other = world.another()
    first = await world.saver.aput(at("thread"), checkpoint({"a": _LONG + "1"}), {}, {"a": 1})
    assert await values(other, first) == {"a": _LONG + "1"}
    again = checkpoint({"a": _LONG + "2"}, {"a": 2}, checkpoint_id=id_of(first))
    await world.saver.aput(at("thread"), again, {}, {"a": 2})
    child = checkpoint({"a": _LONG + "2"}, {"a": 2, "b": 1})
    second = await other.aput(first, {**child, "channel_values": {"a": _LONG + "2", "b": 1}}, {}, {"b": 1})
    assert await values(world.another(), second) == {"a": _LONG + "2", "b": 1}


async def a_checkpoint_put_under_its_own_config_is_no_child_of_itself(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": _LONG})
    config = await run.step({"b": 1})
    again = checkpoint({"b": 2}, {"a": 1, "b": 3}, checkpoint_id=id_of(config))
    assert await world.saver.aput(config, again, {"again": True}, {"b": 3}) == config
    found = await got(world.another(), config)
    assert found.parent_config != config
    assert found.checkpoint["channel_values"] == {"a": _LONG, "b": 2}
    history = await world.saver.aget_delta_channel_history(config=config, channels=["none"])
    assert history["none"] == {"writes": []}


async def parents_in_a_loop_harm_nobody(world: World) -> None:
    one, other = early_id(1), early_id(2)
    for mine, parent in ((one, other), (other, one)):
        made = checkpoint({"a": mine}, checkpoint_id=mine)
        await world.saver.aput(at("thread", "", parent), made, {}, {"a": 1})
    saver = world.another()
    for mine in (one, other):
        assert await values(saver, at("thread", "", mine)) == {"a": mine}
    history = await saver.aget_delta_channel_history(config=at("thread", "", one), channels=["none"])
    assert history["none"]["writes"] == []
    assert len(await listed(saver, at("thread"))) == 2
    await saver.aprune(["thread"])
    assert len(await listed(saver, at("thread"))) == 1


async def a_parent_that_is_not_stored_is_still_named(world: World) -> None:
    unknown = at("thread", "", early_id(5))
    config = await world.saver.aput(unknown, checkpoint({"a": [1]}, {"a": 7}), {}, {"a": 7})
    found = await got(world.another(), config)
    assert found.parent_config == unknown
    assert found.checkpoint["channel_values"] == {"a": [1]}


async def a_run_can_change_its_saver_at_every_step(world: World) -> None:
    run = Run(world.saver)
    messages: list[str] = []
    for number in range(12):
        run.saver = world.another(cache_bytes=0 if number % 3 else 1 << 20)
        messages = [*messages, f"{number} {_LONG}"]
        await run.step({"messages": messages, "n": number})
    assert await values(world.another(), run.config) == {"messages": messages, "n": 11}


async def _fork_and_compare(world: World, versions: list[Any]) -> None:
    root = await world.saver.aput(at("thread"), checkpoint({"a": "root"}, {"a": versions[0]}), {}, {"a": versions[0]})
    leaves: list[tuple[dict[str, Any], Any]] = []
    for branch in range(3):
        config = root
        for version in versions[1:]:
            value = [branch, version, _LONG]
            config = await world.saver.aput(config, checkpoint({"a": value}, {"a": version}), {}, {"a": version})
            leaves.append((config, value))
    for saver in (world.saver, world.another()):
        for config, value in leaves:
            assert await values(saver, config) == {"a": value}
        assert await values(saver, root) == {"a": "root"}


async def what_another_saver_put_in_a_checkpoints_place_is_inherited(world: World) -> None:
    """The other value has the same id and versions: a child does not inherit the value that its saver remembers."""
    run = Run(world.saver)
    config = await run.step({"kept": "old " * 100, "a": 0})
    again = checkpoint({"kept": "new " * 100, "a": 0}, run.versions, checkpoint_id=id_of(config))
    await world.another().aput(at("thread", ""), again, {}, run.versions)
    run.values = {}  # the engine leaves out unchanged channels
    child = await run.step({"a": 1})
    assert await values(world.another(), child) == {"a": 1, "kept": "new " * 100}
    assert await values(world.saver, child) == {"a": 1, "kept": "new " * 100}


async def the_same_checkpoint_put_again_changes_nothing(world: World) -> None:
    run = Run(world.saver)
    config = await run.step({"kept": "old " * 100})
    made = checkpoint(run.values, run.versions, checkpoint_id=id_of(config))
    for saver in (world.another(), world.saver):
        await saver.aput(at("thread", ""), made, {"step": 7}, run.versions)
    (found,) = await listed(world.another(), at("thread"))
    assert found.checkpoint["channel_values"] == run.values
    assert found.metadata == {"step": 7}
