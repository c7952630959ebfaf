"""`States`: any state comes back unchanged, and its history takes the space of the changes."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

import pytest

from threadmark.errors import ConfigError, SerializationError
from threadmark.interfaces import StateInfo, States
from threadmark.saver import Saver
from threadmark.serde import Serde
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, got, id_of, listed, values

_LONG = "a part of a state that is long enough for a segment of its own. " * 8
_MOMENT = timedelta(microseconds=1)
_SERDE = Serde()


class _Name(StrEnum):
    KEY = "key"


def _text(number: int) -> str:
    """Return a text that shares little with the texts of other numbers."""
    return " ".join(str((number + 1) * part * 7919 % 1_000_003) for part in range(1, 300))


async def _history(states: States, thread_id: str = "thread") -> list[StateInfo]:
    """The whole history, read in pages."""
    found: list[StateInfo] = []
    cursor = None
    while True:
        page = await states.ahistory(thread_id, limit=3, cursor=cursor)
        found += page.states
        cursor = page.cursor
        if cursor is None:
            return found


async def _without_values(world: World, states: Callable[[Saver], States]) -> States:
    """States over a saver that fails when it reads a value, a header or a write."""

    class Outlines:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            assert name not in {"find", "segments", "rows", "writes", "chain"}, f"{name} reads more than an outline"
            return getattr(self._store, name)

    saver: Any = world.another()
    context = saver._context  # noqa: SLF001 - a store that watches is put between a saver and its own
    saver._context = context._replace(store=Outlines(context.store))  # noqa: SLF001 - see above
    return states(saver)


async def a_state_comes_back_as_exactly_what_it_was(world: World) -> None:
    original: list[Any] = [
        {"messages": [{"role": "user", "content": _LONG}], "step": 1, "tuple": (1, (2,)), "none": None},
        {},
        {"b": 1, "a": 2},
        {"": 0, "\ud83d\0": 1},
        {1: "a number for a key", "a": 2},
        {"__root__": 1, "a": 2},
        {"__begin": 1},
        OrderedDict(b=1, a=2),
        {_Name.KEY: 1},
        {"key": {_Name.KEY: float("inf")}},
        [1, {"a": _LONG}],
        (1, 2),
        None,
        _LONG,
        b"bytes",
        datetime(2026, 1, 1, tzinfo=UTC),
        {"a", "b"},
    ]
    states, cold = world.interface(States), world.interface(States, world.cold)
    saved: list[str] = []
    for state in original:
        saved.append(await states.asave("thread", state))
        for reader in (states, cold):
            found = await reader.aload("thread")
            assert _SERDE.dumps_typed(found) == _SERDE.dumps_typed(state)
            assert type(found) is not dict or list(found) == list(state)
    for state_id, state in zip(saved, original, strict=True):
        assert _SERDE.dumps_typed(await cold.aload("thread", state_id)) == _SERDE.dumps_typed(state)
    assert [info.id for info in await _history(cold)] == saved[::-1]


async def what_is_not_there_is_the_default(world: World) -> None:
    states = world.interface(States)
    saved = await states.asave("thread", None)
    missing = object()
    assert await states.aload("thread", default=missing) is None
    for thread_id, state_id in (("nobody", None), ("thread", "no such id"), ("nobody", saved)):
        assert await states.aload(thread_id, state_id, default=missing) is missing
        assert await states.aload(thread_id, state_id) is None
        assert await states.aexists(thread_id, state_id) is False
        assert await states.adelete(thread_id, state_id) is False
    assert await states.aexists("thread") is await states.aexists("thread", saved) is True
    assert await states.ahistory("nobody") == ([], None)


async def what_is_loaded_is_a_copy(world: World) -> None:
    states = world.interface(States)
    original = {"items": [_LONG]}
    await states.asave("thread", original, {"tags": ["a"]})
    original["items"].append("changed by its owner")
    for _ in range(2):
        found = await states.aload("thread")
        info = (await states.alist()).states[0]
        assert (found, info.metadata) == ({"items": [_LONG]}, {"tags": ["a"]})
        found["items"].append("changed by a reader")
        info.metadata["tags"].append("b")


async def a_key_that_is_left_out_is_gone(world: World) -> None:
    states = world.interface(States)
    first = await states.asave("thread", {"a": _LONG, "b": 1})
    await states.asave("thread", {"b": 1})
    for reader in (states, world.interface(States, world.cold)):
        assert await reader.aload("thread") == {"b": 1}
        assert await reader.aload("thread", first) == {"a": _LONG, "b": 1}
    await states.asave("thread", {"a": _LONG})
    assert await states.aload("thread") == {"a": _LONG}


async def a_dictionary_has_a_channel_for_each_key(world: World) -> None:
    states = world.interface(States)
    await states.asave("thread", {"a": _LONG, "b": 1})
    await states.asave("thread", {"a": _LONG, "b": 2, "c": 3})
    newest = await got(world.saver, at("thread"))
    assert newest.checkpoint["channel_values"] == {"a": _LONG, "b": 2, "c": 3}
    assert newest.checkpoint["channel_versions"] == {"a": 1, "b": 2, "c": 2}
    await states.asave("thread", [1])
    assert await values(world.saver, at("thread")) == {"__root__": [1]}


async def an_equal_state_takes_nearly_no_bytes(world: World) -> None:
    state = {f"key {number}": _text(number) for number in range(50)}
    for states in (world.interface(States), world.interface(States, world.cold)):
        await states.asave("thread", state)
        before = await world.saver.aget_thread("thread")
        for _ in range(4):
            await states.asave("thread", dict(state))
        after = await world.saver.aget_thread("thread")
        assert before is not None
        assert after is not None
        assert before.size_bytes > 20_000
        assert after.size_bytes - before.size_bytes < 4 * 600
        await states.adelete("thread")


async def a_state_costs_what_changed_of_it(world: World) -> None:
    states = world.interface(States)
    state = {f"key {number}": _text(number) for number in range(50)}
    await states.asave("thread", state)
    before = await world.saver.aget_thread("thread")
    for number in range(10):
        await states.asave("thread", {**state, f"key {number}": f"changed {number}"})
    after = await world.saver.aget_thread("thread")
    assert before is not None
    assert after is not None
    assert after.size_bytes - before.size_bytes < 10 * 700


async def infos_tell_of_states_without_reading_them(world: World) -> None:
    states = world.interface(States)
    begun = datetime.now(UTC)
    for number in range(8):
        await states.asave("thread", {"n": number, "text": _LONG}, {"number": number})
    whole = await _history(await _without_values(world, partial(world.interface, States)))
    assert [info.metadata["number"] for info in whole] == list(range(8))[::-1]
    assert [info.size_bytes for info in whole] == [whole[0].size_bytes] * 8
    assert len(_LONG) < (whole[0].size_bytes or 0) < len(_LONG) + 20
    assert {info.created_at for info in whole} == {whole[-1].created_at}
    times = [whole[0].created_at, *(info.updated_at for info in reversed(whole)), datetime.now(UTC)]
    assert times == sorted(times)
    assert begun <= whole[-1].created_at
    reader = await _without_values(world, partial(world.interface, States))
    assert (await reader.alist()).states == [whole[0]]
    assert (await reader.aexists("thread"), await reader.aexists("thread", whole[5].id)) == (True, True)
    assert await reader.asize() == 1
    newest = await states.ahistory("thread", limit=1)
    assert (newest.states, newest.cursor is None) == (whole[:1], False)
    await states.asave("thread", 1)  # new entries do not shift the pages
    assert (await states.ahistory("thread", limit=2, cursor=newest.cursor)).states == whole[1:3]
    assert await states.ahistory("thread", limit=0) == ([], None)


async def a_listing_has_the_newest_state_of_each_thread(world: World) -> None:
    states = world.interface(States)
    names = [f"thread {number}" for number in range(7)]
    for turn in range(2):
        for name in names:
            await states.asave(name, {"turn": turn}, {"turn": turn})
    await states.asave("thread 3", {"turn": 2}, {"turn": 2})
    await Run(world.saver, "a graph's").step({"a": 1})
    await world.saver.acreate_thread("empty", metadata={"kind": "state"})  # it was created and nothing was saved
    expected = ["thread 3", *[name for name in reversed(names) if name != "thread 3"]]
    found: list[StateInfo] = []
    cursor = None
    for _ in range(6):
        page = await world.interface(States, world.another()).alist(limit=2, cursor=cursor)
        found += page.states
        cursor = page.cursor
        if cursor is None:
            break
    assert [info.thread_id for info in found] == expected
    assert [info.metadata["turn"] for info in found] == [2] + [1] * 6
    assert [info.thread_id for info in (await states.alist(sort="id")).states] == names
    for info in found:
        assert await states.aload(info.thread_id, info.id) == {"turn": info.metadata["turn"]}


async def one_state_of_a_history_can_be_deleted(world: World) -> None:
    states = world.interface(States)
    saved = [await states.asave("thread", {"n": number, "text": _text(number)}) for number in range(4)]
    assert await states.adelete("thread", saved[1]) is True
    assert await states.adelete("thread", saved[1]) is False
    assert [info.id for info in await _history(states)] == [saved[3], saved[2], saved[0]]
    for number in (0, 2, 3):
        assert await states.aload("thread", saved[number]) == {"n": number, "text": _text(number)}
    await states.adelete("thread", saved[3])
    assert await states.aload("thread") == {"n": 2, "text": _text(2)}
    assert await states.adelete("thread") is True
    assert await states.asize() == 0
    assert await world.saver.aget_thread("thread") is None


async def a_state_follows_the_newest_of_its_thread(world: World) -> None:
    for saver in (world.saver, world.with_rules(expect_newest=True), world.with_rules(keep_last=50)):
        savers = [world.interface(States, each) for each in (saver, world.another())]

        async def save(states: States, name: str) -> None:
            for number in range(6):
                await states.asave("thread", {"who": name, "n": number, "text": _LONG})

        await asyncio.gather(*(save(states, name) for states, name in zip(savers, "ab", strict=True)))
        items = await listed(world.cold, at("thread"))
        parents = [item.parent_config and id_of(item.parent_config) for item in items]
        assert parents == [*(item.checkpoint["id"] for item in items[1:]), None]
        found = [item.checkpoint["channel_values"] for item in reversed(items)]
        for name in "ab":
            assert [each["n"] for each in found if each["who"] == name] == list(range(6))
        assert (await savers[0].alist()).states[0].id == items[0].checkpoint["id"]
        await savers[1].adelete("thread")


async def odd_arguments_are_refused_and_leave_nothing(world: World) -> None:
    states = world.interface(States)
    odd: list[Callable[[], Any]] = [
        lambda: states.asave(None, 1),  # type: ignore[arg-type]  # that is the point
        lambda: states.asave("x" * 513, 1),
        lambda: states.asave("thread", 1, {"__size__": 3}),
        lambda: states.asave("thread", 1, [("a", 1)]),  # type: ignore[arg-type]  # that is the point
        lambda: states.asave("thread", 1, lease_token=-1),
        lambda: states.aload("thread", ""),
        lambda: states.aload("thread", 3),  # type: ignore[arg-type]  # that is the point
        lambda: states.adelete("thread", ""),
        lambda: states.aexists("thread", ""),
        lambda: states.alist(limit=-1),
        lambda: states.alist(cursor="no cursor"),
        lambda: states.alist(sort="size"),  # type: ignore[arg-type]  # that is the point
        lambda: states.ahistory("thread", limit=-1),
        lambda: states.ahistory("thread", cursor="no cursor"),
        lambda: states.acleanup_old(timedelta(0)),
        lambda: states.acleanup_old(None),  # type: ignore[arg-type]  # that is the point
    ]
    for call in odd:
        with pytest.raises(ConfigError):
            await call()
    with pytest.raises(SerializationError, match="metadata"):
        await states.asave("thread", 1, {"a": object()})
    with pytest.raises(SerializationError) as raised:
        await states.asave("thread", {"fine": _LONG, "items": [1, {"lock": open}]})
    assert raised.value.location.startswith("state['items'] -> [1]['lock']")
    assert (await world.saver.alist_threads()).threads == []
    for name in ("one", "two"):
        for number in range(2):
            await states.asave(name, number)
    page = await states.ahistory("one", limit=1)
    with pytest.raises(ConfigError, match="thread 'two'"):
        await states.ahistory("two", limit=1, cursor=page.cursor)


async def a_ping_is_answered(world: World) -> None:
    assert await world.interface(States).aping() is True
