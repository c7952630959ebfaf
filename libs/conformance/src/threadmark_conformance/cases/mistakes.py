"""Invalid arguments are refused with a clear error, and nothing is stored."""

import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from threadmark.errors import ClosedError, ConfigError, SerializationError
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, got, listed, pending


async def a_config_must_name_a_thread(world: World) -> None:
    bad: Sequence[Any] = (
        {},
        {"configurable": {}},
        {"configurable": None},
        {"configurable": {"thread_id": None}},
        {"configurable": {"thread_id": 1.5}},
        {"configurable": {"thread_id": True}},
        {"configurable": {"thread_id": ["t"]}},
        {"thread_id": "t"},
        None,
    )
    for config in bad:
        await _refused(
            lambda: world.saver.aget_tuple(config),  # noqa: B023 - called before the loop goes on
            lambda: world.saver.aput(config, checkpoint({"a": 1}), {}, {"a": 1}),  # noqa: B023 - the same
            lambda: world.saver.aput_writes(config, [("a", 1)], "task"),  # noqa: B023 - the same
            lambda: world.saver.aget_delta_channel_history(config=config, channels=["a"]),  # noqa: B023 - the same
        )
        if config is not None:
            await _refused(lambda: listed(world.saver, config))  # noqa: B023 - the same
    await _refused(
        lambda: world.saver.aput("thread", checkpoint({"a": 1}), {}, {"a": 1}),  # type: ignore[arg-type]  # the point
        lambda: world.saver.aput_writes("thread", [("a", 1)], "task"),  # type: ignore[arg-type]  # the same
    )
    assert await listed(world.saver, None) == []


async def names_must_be_text(world: World) -> None:
    for ns in (1, b"a", ["a"]):
        await _refused(
            lambda: world.saver.aget_tuple(at("thread", ns)),  # type: ignore[arg-type] # noqa: B023 - the mistake
            lambda: world.saver.aput(at("thread", ns), checkpoint(), {}, {}),  # type: ignore[arg-type] # noqa: B023 - the same
        )
    for checkpoint_id in (1, b"a", 1.5):
        await _refused(lambda: world.saver.aget_tuple(at("thread", "", checkpoint_id)))  # noqa: B023 - the same
    assert await listed(world.saver, None) == []


async def a_checkpoint_must_have_an_id(world: World) -> None:
    made: Any = checkpoint({"a": 1})
    bad: Any
    for bad in ({**made, "id": None}, {**made, "id": 7}, {key: made[key] for key in made if key != "id"}):
        await _refused(lambda: world.saver.aput(at("thread"), bad, {}, {"a": 1}))  # noqa: B023 - called at once
    assert await listed(world.saver, None) == []


async def versions_must_be_numbers_or_text(world: World) -> None:
    for version in (None, True, b"1", [1], 1 << 64, -(1 << 63) - 1, 1 << 80, (1,), math.nan, Ellipsis, object()):
        made = checkpoint({"a": "x" * 1000}, {"a": version})  # type: ignore[dict-item]  # the mistake
        await _refused(lambda: world.saver.aput(at("thread"), made, {}, {"a": version}))  # type: ignore[dict-item] # noqa: B023 - the same
    assert await listed(world.saver, None) == []
    assert (await world.saver.aprune(["thread"], strategy="delete", dry_run=True)).segments == 0


async def a_version_that_cannot_be_continued_is_refused(world: World) -> None:
    bad: Sequence[Any] = ("", "abc", "1a.5", "-1", ".", "9" * 5000, True, math.nan, math.inf, [1], b"1", object())
    for version in bad:
        with pytest.raises(ConfigError, match="version"):
            world.saver.get_next_version(version)


async def writes_need_the_checkpoint_they_belong_to(world: World) -> None:
    await Run(world.saver).step()
    await _refused(lambda: world.saver.aput_writes(at("thread"), [("a", 1)], "task"))
    assert await pending(world.saver, at("thread")) == []


async def a_limit_cannot_be_negative_or_no_number(world: World) -> None:
    bad: Sequence[Any] = (-1, -100, -(10**5000), 1.5, "1", True)
    for limit in bad:
        await _refused(lambda: listed(world.saver, None, limit=limit))  # noqa: B023 - called at once


async def a_filter_has_text_keys_and_json_values(world: World) -> None:
    bad: Sequence[Any] = (
        {1: "a"},
        {None: 1},
        {10**5000: 1},
        {"a": object()},
        {"a": b"x"},
        {"a": {"b": {1: 2}}},
        [("a", 1)],
        [],
        "",
        False,
    )
    for wanted in bad:
        await _refused(lambda: listed(world.saver, None, filter=wanted))  # noqa: B023 - called at once


async def prune_refuses_rules_it_does_not_know(world: World) -> None:
    run = Run(world.saver)
    for number in range(3):
        await run.step({"a": number})
    bad: Sequence[dict[str, Any]] = (
        {"strategy": "all"},
        {"strategy": ""},
        {"strategy": None},
        {"strategy": -(10**5000)},
        {"keep_last": -(10**5000)},
        {"dry_run": "no"},
        {"dry_run": 0},
        {"dry_run": None},
        {"keep_last": 0},
        {"keep_last": -1},
        {"keep_last": True},
        {"keep_last": "1"},
        {"older_than": "5"},
        {"strategy": "delete", "keep_last": 1},
        {"strategy": "delete", "older_than": timedelta(1)},
    )
    for options in bad:
        await _refused(lambda: world.saver.aprune(["thread"], **options))  # noqa: B023 - called at once
    assert len(await listed(world.saver, None)) == 3


async def a_list_of_names_is_no_text(world: World) -> None:
    await Run(world.saver, "t").step(metadata={"run_id": "t"})
    await Run(world.saver, "116").step(metadata={"run_id": "None"})
    bad: Sequence[Any] = ("t", b"t", bytearray(b"t"), {"t": 1}, 116, None, [None], [b"t"], [1.5])
    for names in bad:
        await _refused(
            lambda: world.saver.aprune(names, strategy="delete"),  # noqa: B023 - called at once
            lambda: world.saver.adelete_for_runs(names),  # noqa: B023 - the same
        )
    assert len(await listed(world.saver, None)) == 2


async def threads_must_be_named_to_be_removed_or_copied(world: World) -> None:
    bad: Sequence[Any] = (None, 1.5, b"t", True)
    for name in bad:
        await _refused(
            lambda: world.saver.adelete_thread(name),  # noqa: B023 - called at once
            lambda: world.saver.acopy_thread(name, "t"),  # noqa: B023 - the same
            lambda: world.saver.acopy_thread("t", name),  # noqa: B023 - the same
            lambda: world.saver.aprune([name]),  # noqa: B023 - the same
        )


async def a_value_that_cannot_be_stored_is_named_by_the_way_to_it(world: World) -> None:
    made = checkpoint({"good": "x" * 1000, "state": {"items": [1, threading.Lock()]}})
    with pytest.raises(SerializationError, match=r'channel "state" -> .*items.*1.*lock'):
        await world.saver.aput(at("thread"), made, {}, made["channel_versions"])
    assert await listed(world.saver, None) == []
    assert (await world.saver.aprune(["thread"], strategy="delete", dry_run=True)).segments == 0


async def a_batch_with_a_write_that_cannot_be_stored_leaves_nothing(world: World) -> None:
    run = Run(world.saver)
    await run.step()
    held = await world.saver.aprune(["thread"], strategy="delete", dry_run=True)
    with pytest.raises(SerializationError, match='channel "b"'):
        await run.write(("a", "x" * 1000), ("b", threading.Lock()), ("c", 3))
    assert await pending(world.another(), run.config) == []
    assert await world.saver.aprune(["thread"], strategy="delete", dry_run=True) == held
    await run.write(("a", "the retry"), ("b", 2))
    assert await pending(world.saver, run.config) == [("task", "a", "the retry"), ("task", "b", 2)]


async def a_field_that_cannot_be_stored_leaves_nothing(world: World) -> None:
    made = checkpoint({"a": 1}, versions_seen={"n": {"a": threading.Lock()}})
    with pytest.raises(SerializationError):
        await world.saver.aput(at("thread"), made, {}, {"a": 1})
    assert await listed(world.saver, None) == []


async def a_failed_put_leaves_the_saver_usable(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    for _ in range(3):
        made = checkpoint({"a": threading.Lock()}, {"a": 2})
        with pytest.raises(SerializationError):
            await world.saver.aput(run.config, made, {}, {"a": 2})
    await run.step({"a": 3})
    assert (await got(world.another(), run.config)).checkpoint["channel_values"] == {"a": 3}


async def a_closed_saver_says_so(world: World) -> None:
    saver, config = world.saver, at("thread")
    await Run(saver).step({"a": 1})
    paused = saver.alist(None)
    await saver.aclose()
    await saver.aclose()
    calls: Sequence[Callable[[], Awaitable[Any]]] = (
        lambda: saver.aget(config),
        lambda: saver.aget_tuple(config),
        lambda: saver.aget_checkpoint_ref(config),
        lambda: saver.aput(config, checkpoint({"a": 1}), {}, {"a": 1}),
        lambda: saver.aput_writes(at("thread", "", "x"), [("a", 1)], "task"),
        lambda: listed(saver, None),
        lambda: anext(paused),
        lambda: saver.adelete_thread("thread"),
        lambda: saver.adelete_for_runs(["r"]),
        lambda: saver.acopy_thread("a", "b"),
        lambda: saver.aprune(["thread"]),
        lambda: saver.aget_delta_channel_history(config=config, channels=["a"]),
        saver.asetup,
        saver.ahas_tables,
        saver.aupgrade,
        saver.alist_checkpoint_refs,
        saver.alist_orphan_writes,
    )
    for call in calls:
        with pytest.raises(ClosedError, match="closed"):
            await call()


async def a_saver_is_closed_by_its_context(world: World) -> None:
    one, other = world.another(), world.another()
    with one:
        pass
    async with other:
        pass
    for saver in (one, other):
        with pytest.raises(ClosedError):
            await saver.aget(at("thread"))


async def a_saver_has_no_settings_of_its_own_in_a_config(world: World) -> None:
    assert world.saver.config_specs == []


async def _refused(*calls: Callable[[], Awaitable[Any]]) -> None:
    for call in calls:
        with pytest.raises(ConfigError) as caught:
            await call()
        assert isinstance(caught.value, ValueError)
        assert str(caught.value)
