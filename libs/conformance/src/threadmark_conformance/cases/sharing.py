"""Data that is stored once: equal bytes in a thread, from any writer, and the unchanged parts of a changed value."""

import random

from threadmark.saver import Saver
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, values

_SIZE = 20_000
_PROMPT = random.Random(3).randbytes(_SIZE)
"""Bytes that no compression makes smaller."""


async def _stored(saver: Saver, thread_id: str) -> int:
    return (await saver.astats(thread_id)).bytes_stored


async def the_same_bytes_are_stored_once_in_a_thread(world: World) -> None:
    run = Run(world.saver)
    await run.step({"prompt": _PROMPT, "copy": _PROMPT})
    await run.write(("prompt", _PROMPT), ("tasks", [_PROMPT, 1]))
    await world.another().aput(at("thread", "child"), checkpoint({"prompt": _PROMPT}), {}, {"prompt": 1})
    assert await _stored(run.saver, "thread") < 1.2 * _SIZE


async def packets_that_repeat_a_prompt_cost_their_own_fields(world: World) -> None:
    run = Run(world.saver)
    await run.step({"topics": list(range(16))})
    packets = [("tasks", {"prompt": _PROMPT, "topic": number}) for number in range(16)]
    await run.write(*packets)
    assert await _stored(run.saver, "thread") < 1.2 * _SIZE + 16 * 200


async def a_message_that_was_a_pending_write_is_not_stored_again_in_the_channel(world: World) -> None:
    run = Run(world.saver)
    await run.step({"messages": [b"first"]})
    await run.write(("messages", [_PROMPT]))
    await run.step({"messages": [b"first", _PROMPT]})
    assert await _stored(run.saver, "thread") < 1.2 * _SIZE


async def a_saver_that_knows_nothing_stores_only_what_changed(world: World) -> None:
    run = Run(world.saver)
    parts = [random.Random(seed).randbytes(2000) for seed in range(20)]
    await run.step({"parts": parts})
    before = await _stored(run.saver, "thread")
    run.saver = world.another()
    config = await run.step({"parts": [*parts[:7], b"changed", *parts[8:]]})
    assert await _stored(run.saver, "thread") < before + 1500
    assert (await values(world.another(), config))["parts"][7] == b"changed"


async def a_saver_that_forgot_a_value_reads_it_again_and_stores_what_changed(world: World) -> None:
    """The header is small and stays in memory; the value is unused for so long that it is forgotten."""
    run = Run(world.another(cache_bytes=60_000))
    parts = [random.Random(seed).randbytes(2000) for seed in range(10)]
    await run.step({"parts": parts})
    before = await _stored(run.saver, "thread")
    for seed in range(16):
        await run.step({"other": random.Random(100 + seed).randbytes(9000)})
    grown = await _stored(run.saver, "thread")
    assert grown > before + 16 * 9000
    await run.step({"parts": [*parts, b"one more"]})
    assert await _stored(run.saver, "thread") < grown + 1500


async def a_saver_that_may_remember_nothing_stores_what_changed(world: World) -> None:
    run = Run(world.another(cache_bytes=0))
    parts = [random.Random(seed).randbytes(2000) for seed in range(10)]
    await run.step({"parts": parts})
    before = await _stored(run.saver, "thread")
    await run.step({"parts": [*parts, b"one more"]})
    assert await _stored(run.saver, "thread") < before + 1500


async def of_many_channels_a_checkpoint_costs_those_that_changed(world: World) -> None:
    run = Run(world.saver)
    await run.step({f"channel {number}": random.Random(number).randbytes(70) for number in range(120)})
    before = await _stored(run.saver, "thread")
    steps = 20
    for seed in range(steps):
        await run.step({f"channel {number}": random.Random(seed + 1000).randbytes(70) for number in (seed, 60 + seed)})
    assert await _stored(run.saver, "thread") < before + steps * 1500


async def a_fork_shares_what_it_has_in_common(world: World) -> None:
    run = Run(world.saver)
    config = await run.step({"prompt": _PROMPT, "n": 0})
    await run.step({"n": 1})
    before = await _stored(run.saver, "thread")
    fork = await run.fork(config).step({"prompt": _PROMPT + b"forked"})
    assert await _stored(run.saver, "thread") < before + 1000
    assert (await values(world.another(), fork))["prompt"] == _PROMPT + b"forked"


async def threads_share_nothing(world: World) -> None:
    for thread_id in ("one", "two"):
        await world.saver.aput(at(thread_id), checkpoint({"prompt": _PROMPT}), {}, {"prompt": 1})
    assert await _stored(world.saver, "one") > _SIZE
    assert await _stored(world.saver, "two") > _SIZE
