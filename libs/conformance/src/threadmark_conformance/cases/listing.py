"""Listing: which checkpoints, in which order, and that nothing is held while a listing is paused."""

import asyncio
from typing import Any

from threadmark.ids import new_id
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, ids, listed


async def the_newest_comes_first(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step({"a": number}) for number in range(20)]
    found = await listed(world.another(), at("thread", ""))
    assert [item.config for item in found] == configs[::-1]
    assert [item.parent_config for item in found] == [*configs[-2::-1], None]
    assert [item.checkpoint["channel_values"] for item in found] == [{"a": number} for number in range(19, -1, -1)]


async def an_item_is_what_get_tuple_gives(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": [number] * 100}, metadata={"x": number})
        await run.write(("a", number))
    for item in await listed(world.another(), at("thread")):
        assert item == await got(world.saver, item.config)


async def a_long_history_is_listed_whole(world: World) -> None:
    made = [early_id(number) for number in range(1100)]
    puts = (world.saver.aput(at("thread"), checkpoint(checkpoint_id=each), {}, {}) for each in made)
    await asyncio.gather(*puts)
    assert ids(await listed(world.saver, at("thread"))) == made[::-1]
    assert ids(await listed(world.saver, at("thread"), limit=600)) == made[:-601:-1]


async def a_listing_may_be_of_one_namespace_or_of_all(world: World) -> None:
    for ns in ("", "a", "ab", "a|b"):
        await Run(world.saver, ns=ns).step({"x": ns})
    await Run(world.saver, "other").step()

    async def namespaces(config: dict[str, Any]) -> list[str]:
        return [item.config["configurable"]["checkpoint_ns"] for item in await listed(world.saver, config)]

    assert await namespaces(at("thread")) == ["a|b", "ab", "a", ""]
    for ns in ("", "a", "ab", "a|b"):
        assert await namespaces(at("thread", ns)) == [ns]
    assert await namespaces(at("thread", "b")) == []


async def all_namespaces_are_sorted_by_id_together(world: World) -> None:
    outer, inner = Run(world.saver), Run(world.saver, ns="child")
    expected = [id_of(await (outer if number % 2 else inner).step()) for number in range(8)]
    assert ids(await listed(world.saver, at("thread"))) == expected[::-1]


async def a_listing_without_config_has_all_threads(world: World) -> None:
    expected = []
    for number in range(6):
        config = await Run(world.saver, f"thread {number % 3}").step({"a": number})
        expected.append(config)
    assert [item.config for item in await listed(world.another(), None)] == expected[::-1]


async def a_thread_is_matched_whole(world: World) -> None:
    for thread in ("t", "t1", "T", "t%", "t_", " t"):
        await Run(world.saver, thread).step({"a": thread})
    for thread in ("t", "t1", "T", "t%", "t_", " t"):
        found = await listed(world.saver, at(thread))
        assert [item.checkpoint["channel_values"] for item in found] == [{"a": thread}]
    assert await listed(world.saver, at("%")) == []


async def a_listing_may_be_of_one_checkpoint(world: World) -> None:
    run = Run(world.saver)
    first = await run.step({"a": 1})
    await run.step({"a": 2})
    assert [item.config for item in await listed(world.saver, first)] == [first]
    assert await listed(world.saver, at("thread", "", new_id())) == []
    assert await listed(world.saver, at("thread", "other", id_of(first))) == []


async def before_is_strictly_older(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step({"a": number}) for number in range(5)]
    for number, config in enumerate(configs):
        found = await listed(world.saver, at("thread"), before=config)
        assert [item.config for item in found] == configs[:number][::-1]
    assert len(await listed(world.saver, None, before=configs[2])) == 2


async def before_may_name_an_id_that_is_not_stored(world: World) -> None:
    for number in (1, 2, 3, 5):
        await world.saver.aput(at("thread"), checkpoint(checkpoint_id=early_id(number)), {}, {})
    for number, count in ((1, 0), (4, 3), (9, 4), (0, 0)):
        found = await listed(world.saver, at("thread"), before=at("thread", "", early_id(number)))
        assert ids(found) == [early_id(each) for each in (5, 3, 2, 1) if each < number]
        assert len(found) == count


async def before_means_the_order_of_the_history_though_the_clock_stepped_back(world: World) -> None:
    run = Run(world.saver)
    numbers = [10, 500, 100, 300, 50]
    configs = [await run.step(checkpoint_id=early_id(number)) for number in numbers]
    for position, config in enumerate(configs):
        expected = [early_id(number) for number in numbers[:position]][::-1]
        assert ids(await listed(world.saver, at("thread"), before=config)) == expected
        assert ids(await listed(world.saver, at("thread", ""), before=config)) == expected


async def before_without_an_id_leaves_everything(world: World) -> None:
    await Run(world.saver).step()
    assert len(await listed(world.saver, at("thread"), before=at("thread"))) == 1


async def limit_counts_what_is_yielded(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step(metadata={"even": number % 2 == 0}) for number in range(40)]
    for limit in (1, 2, 16, 17, 39, 40, 100):
        found = await listed(world.saver, at("thread"), limit=limit)
        assert [item.config for item in found] == configs[::-1][:limit]
    evens = await listed(world.saver, at("thread"), filter={"even": True}, limit=18)
    assert [item.config for item in evens] == configs[-2::-2][:18]


async def a_limit_of_zero_is_nothing(world: World) -> None:
    await Run(world.saver).step()
    assert await listed(world.saver, None, limit=0) == []
    assert await listed(world.saver, at("thread"), limit=0) == []


async def filter_before_and_limit_work_together(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step(metadata={"kind": "ab"[number % 2]}) for number in range(12)]
    found = await listed(world.saver, at("thread"), filter={"kind": "a"}, before=configs[9], limit=3)
    assert [item.config for item in found] == [configs[8], configs[6], configs[4]]


async def filters_compare_json_values_with_their_type(world: World) -> None:
    kinds: list[Any] = [True, False, 1, 0, "1", "true", None, "null", [], {}, "", 2.5, [1, True], {"a": 1}, "True"]
    for value in kinds:
        await world.saver.aput(at("thread"), checkpoint(), {"key": value, "other": 1}, {})
    for value in kinds:
        found = await listed(world.saver, None, filter={"key": value})
        assert [repr(item.metadata["key"]) for item in found] == [repr(value)]


async def equal_numbers_match_however_they_are_spelled(world: World) -> None:
    for value in (1, 1.0, 1e16, 10**16, 2):
        await world.saver.aput(at("thread"), checkpoint(), {"key": value}, {})
    assert [item.metadata["key"] for item in await listed(world.saver, None, filter={"key": 1})] == [1, 1]
    assert len(await listed(world.saver, None, filter={"key": 1.0})) == 2
    assert len(await listed(world.saver, None, filter={"key": 10**16})) == 2


async def nan_matches_nan(world: World) -> None:
    for value in (float("nan"), 1.0, None, "NaN", [float("nan")]):
        await world.saver.aput(at("thread"), checkpoint(), {"key": value}, {})
    assert len(await listed(world.saver, None, filter={"key": float("nan")})) == 1
    assert len(await listed(world.saver, None, filter={"key": [float("nan")]})) == 1


async def none_matches_only_an_explicit_null(world: World) -> None:
    kinds: list[dict[str, Any]] = [{"key": None}, {}, {"key": 0}, {"key": "None"}, {"other": None}]
    for metadata in kinds:
        await world.saver.aput(at("thread"), checkpoint(), metadata, {})
    assert [item.metadata for item in await listed(world.saver, None, filter={"key": None})] == [{"key": None}]


async def nested_values_are_compared_whole(world: World) -> None:
    inputs: list[Any] = [{"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, {"a": 1}, {"a": 1, "b": [2, 1]}, {"a": True}]
    for value in inputs:
        await world.saver.aput(at("thread"), checkpoint(), {"key": value}, {})
    assert len(await listed(world.saver, None, filter={"key": {"a": 1, "b": [1, 2]}})) == 2
    assert len(await listed(world.saver, None, filter={"key": {"a": 1}})) == 1
    assert len(await listed(world.saver, None, filter={"key": {"a": True}})) == 1
    assert len(await listed(world.saver, None, filter={"key": {}})) == 0


async def filter_keys_are_literal_top_level_keys(world: World) -> None:
    inputs: list[dict[str, Any]] = [
        {"a.b": 1},
        {"a": {"b": 1}},
        {"a[0]": 1},
        {"$.a": 1},
        {"": 1},
        {'"': 1},
        {"'": 1},
        {"%s": 1},
        {"a%": 1},
    ]
    for metadata in inputs:
        await world.saver.aput(at("thread"), checkpoint(), metadata, {})
    for key in ("a.b", "a[0]", "$.a", "", '"', "'", "%s", "a%"):
        assert [item.metadata for item in await listed(world.saver, None, filter={key: 1})] == [{key: 1}]


async def filters_cannot_say_anything_to_a_database(world: World) -> None:
    await Run(world.saver).step(metadata={"user": "u1"})
    hostile = [
        "' OR '1'='1",
        "x') OR 1=1 --",
        '") OR 1=1 --',
        "$.user') = 1 OR 1=1 --",
        "user' IS NOT NULL --",
        "%",
        "*",
    ]
    for text in hostile:
        assert await listed(world.saver, None, filter={text: "u1"}) == []
        assert await listed(world.saver, None, filter={"user": text}) == []
        assert await listed(world.saver, None, filter={"user": {"$ne": text}}) == []
        assert await listed(world.saver, at(text)) == []
        assert await listed(world.saver, at("thread", text)) == []
    assert len(await listed(world.saver, None, filter={"user": "u1"})) == 1


async def several_filter_keys_must_all_match(world: World) -> None:
    for a in (1, 2):
        for b in ("x", "y"):
            await world.saver.aput(at("thread"), checkpoint(), {"a": a, "b": b}, {})
    assert [item.metadata for item in await listed(world.saver, None, filter={"a": 2, "b": "x"})] == [
        {"a": 2, "b": "x"}
    ]
    assert len(await listed(world.saver, None, filter={})) == 4


async def text_of_every_kind_can_be_searched(world: World) -> None:
    texts = ["ä", "\u2028", "\x00", "\ud800", "a\\b", 'a"b', "\U0001f600", "\x7f", "tab\t", "\u017f", "s"]
    for text in texts:
        await world.saver.aput(at("thread"), checkpoint(), {"key": text, text: "key"}, {})
    for text in texts:
        for wanted in ({"key": text}, {text: "key"}, {"key": text, text: "key"}):
            assert [item.metadata for item in await listed(world.saver, None, filter=wanted)] == [
                {"key": text, text: "key"}
            ]


async def an_unknown_thread_lists_nothing(world: World) -> None:
    await Run(world.saver).step()
    assert await listed(world.saver, at("nobody")) == []


async def a_paused_listing_holds_nothing(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step({"a": number}) for number in range(30)]
    items = world.saver.alist(at("thread"))
    first = await anext(items)
    await run.step({"a": "put while paused"})
    await run.write(("a", 1))
    await world.another().aput(at("other"), checkpoint(), {}, {})
    rest = [item async for item in items]
    assert [item.config for item in [first, *rest]] == configs[::-1]


async def a_listing_may_be_put_to_from_inside(world: World) -> None:
    run = Run(world.saver)
    for number in range(20):
        await run.step({"a": number})
    seen = []
    async for item in world.saver.alist(at("thread")):
        seen.append(item.checkpoint["channel_values"]["a"])
        await run.step({"a": -1})
        assert await world.saver.aget(at("thread")) is not None
    assert seen == list(range(19, -1, -1))


async def what_goes_while_a_listing_is_paused_is_left_out(world: World) -> None:
    run = Run(world.saver)
    for number in range(40):
        await run.step({"a": number})
    items = world.saver.alist(at("thread"))
    await anext(items)
    await world.another().adelete_thread("thread")
    rest = [item.checkpoint["channel_values"]["a"] async for item in items]
    assert rest == list(range(38, 38 - len(rest), -1))
    assert await listed(world.saver, at("thread")) == []


async def a_dropped_listing_leaves_the_saver_usable(world: World) -> None:
    run = Run(world.saver)
    for number in range(5):
        await run.step({"a": number})
    for _ in range(20):
        await anext(world.saver.alist(at("thread")))
    await run.step({"a": "after"})
    assert len(await listed(world.saver, at("thread"))) == 6
