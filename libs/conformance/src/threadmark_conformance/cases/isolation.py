"""Isolation: a saver shares no object that it takes or returns with its own memory."""

from typing import Any

from threadmark_conformance.backend import World
from threadmark_conformance.engine import at, checkpoint, got, listed


async def changing_what_was_put_changes_nothing(world: World) -> None:
    made, metadata = _made(), {"tags": ["a"]}
    config = await world.saver.aput(at("thread"), made, metadata, {"a": 1})
    written: list[Any] = [{"deep": [1]}]
    await world.saver.aput_writes(config, [("a", written)], "task")
    _spoil(made)
    metadata["tags"].append("spoilt")
    written[0]["deep"].append("spoilt")
    await _expect_intact(world, config)


async def changing_what_was_got_changes_nothing(world: World) -> None:
    config = await world.saver.aput(at("thread"), _made(), {"tags": ["a"]}, {"a": 1})
    await world.saver.aput_writes(config, [("a", [{"deep": [1]}])], "task")
    for _ in range(2):
        found = await got(world.saver, config)
        _spoil(found.checkpoint)
        found.metadata["tags"].append("spoilt")
        (found.pending_writes or [])[0][2][0]["deep"].append("spoilt")
        found.config["configurable"]["thread_id"] = "spoilt"
        await _expect_intact(world, config)


async def changing_what_was_listed_changes_nothing(world: World) -> None:
    config = await world.saver.aput(at("thread"), _made(), {"tags": ["a"]}, {"a": 1})
    await world.saver.aput_writes(config, [("a", [{"deep": [1]}])], "task")
    (item,) = await listed(world.saver, None)
    _spoil(item.checkpoint)
    item.metadata.clear()
    (item.pending_writes or []).clear()
    await _expect_intact(world, config)


async def changing_a_history_changes_nothing(world: World) -> None:
    config = await world.saver.aput(at("thread"), checkpoint({"d": [[1]]}), {}, {"d": 1})
    await world.saver.aput_writes(config, [("d", [[2]])], "task")
    child = await world.saver.aput(config, checkpoint({}, {"d": 2}), {}, {"d": 2})
    for _ in range(2):
        found = (await world.saver.aget_delta_channel_history(config=child, channels=["d"]))["d"]
        assert found == {"writes": [("task", "d", [[2]])], "seed": [[1]]}
        found["seed"][0].append("spoilt")
        found["writes"][0][2][0].append("spoilt")


async def changing_the_config_that_put_returned_changes_nothing(world: World) -> None:
    config = await world.saver.aput(at("thread"), _made(), {"tags": ["a"]}, {"a": 1})
    await world.saver.aput_writes(config, [("a", [{"deep": [1]}])], "task")
    kept = {"configurable": dict(config["configurable"])}
    config["configurable"].clear()
    await _expect_intact(world, kept)


async def a_value_changed_after_a_put_is_stored_by_the_next_one(world: World) -> None:
    messages = ["one" * 100]
    first = await world.saver.aput(at("thread"), checkpoint({"m": messages}), {}, {"m": 1})
    messages.append("two" * 100)
    second = await world.saver.aput(first, checkpoint({"m": messages}, {"m": 2}), {}, {"m": 2})
    assert (await got(world.saver, first)).checkpoint["channel_values"]["m"] == messages[:1]
    assert (await got(world.saver, second)).checkpoint["channel_values"]["m"] == messages


def _made() -> Any:
    return checkpoint(
        {"a": [{"deep": [1]}], "text": "x" * 500},
        {"a": 1, "text": 1},
        versions_seen={"n": {"a": 1}},
        odd={"t": (1, [2])},
    )


def _spoil(made: Any) -> None:
    made["channel_values"]["a"][0]["deep"].append("spoilt")
    made["channel_values"]["new"] = "spoilt"
    made["channel_versions"]["a"] = 99
    made["versions_seen"]["n"]["a"] = 99
    made["odd"]["t"][1].append("spoilt")


async def _expect_intact(world: World, config: Any) -> None:
    for saver in (world.saver, world.another()):
        found = await got(saver, config)
        assert found.checkpoint == {**_made(), "id": found.checkpoint["id"]}
        assert found.metadata == {"tags": ["a"]}
        assert found.pending_writes == [("task", "a", [{"deep": [1]}])]
        assert found.config == config
