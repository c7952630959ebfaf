"""`CleanedStates`: it limits the stored history, for its own threads only."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from threadmark.errors import ConfigError
from threadmark.interfaces import CleanedStates, States
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, listed

_LONG = "a part of a state that is long enough for a segment of its own. " * 8
_SOON = timedelta(milliseconds=1)
_PATIENCE = 60
"""Seconds that nothing here takes."""


async def _count(states: States, thread_id: str = "thread") -> int:
    return len((await states.ahistory(thread_id, limit=1000)).states)


async def there_are_never_more_than_max_history(world: World) -> None:
    for most in (1, 2, 10):
        name = f"at most {most}"
        savers = [world.saver, world.another(), world.cold]
        cleaned = [world.interface(CleanedStates, saver, max_history=most) for saver in savers]
        for number in range(14):
            await cleaned[number % 3].asave(name, {"n": number, "text": f"{number}{_LONG}"})
            assert await _count(cleaned[0], name) == min(most, number + 1)
            assert await cleaned[0].aload(name) == {"n": number, "text": f"{number}{_LONG}"}
    assert (await world.saver.averify()).problems == []
    assert (await world.saver.aprune(None, keep_last=10)).segments == 0  # every byte was given back


async def of_a_long_history_some_go_at_once(world: World) -> None:
    states = world.interface(CleanedStates, max_history=128)
    counts = []
    for number in range(134):
        await states.asave("thread", {"n": number})
        if number >= 126:
            counts.append(await _count(states))
    assert counts == [127, 128, 126, 127, 128, 126, 127, 128]


async def those_who_save_at_once_keep_no_more(world: World) -> None:
    states = [world.interface(CleanedStates, saver, max_history=3) for saver in (world.saver, world.another())]

    async def save(number: int) -> None:
        for turn in range(5):
            await states[number].asave("thread", {"who": number, "turn": turn})

    await asyncio.gather(save(0), save(1))
    assert await _count(states[0]) == 3
    newest = {info.id: await states[0].aload("thread", info.id) for info in (await states[0].ahistory("thread")).states}
    assert {"who": 0, "turn": 4} in newest.values() or {"who": 1, "turn": 4} in newest.values()


async def a_thread_that_a_graph_made_keeps_its_history(world: World) -> None:
    states = world.interface(CleanedStates, max_history=1)
    run = Run(world.saver)
    for number in range(4):
        await run.step({"n": number})
    await states.asave("thread", {"n": 4})
    assert len(await listed(world.cold, at("thread"))) == 5


async def the_service_removes_what_is_too_old_or_too_much(world: World) -> None:
    plain = world.interface(States)
    for number in range(6):
        await plain.asave("long", {"n": number})
        await Run(world.saver, "graph").step({"n": number})
    before = await listed(world.saver, at("graph"))
    cleaning = world.interface(CleanedStates, interval=_SOON, max_history=2)
    await cleaning.astart()
    try:
        async with asyncio.timeout(_PATIENCE):
            while await _count(plain, "long") > 2:  # noqa: ASYNC110 - a removal by another thread raises no event
                await asyncio.sleep(0.01)
    finally:
        await cleaning.astop()
    assert cleaning.retention.last_error is None
    ageing = world.interface(CleanedStates, interval=_SOON, max_age=timedelta(microseconds=1))
    await ageing.astart()
    try:
        async with asyncio.timeout(_PATIENCE):
            while await plain.aexists("long"):  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.01)
    finally:
        await ageing.astop()
    assert await listed(world.cold, at("graph")) == before


async def odd_rules_are_refused(world: World) -> None:
    odd: list[dict[str, Any]] = [
        {"max_history": 0},
        {"max_history": True},
        {"max_history": "3"},
        {"max_age": timedelta(0)},
        {"max_age": "3"},
        {"interval": float("nan")},
        {"interval": timedelta(0)},
        {"compression": "yes"},
    ]
    for rules in odd:
        with pytest.raises(ConfigError, match=next(iter(rules))):
            world.interface(CleanedStates, **rules)
