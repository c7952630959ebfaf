"""Odd arguments: a call is refused with a Threadmark error and stores nothing, or the values read back."""

import os
import uuid
import zlib
from collections import OrderedDict, UserDict, deque
from collections.abc import Awaitable, Callable, Sequence
from types import MappingProxyType
from typing import Any, cast

import pytest

from threadmark.errors import ConfigError, SerializationError
from threadmark.metadata import DEEPEST
from threadmark.model import Checkpoint
from threadmark.names import ID_BYTES, NAMESPACE_BYTES, THREAD_ID_BYTES
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, early_id, got, listed, pending
from threadmark_conformance.odd_calls import all_odd_calls, odd_calls
from threadmark_conformance.odd_outcomes import check_odd_calls
from threadmark_conformance.odd_values import Old, Text, Word, long_text

_CALLS = os.environ.get("THREADMARK_ODD_CALLS", "120")
"""How many odd calls; "all" makes all 16,000, which takes minutes."""

_NO_NAMES: Sequence[Any] = (None, True, 1, 1.5, b"a", ("a",), uuid.UUID(int=1), Ellipsis)


async def odd_calls_are_refused_whole_or_read_back_and_answered_as_in_memory(world: World) -> None:
    kind = type(world.saver).__name__  # so that other calls are made elsewhere
    calls = all_odd_calls() if _CALLS == "all" else odd_calls(int(_CALLS), seed=zlib.crc32(kind.encode()))
    counts = await check_odd_calls(world.saver, world.another(), world.in_memory(), calls)
    assert min(counts["put", "refused"], counts["put", "done"]) >= len(calls) // 80
    assert sum(counts.values()) > len(calls) // 2


async def names_must_be_text(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    before = await listed(world.saver, None)
    for name in _NO_NAMES:
        for field in ("channel_values", "channel_versions"):
            made = cast("Checkpoint", {**checkpoint({"a": 1}), field: {name: 1}})
            await _refused(world.saver.aput, config, made, {}, {"a": 1})
        await _refused(world.saver.aput, config, checkpoint({"a": 1}), {}, {name: 1})
        await _refused(world.saver.aput_writes, config, [("a", 1), (name, 2)], "task")
        await _refused(world.saver.aput_writes, config, [("a", 1)], name)
        await _refused(world.saver.aput_writes, config, [("a", 1)], "task", name)
        await _refused(world.saver.aget_delta_channel_history, config=config, channels=[name])
    await _refused(world.saver.aget_delta_channel_history, config=config, channels="a")
    assert await listed(world.another(), None) == before


async def names_may_be_of_a_class_of_their_own_and_are_plain_text_then(world: World) -> None:
    for name in (Word.A, Old.A, Text("a")):
        thread = f"thread {type(name).__name__}"
        made = checkpoint({name: [1]}, {name: 1}, checkpoint_id=Text(early_id(1)), versions_seen={"node": {name: 1}})
        config = await world.saver.aput(at(Text(thread), name), made, {}, {name: 1})
        await world.saver.aput_writes(config, [(name, 2)], name, name)
        found = await got(world.another(), at(thread, "a"))
        assert found.config == config == at(thread, "a", early_id(1))
        assert found.checkpoint["channel_values"] == {"a": [1]}
        assert found.checkpoint["channel_versions"] == {"a": 1}
        assert found.pending_writes == [("a", "a", 2)]
        texts = [
            *found.checkpoint["channel_values"],
            *found.checkpoint["channel_versions"],
            *found.pending_writes[0][:2],
        ]
        assert {type(text) for text in texts} == {str}
        history = await world.saver.aget_delta_channel_history(config=config, channels=[name])
        assert [type(channel) for channel in history] == [str]


async def a_thread_is_named_by_the_text_of_what_names_it(world: World) -> None:
    number = uuid.UUID(int=7)
    for original, text in ((7, "7"), (-1, "-1"), (number, str(number)), (Old.A, "a"), (Text("x"), "x")):
        placed = await world.saver.aput(at(original), checkpoint(), {}, {})
        assert placed["configurable"]["thread_id"] == text
        assert (await got(world.saver, at(text))).config == placed
    await _refused(world.saver.aput, at(10**5000), checkpoint(), {}, {})


async def the_empty_thread_id_is_one_like_any_other(world: World) -> None:
    config = await Run(world.saver, "").step({"a": "x" * 1000})
    await world.saver.aput_writes(at("", "", early_id(1)), [("a", 1)], "task")
    await Run(world.saver, "another").step()
    verified, stats = await world.saver.averify(), await world.saver.astats()
    assert (verified.threads, verified.checkpoints, verified.writes) == (2, 2, 1)
    assert (stats.threads, stats.checkpoints, stats.writes) == (2, 2, 1)
    assert [ref.thread_id for ref in await world.saver.alist_orphan_writes()] == [""]
    await world.saver.adelete_thread("")
    assert await world.saver.aget_tuple(config) is None
    assert (await world.saver.averify()).threads == 1
    assert await world.saver.alist_orphan_writes() == []


async def a_checkpoint_must_be_a_dictionary_of_dictionaries(world: World) -> None:
    bad: Sequence[Any] = ([], "", 0, False, [("a", 1)], {"a"}, object(), b"")
    for odd in bad:
        await _refused(world.saver.aput, at("thread"), odd, {}, {})
        await _refused(world.saver.aput, at("thread"), checkpoint(), odd, {})
        await _refused(world.saver.aput, at("thread"), checkpoint(), {}, odd)
        for field in ("channel_values", "channel_versions"):
            await _refused(world.saver.aput, at("thread"), {**checkpoint(), field: odd}, {}, {})
    await _refused(world.saver.aput, at("thread"), None, {}, {})
    await _refused(world.saver.aput, at("thread"), checkpoint(), None, {})
    await _refused(world.saver.aput, at("thread"), checkpoint(), {}, None)
    assert await listed(world.another(), None) == []


async def any_mapping_is_as_good_as_a_dictionary(world: World) -> None:
    for kind in (dict, OrderedDict, MappingProxyType, UserDict):
        config = kind({"configurable": kind({"thread_id": kind.__name__}), "metadata": kind({"user": "u"})})
        values, versions = kind({"a": 1}), kind({"a": 2})
        made = checkpoint()
        original: Any = kind({**made, "channel_values": values, "channel_versions": versions})
        placed = await world.saver.aput(config, original, kind({"step": 1}), versions)
        found = await got(world.another(), placed)
        assert found.checkpoint == {**made, "channel_values": {"a": 1}, "channel_versions": {"a": 2}}
        assert found.metadata == {"step": 1, "user": "u"}
        assert [item.config for item in await listed(world.saver, config, filter=kind({"step": 1}))] == [placed]


async def channels_that_are_none_are_no_channels(world: World) -> None:
    made: Any = {"id": early_id(1), "channel_values": None, "channel_versions": None}
    placed = await world.saver.aput(at("thread"), made, {}, {})
    assert (await got(world.another(), placed)).checkpoint == {**made, "channel_values": {}, "channel_versions": {}}


async def the_format_of_a_checkpoint_is_a_number(world: World) -> None:
    for odd in ("x", "4", None, 4.0, True, [4]):
        await _refused(world.saver.aput, at("thread"), checkpoint(v=odd), {}, {})
    assert await listed(world.another(), None) == []


async def an_empty_id_names_no_checkpoint(world: World) -> None:
    await _refused(world.saver.aput, at("thread"), {**checkpoint(), "id": ""}, {}, {})
    placed = await Run(world.saver).step()
    assert (await got(world.saver, at("thread", "", ""))).config == placed


async def fields_come_back_in_their_types(world: World) -> None:
    for odd in (bytearray(b"ab"), [bytearray(b"x" * 300)], {"a": (1, b"x")}, {Word.A: {1: 2}}, b"\xc4\x01a"):
        for field in ("ts", "versions_seen", "updated_channels", "other", Text("other"), 7):
            made: Any = {**checkpoint(), field: odd}
            found = await got(world.another(), await world.saver.aput(at("thread"), made, {}, {}))
            assert found.checkpoint == made
            assert repr(found.checkpoint[field]) == repr(odd)  # type: ignore[literal-required]  # that is the point


async def names_have_a_length_that_every_database_takes(world: World) -> None:
    thread, ns, one = long_text(THREAD_ID_BYTES), long_text(NAMESPACE_BYTES), long_text(ID_BYTES)
    first = await world.saver.aput(at(thread, ns), checkpoint(checkpoint_id="~" + one[1:]), {}, {})
    # A clock that was set back makes the longest ranks.
    placed = await world.saver.aput(first, checkpoint({"a": 1}, checkpoint_id=one), {}, {"a": 1})
    await world.saver.aput_writes(placed, [("a", 1)], one, one * 20)
    await world.saver.acopy_thread(thread, thread[::-1])
    for name in (thread, thread[::-1]):
        found = await got(world.another(), at(name, ns))
        assert found.config == at(name, ns, one)
        assert found.parent_config == at(name, ns, "~" + one[1:])
        assert found.pending_writes == [(one, "a", 1)]
    await world.saver.adelete_thread(thread)
    await world.saver.adelete_thread(thread[::-1])


async def a_name_that_is_too_long_is_refused_on_every_backend(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    for letter in ("a", "\u00e9", "\x00", "\ud800", "\U0001f600"):
        thread, ns, one = letter * (THREAD_ID_BYTES + 1), letter * (NAMESPACE_BYTES + 1), letter * (ID_BYTES + 1)
        for where in (at(thread), at("thread", ns), at("thread", "", one)):
            await _refused(world.saver.aput, where, checkpoint(), {}, {}, match="bytes")
            step = {"configurable": {"checkpoint_id": "x", **where["configurable"]}}
            await _refused(world.saver.aput_writes, step, [("a", 1)], "task", match="bytes")
            assert await world.saver.aget_tuple(where) is None
        await _refused(world.saver.aput, config, checkpoint(checkpoint_id=one), {}, {}, match="bytes")
        await _refused(world.saver.aput_writes, config, [("a", 1)], one, match="bytes")
        await _refused(world.saver.acopy_thread, "thread", thread, match="bytes")
        await world.saver.adelete_thread(thread)
        made = checkpoint({one: 1}, checkpoint_id=early_id(1))
        await world.saver.aput_writes(await world.saver.aput(at("thread"), made, {}, {one: 1}), [(one, 1)], "task", one)
    assert len(await listed(world.another(), None)) == 2


async def what_is_no_list_of_pairs_is_no_batch_of_writes(world: World) -> None:
    config = await Run(world.saver).step()
    bad: Sequence[Any] = (
        None,
        5,
        "ab",
        b"ab",
        ["ab"],
        [b"ab"],
        {"ab": 1},
        {("a", 1): 1},
        [("a",)],
        [("a", 1, 2)],
        [("a", 1), None],
        [{"a": 1, "b": 2}],
        [{"a", "b"}],
    )
    for writes in bad:
        await _refused(world.saver.aput_writes, config, writes, "task")
    assert await pending(world.another(), config) == []


async def writes_may_come_in_anything_that_can_be_gone_through(world: World) -> None:
    config = await Run(world.saver).step()
    kinds: Sequence[Callable[[Any], Any]] = (list, tuple, deque, iter)
    for number, make in enumerate(kinds):
        writes = make([("a", number), ["b", number]])
        await world.saver.aput_writes(config, writes, f"task {number}")
    expected = [(f"task {number}", channel, number) for number in range(4) for channel in "ab"]
    assert await pending(world.another(), config) == expected


async def an_empty_batch_of_writes_stores_nothing(world: World) -> None:
    await world.saver.aput_writes(at("thread", "", early_id(1)), [], "task")
    assert (await world.saver.averify()).threads == 0
    assert await world.saver.alist_orphan_writes() == []


async def metadata_is_read_back_however_deep_the_caller_stands(world: World) -> None:
    deepest: Any = 1
    for _ in range(DEEPEST - 1):
        deepest = [deepest]
    placed = await world.saver.aput(at("thread"), checkpoint(), {"a": deepest}, {})
    assert (await got(world.another(), placed)).metadata == {"a": deepest}
    assert len(await listed(world.saver, None, filter={"a": deepest})) == 1
    cycle: dict[str, Any] = {}
    cycle["a"] = [cycle]
    for odd in ([deepest], cycle, {"a": 10**5000}):
        with pytest.raises(SerializationError, match="metadata"):
            await world.saver.aput(at("thread"), checkpoint(), {"a": odd}, {})
    for odd in ([deepest], cycle):
        await _refused(listed, world.saver, None, filter={"a": odd})
    assert len(await listed(world.saver, None)) == 1


async def metadata_of_a_config_has_text_for_keys(world: World) -> None:
    bad: Sequence[dict[Any, Any]] = ({1: 1}, {None: 1}, {("a",): 1})
    for odd in bad:
        await _refused(world.saver.aput, {**at("thread"), "metadata": odd}, checkpoint(), {}, {})
        await _refused(world.saver.aput, {"configurable": {"thread_id": "thread", **odd}}, checkpoint(), {}, {})
    for none in ("a", [("a", 1)], 1):
        await _refused(world.saver.aput, {**at("thread"), "metadata": none}, checkpoint(), {}, {})
    assert await listed(world.another(), None) == []


async def versions_grow_where_floats_are_far_apart(world: World) -> None:
    for version in (0.5, -0.5, 1e15, 2.0**53, 1e300, 1.7e308):
        following = world.saver.get_next_version(version)
        assert isinstance(following, float)
        assert following > version


async def a_serializer_has_two_methods(world: World) -> None:
    for odd in (None, 5, "json", object()):
        with pytest.raises(ConfigError, match="dumps_typed"):
            world.saver.with_serde(odd)  # type: ignore[arg-type]  # the mistake


async def _refused(
    method: Callable[..., Awaitable[Any]], *arguments: Any, match: str | None = None, **named: Any
) -> None:
    with pytest.raises(ConfigError, match=match) as caught:
        await method(*arguments, **named)
    assert str(caught.value)
