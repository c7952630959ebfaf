"""Reading one checkpoint: its values come back, under exactly the name that was asked for."""

from typing import Any
from uuid import UUID

from threadmark.ids import new_id
from threadmark.types import CheckpointRef
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, id_of, listed, values


async def an_unknown_thread_has_no_checkpoint(world: World) -> None:
    assert await world.saver.aget_tuple(at("nobody")) is None
    assert await world.saver.aget(at("nobody", "", new_id())) is None


async def everything_of_a_checkpoint_comes_back(world: World) -> None:
    made = checkpoint(
        {"messages": ["a", {"b": (1, 2)}], "nothing": None, "count": 3},
        {"messages": 2, "nothing": 1, "count": 1, "cleared": 5},
        versions_seen={"__input__": {}, "agent": {"messages": 2, "branch:to:agent": 1}},
        updated_channels=["messages"],
        ts="2026-02-03T04:05:06.789+00:00",
    )
    config = await world.saver.aput(at("thread"), made, {"step": 0}, made["channel_versions"])
    found = await got(world.another(), config)
    assert found.checkpoint == made
    assert found.config == config
    assert found.metadata == {"step": 0}
    assert found.parent_config is None
    assert found.pending_writes == []


async def fields_that_a_later_engine_adds_come_back(world: World) -> None:
    seen = {"agent": {"a": 1}}
    made = checkpoint({"a": 1}, v=9, novel={"tuple": (1, {2}), "text": "\ud800"}, versions_seen=seen)
    config = await world.saver.aput(at("thread"), made, {}, {"a": 1})
    assert await world.another().aget(config) == made


async def a_checkpoint_without_channels_comes_back(world: World) -> None:
    made = checkpoint()
    config = await world.saver.aput(at("thread"), made, {}, {})
    assert await world.another().aget(config) == made


async def get_is_the_checkpoint_of_get_tuple(world: World) -> None:
    config = await Run(world.saver).step({"a": [1]})
    assert await world.saver.aget(config) == (await got(world.saver, config)).checkpoint


async def put_names_the_checkpoint_it_stored(world: World) -> None:
    made = checkpoint({"a": 1})
    config = await world.saver.aput(at("thread", "child:1"), made, {}, {"a": 1})
    assert config == at("thread", "child:1", made["id"])


async def without_an_id_the_newest_is_read(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        newest = await run.step({"a": number})
        assert (await got(world.saver, at("thread"))).config == newest
    assert (await got(world.another(), at("thread", ""))).config == newest
    assert (await got(world.saver, at("thread", "", ""))).config == newest


async def every_earlier_checkpoint_reads_as_it_was(world: World) -> None:
    run = Run(world.saver)
    configs = [await run.step({"a": list(range(number)), "b": "x" * 200}) for number in range(6)]
    for saver in (world.saver, world.another()):
        for number, config in enumerate(configs):
            assert await values(saver, config) == {"a": list(range(number)), "b": "x" * 200}


async def a_checkpoint_names_its_parent(world: World) -> None:
    run = Run(world.saver)
    first, second, third = [await run.step({"a": number}) for number in range(3)]
    assert (await got(world.saver, third)).parent_config == second
    assert (await got(world.saver, second)).parent_config == first
    assert (await got(world.saver, first)).parent_config is None


async def an_id_is_matched_whole(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    ours = id_of(config)
    for other in (new_id(), ours[:-1], ours + "0", ours.upper() + "x", "%", "_" * len(ours), early_id(0)):
        assert await world.saver.aget_tuple(at("thread", "", other)) is None


async def a_checkpoint_of_another_namespace_is_not_found(world: World) -> None:
    config = await Run(world.saver, ns="a").step({"x": 1})
    for ns in ("", "ab", "A", "a|b", "a:"):
        assert await world.saver.aget_tuple(at("thread", ns, id_of(config))) is None
        assert await world.saver.aget_tuple(at("thread", ns)) is None


async def each_namespace_has_a_newest_of_its_own(world: World) -> None:
    inner, outer = Run(world.saver, ns="child"), Run(world.saver)
    await inner.step({"a": "inner 1"})
    await outer.step({"a": "outer"})
    await inner.step({"a": "inner 2"})
    assert await values(world.saver, at("thread")) == {"a": "outer"}
    assert await values(world.saver, at("thread", "child")) == {"a": "inner 2"}


async def one_id_in_two_namespaces_is_two_checkpoints(world: World) -> None:
    shared = new_id()
    for ns in ("", "child"):
        await world.saver.aput(at("thread", ns), checkpoint({"a": ns}, checkpoint_id=shared), {"ns": ns}, {"a": 1})
    for ns in ("", "child"):
        found = await got(world.saver, at("thread", ns, shared))
        assert (found.checkpoint["channel_values"], found.metadata) == ({"a": ns}, {"ns": ns})


async def a_thread_id_may_be_a_number_or_a_uuid(world: World) -> None:
    for thread_id in (7, 0, -1, 1 << 70, UUID(int=9)):
        config = await Run(world.saver, thread_id).step({"a": str(thread_id)})
        assert config["configurable"]["thread_id"] == str(thread_id)
        assert await values(world.saver, at(str(thread_id))) == {"a": str(thread_id)}
        assert await values(world.another(), at(thread_id)) == {"a": str(thread_id)}
        assert len(await listed(world.saver, at(thread_id))) == 1


async def a_checkpoint_id_may_be_a_uuid(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    assert (await got(world.saver, at("thread", "", UUID(id_of(config))))).config == config


async def the_newest_is_the_greatest_id_not_the_last_stored(world: World) -> None:
    middle, newest, oldest = early_id(2), early_id(3), early_id(1)
    for number in (middle, newest, oldest):
        await world.saver.aput(at("thread"), checkpoint({"a": number}, checkpoint_id=number), {}, {"a": 1})
    assert await values(world.saver, at("thread")) == {"a": newest}
    assert [item.checkpoint["id"] for item in await listed(world.another(), at("thread"))] == [newest, middle, oldest]


async def a_child_is_newer_than_its_parent_though_the_clock_stepped_back(world: World) -> None:
    run = Run(world.saver)
    numbers = [500, 100, 300, 50, 60]
    for number in numbers:
        config = await run.step({"a": number}, checkpoint_id=early_id(number))
        for saver in (world.saver, world.another()):
            assert (await got(saver, at("thread"))).config == config
    expected = [early_id(number) for number in reversed(numbers)]
    assert [item.checkpoint["id"] for item in await listed(world.saver, at("thread"))] == expected


async def once_the_clock_has_caught_up_ids_count_again(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1}, checkpoint_id=early_id(500))
    await run.step({"a": 2}, checkpoint_id=early_id(100))
    caught_up = await run.step({"a": 3}, checkpoint_id=early_id(501))
    assert (await got(world.saver, at("thread"))).config == caught_up
    await world.saver.aput(at("thread"), checkpoint({"a": 4}, checkpoint_id=early_id(499)), {}, {"a": 1})
    assert (await got(world.another(), at("thread"))).config == caught_up


async def a_reference_names_what_a_get_finds(world: World) -> None:
    run, inner = Run(world.saver), Run(world.saver, ns="child")
    configs = [await run.step({"a": number}, checkpoint_id=early_id(number)) for number in (500, 100, 300)]
    configs += [await inner.step({"a": "inner"}), await Run(world.saver, "another").step({"a": "of another thread"})]
    newest = [at("thread"), at("thread", "child"), at("another"), at("another", "", "")]
    for saver in (world.saver, world.another(), world.cold):
        for config in (*configs, *newest):
            found = await got(saver, config)
            named = found.config["configurable"]
            parent = id_of(found.parent_config) if found.parent_config else None
            expected = CheckpointRef(named["thread_id"], named["checkpoint_ns"], named["checkpoint_id"], parent)
            assert await saver.aget_checkpoint_ref(config) == expected
        assert await saver.aget_checkpoint_ref("thread") == await saver.aget_checkpoint_ref(configs[2])


async def there_is_no_reference_to_what_is_not_there(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    await world.saver.aput_writes(at("thread", "written", early_id(1)), [("a", 1)], "task")
    elsewhere = (at("nobody"), at("thread", "child"), at("thread", "", early_id(0)), at("thread", "a", id_of(config)))
    for saver in (world.saver, world.another()):
        for where in (*elsewhere, at("thread", "written"), at("thread", "written", early_id(1))):
            assert await saver.aget_checkpoint_ref(where) is None
    await world.saver.adelete_thread("thread")
    assert await world.saver.aget_checkpoint_ref(config) is None
    assert await world.saver.aget_checkpoint_ref("thread") is None


async def a_reference_is_to_the_newest_that_another_saver_stored(world: World) -> None:
    other = Run(world.another())
    for number in range(3):
        stored = await other.step({"a": "x" * 1000 * number})
        found = await world.saver.aget_checkpoint_ref("thread")
        assert found is not None
        assert found.id == id_of(stored)
    await world.saver.adelete_checkpoint(stored)
    found = await other.saver.aget_checkpoint_ref("thread")
    assert found is not None
    assert found.id != id_of(stored)


async def values_of_every_everyday_kind_come_back(world: World) -> None:
    everyday: dict[str, Any] = {
        "none": None,
        "numbers": [0, -1, 1 << 80, 1.5, float("inf"), True, False],
        "text": ["", "ä\U0001f600", "\x00", "\ud800"],
        "bytes": b"\x00\xff",
        "tuple": (1, (2, [3])),
        "set": {1, "a"},
        "frozen": frozenset({(1, 2)}),
        "dict": {1: "a", "1": "b", (1, 2): "c", None: "d"},
        "empty": [[], {}, (), "", b"", set()],
    }
    config = await Run(world.saver).step(everyday)
    for saver in (world.saver, world.another()):
        found = await values(saver, config)
        assert found == everyday
        assert type(found["tuple"]) is tuple
        assert type(found["tuple"][1]) is tuple
        assert [type(number) for number in found["numbers"]] == [type(number) for number in everyday["numbers"]]


async def a_large_value_comes_back(world: World) -> None:
    large = {"text": "x" * 3_000_000, "list": list(range(50_000)), "bytes": bytes(range(256)) * 4000}
    config = await Run(world.saver).step(large)
    assert await values(world.another(), config) == large
