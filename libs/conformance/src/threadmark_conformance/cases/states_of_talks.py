"""The state of a conversation: stored, read, cleared, and cached without becoming outdated."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from threadmark import Conversations
from threadmark.errors import ConfigError, SerializationError
from threadmark_conformance.backend import World
from threadmark_conformance.cases.talking import TALK, said, talk_of
from threadmark_conformance.engine import Run, at, checkpoint, listed, values

_LARGE = {"text": "x" * 400, "list": [1, 2], "none": None}


class Kept:
    """A shared cache that keeps everything, with switches for the cases."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.spoil: Callable[[bytes], Any] = lambda data: data
        self.fails = False
        self.asked = 0

    def get(self, key: str) -> bytes | None:
        """Return the stored value."""
        self._expect_working()
        found = self.entries.get(key)
        return None if found is None else self.spoil(found)

    def set(self, key: str, data: bytes, ttl: float) -> None:
        """Store a value."""
        self._expect_working()
        assert ttl > 0
        self.entries[key] = data

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._expect_working()
        self.entries.pop(key, None)

    async def aget(self, key: str) -> bytes | None:
        """Like `get`."""
        return self.get(key)

    async def aset(self, key: str, data: bytes, ttl: float) -> None:
        """Like `set`."""
        self.set(key, data, ttl)

    async def adelete(self, key: str) -> None:
        """Like `delete`."""
        self.delete(key)

    def _expect_working(self) -> None:
        self.asked += 1
        if self.fails:
            raise ConnectionError("the cache is not there")


async def a_state_comes_back_as_it_was_stored(world: World) -> None:
    talk = talk_of(world)
    assert await talk.aget_state(TALK) is None
    for state in (_LARGE, {"a": 1}, {}, [1, (2,)], "text", {"__x": 1}, {1: 2}, None, 7):
        await talk.aput_state(TALK, state)
        for each in (talk, world.interface(Conversations, world.cold)):
            found = await each.aget_state(TALK)
            assert found == state
            assert type(found) is type(state)
    with pytest.raises(SerializationError, match=r"state\['a'\]"):
        await talk.aput_state(TALK, {"a": object()})
    assert await talk.aget_state(TALK) == 7
    with pytest.raises(ConfigError):
        await talk.aput_state({}, {"a": 1})


async def a_state_has_a_history_and_its_keys_are_channels(world: World) -> None:
    talk = talk_of(world)
    await talk.aput_state({**TALK, "run_id": "r"}, {"a": 1, "b": 2})
    await talk.aput_state(TALK, {"a": 2})
    found = await listed(world.cold, at("talk", ""))
    assert [item.checkpoint["channel_values"] for item in found] == [{"a": 2}, {"a": 1, "b": 2}]
    assert found[1].metadata["run_id"] == "r"
    assert found[0].parent_config == found[1].config


async def a_state_that_is_cleared_leaves_the_messages(world: World) -> None:
    talk = talk_of(world)
    run = Run(world.saver, "talk")
    await run.step({"a": "x" * 300})
    await run.write(("a", "y" * 300), ("__interrupt__", "why"))
    await run.step({"a": "z" * 300})
    await Run(world.saver, "talk", "child:1").step({"b": 1})
    await world.saver.aput_writes(at("talk", "", "ffffffff-none"), [("a", "early")], "task")
    await talk.aput_messages(TALK, [said(1), {"id": "long", "content": "w" * 300}])
    await world.saver.aupdate_thread("talk", title="kept")
    before = await talk.aget_messages(TALK)
    assert await talk.aclear_state(TALK) is True
    assert await talk.aget_state(TALK) is None
    assert await talk.aget_state_cache(TALK) is None
    assert await talk.aget_messages(TALK) == before
    about = await talk.aget_thread(TALK)
    assert about is not None
    assert (about.title, about.checkpoints, about.namespaces, about.newest) == ("kept", 2, 1, None)
    assert (await world.cold.astats("talk")).writes == 0
    verified = await world.cold.averify("talk", decode=True)
    assert (verified.problems, verified.writes) == ([], 0)
    assert await talk.aclear_state(TALK) is False
    await talk.aput_state(TALK, {"a": 1})
    assert await talk.aget_state(TALK) == {"a": 1}
    await talk.adelete_message(TALK, "m1")
    await talk.adelete_message(TALK, "long")
    assert await talk.aclear_state(TALK) is True
    assert await talk.aget_thread(TALK) is not None
    assert await talk.aclear_state({"thread_id": "nowhere"}) is False


async def a_state_is_remembered_only_if_it_is_the_newest(world: World) -> None:
    talk = world.interface(Conversations)
    fresh = world.interface(Conversations, world.cold)
    assert await fresh.aput_state_cache(TALK, _LARGE) is False
    await talk.aput_state(TALK, _LARGE)
    assert await talk.aget_state_cache(TALK) == _LARGE
    assert await fresh.aget_state_cache(TALK) is None
    for other in ({**_LARGE, "none": 0}, {**_LARGE, "text": "y" * 400}, {"text": "x" * 400}, {}, _LARGE["text"]):
        assert await fresh.aput_state_cache(TALK, other) is False
        assert await fresh.aget_state_cache(TALK) is None
    assert await fresh.aput_state_cache(TALK, dict(_LARGE)) is True
    found = await fresh.aget_state_cache(TALK)
    assert found == _LARGE
    found["list"].append("spoiled")
    assert await fresh.aget_state_cache(TALK) == _LARGE
    assert await fresh.aget_state(TALK) == _LARGE


async def a_remembered_state_is_never_outdated(world: World) -> None:
    shared = Kept()
    talks = [
        world.interface(Conversations),
        world.interface(Conversations, cache=shared),
        world.interface(Conversations, world.cold, cache=shared),
    ]
    other = world.another()
    elsewhere = world.interface(Conversations, other)

    async def agreed(expected: Any) -> None:
        for talk in talks:
            for _ in range(2):
                assert await talk.aget_state_cache(TALK) in (expected, None)
                assert await talk.aget_state(TALK) == expected
            assert await talk.aget_state_cache(TALK) == expected

    await talks[0].aput_state(TALK, _LARGE)
    await agreed(_LARGE)
    await elsewhere.aput_state(TALK, {**_LARGE, "list": [3]})
    await agreed({**_LARGE, "list": [3]})
    await elsewhere.aput_state(TALK, _LARGE)  # the first one again
    await agreed(_LARGE)
    await other.aprune(["talk"])
    await agreed(_LARGE)
    newest = await other.aget_tuple(at("talk"))
    assert newest is not None
    replaced = checkpoint({"text": "r" * 300}, checkpoint_id=newest.checkpoint["id"])
    await other.aput(newest.config, replaced, {}, {"text": 1})
    await agreed({"text": "r" * 300})
    await other.adelete_thread("talk")
    await agreed(None)
    await Run(other, "talk").step({"text": "anew " * 80})
    await agreed({"text": "anew " * 80})
    assert await elsewhere.aclear_state(TALK) is True
    await agreed(None)


async def what_a_shared_cache_gives_back_is_verified(world: World) -> None:
    shared = Kept()
    await world.interface(Conversations, cache=shared).aput_state(TALK, _LARGE)
    assert len(shared.entries) == 1
    (entry,) = shared.entries.values()
    for spoil in (
        lambda data: data[:-1],
        lambda data: data[:-3] + b"zzz",
        lambda _: b"",
        lambda _: b"\x80",
        lambda data: data + b"\x00",
        lambda _: "text",
        lambda _: None,
        lambda _: b"\x81\xa1a\xa1b",
    ):
        shared.spoil = spoil
        fresh = world.interface(Conversations, world.cold, cache=shared)
        assert await fresh.aget_state_cache(TALK) is None
        assert await fresh.aget_state(TALK) == _LARGE
    shared.spoil = lambda data: data
    shared.entries = dict.fromkeys(shared.entries, entry)
    assert await world.interface(Conversations, world.cold, cache=shared).aget_state_cache(TALK) == _LARGE


async def a_shared_cache_that_fails_costs_no_more_than_speed(world: World) -> None:
    shared = Kept()
    shared.fails = True
    talk = world.interface(Conversations, cache=shared)
    await talk.aput_state(TALK, _LARGE)
    assert await talk.aget_state(TALK) == _LARGE
    assert await world.interface(Conversations, world.cold, cache=shared).aget_state(TALK) == _LARGE
    asked = shared.asked
    assert await talk.aclear_state(TALK) is True
    assert await talk.aget_state(TALK) is None
    assert shared.asked == asked  # it is left out for a while


async def what_is_remembered_of_states_is_bounded(world: World) -> None:
    few = world.interface(Conversations, cache_entries=2)
    small = world.interface(Conversations, cache_bytes=1500)
    short = world.interface(Conversations, cache_ttl=timedelta(microseconds=1))
    names = [{"thread_id": f"t{number}"} for number in range(4)]
    for name in names:
        await few.aput_state(name, _LARGE)
        assert await small.aget_state(name) == await short.aget_state(name) == _LARGE
        assert await short.aget_state_cache(name) is None
    for talk in (few, small):
        found = [await talk.aget_state_cache(name) for name in names]
        assert found.count(_LARGE) < 3
        assert found[-1] == _LARGE
    await few.aput_state(names[0], {"text": "x" * 5000})
    assert await small.aget_state(names[0]) == {"text": "x" * 5000}
    assert await small.aget_state_cache(names[0]) is None
    for wrong in ({"cache_bytes": -1}, {"cache_entries": "x"}, {"cache_ttl": -3}, {"cache": object()}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Conversations(world.saver, **wrong)


async def a_state_is_that_of_the_graph_that_runs_on_the_thread(world: World) -> None:
    talk = talk_of(world)
    run = Run(world.saver, "talk")
    await run.step({"messages": ["a"], "mood": "fine"})
    assert await talk.aget_state(TALK) == {"messages": ["a"], "mood": "fine"}
    await talk.aput_state(TALK, {"messages": ["a", "b"], "mood": "fine"})
    assert await values(world.cold, at("talk")) == {"messages": ["a", "b"], "mood": "fine"}
