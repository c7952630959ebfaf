"""Tokens of leases: they only grow, and the database compares them for everything that is stored."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from threadmark.errors import ConfigError, LeaseLostError, ThreadBusyError
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, got, id_of, pending, values
from threadmark_conformance.leasing import (
    LONG,
    SHORT,
    is_lost,
    is_over,
    microseconds_left,
    put,
    run_under,
    taken,
    under,
)


async def who_has_a_lease_writes_and_nobody_else(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        run = run_under(world.saver, lease)
        config = await run.step({"a": 1})
        await run.write(("a", 2))
        other = world.another()
        with pytest.raises(ThreadBusyError, match=r"'thread' is leased by '.*process \d+' for \d+\.\d s more"):
            await put(other, at("thread"), a=0)
        with pytest.raises(ThreadBusyError):
            await other.aput_writes(at("thread", "", id_of(config)), [("a", 3)], "other task")
        assert (await values(other, at("thread"))) == {"a": 1}
        assert await pending(other, at("thread")) == [("task", "a", 2)]
    await put(world.saver, at("thread"), a=3)


async def what_a_put_returns_carries_the_token(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        config = await put(world.saver, under(lease), a=1)
        assert config["configurable"]["lease_token"] == lease.token
        assert lease.config == {"configurable": {"thread_id": "thread", "lease_token": lease.token}}
        assert lease.config is not lease.config
        found = await got(world.another(), at("thread"))
        assert "lease_token" not in found.metadata
        assert "lease_token" not in found.config["configurable"]


async def a_token_is_greater_than_every_earlier_one(world: World) -> None:
    tokens = []
    for _ in range(3):
        async with world.saver.lease("thread") as lease:
            tokens.append(lease.token)
    await Run(world.saver).step({"a": 1})
    for end in (world.saver.adelete_thread("thread"), world.saver.arename_thread("thread", "other")):
        await end
        async with world.another().lease("thread") as lease:
            tokens.append(lease.token)
            await run_under(world.saver, lease).step({"a": 1})
    async with world.another().lease("thread") as lease:
        tokens.append(lease.token)
    assert tokens == sorted(set(tokens))


async def a_stale_token_is_refused_for_good(world: World) -> None:
    first = await taken(world.saver)
    run = run_under(world.saver, first)
    config = await run.step({"a": 1})
    again = checkpoint({"a": 9}, {"a": 9}, checkpoint_id=id_of(config))
    async with world.another().lease("thread", on_busy="interrupt", ttl=LONG) as second:
        for _ in range(2):
            with pytest.raises(LeaseLostError, match=f"token {first.token} was released or taken over"):
                await run.step({"a": 2})
            with pytest.raises(LeaseLostError):
                await run.write(("a", 2))
            with pytest.raises(LeaseLostError):  # the checkpoint is there, and would be replaced
                await world.saver.aput(under(first), again, {}, {"a": 9})
            await second.arelease()
        assert await values(world.saver, at("thread")) == {"a": 1}
        assert await pending(world.saver, at("thread")) == []


async def a_released_token_is_refused_although_nobody_took_it(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        assert await lease.arelease() is True
        assert await lease.arelease() is False
        with pytest.raises(LeaseLostError):
            await put(world.saver, under(lease), a=1)
        assert not lease.lost.is_set()
    await put(world.saver, at("thread"), a=1)


async def a_token_that_never_was_is_refused(world: World) -> None:
    await Run(world.saver).step({"a": 1})
    for token in (1, 2**62):
        config = {"configurable": {"thread_id": "thread", "checkpoint_ns": "", "lease_token": token}}
        with pytest.raises(LeaseLostError):
            await put(world.saver, config, a=1)


async def what_can_be_no_token_is_a_mistake(world: World) -> None:
    for token in ("1", 1.0, True, [1], 0, -1, 2**63 - 1, 2**70):
        config = {"configurable": {"thread_id": "thread", "checkpoint_ns": "", "lease_token": token}}
        with pytest.raises(ConfigError, match="lease_token must be the token of a lease"):
            await put(world.saver, config, a=1)


async def a_lease_that_ran_out_still_writes_until_somebody_takes_it(world: World) -> None:
    lease = await taken(world.saver, ttl=SHORT)
    run = run_under(world.saver, lease)
    await run.step({"a": 1})
    await is_over(world.another())
    await run.step({"a": 2})
    await run.write(("a", 3))
    await lease.arelease()
    assert await values(world.another(), at("thread")) == {"a": 2}


async def who_has_no_token_writes_again_when_the_lease_ran_out(world: World) -> None:
    lease = await taken(world.saver, ttl=SHORT)
    await run_under(world.saver, lease).step({"a": 1})
    await is_over(world.another())
    await put(world.another(), at("thread"), a=2)
    assert await values(world.saver, at("thread")) == {"a": 2}


async def what_is_stored_under_a_lease_renews_it(world: World) -> None:
    lease = await taken(world.saver, ttl=0.4)
    run = run_under(world.saver, lease)
    await run.step({"a": 0})

    async def is_renewed_by(store_more: Callable[[], Awaitable[object]]) -> bool:
        while await microseconds_left(world) > 200_000:  # noqa: ASYNC110 - the database's clock raises no event
            await asyncio.sleep(0.02)
        await store_more()
        return await microseconds_left(world) > 200_000

    for store_more in (lambda: run.step({"a": 1}), lambda: run.write(("a", 1))):
        async with asyncio.timeout(LONG):
            while not await is_renewed_by(store_more):  # a slow machine has used it up when we look
                pass


async def to_delete_a_thread_ends_its_lease(world: World) -> None:
    async with world.saver.lease("thread", ttl=0.3) as lease:
        await run_under(world.saver, lease).step({"a": 1})
        await world.another().adelete_thread("thread")
        with pytest.raises(LeaseLostError):
            await put(world.saver, under(lease), a=2)
        assert await is_lost(lease)
        await put(world.another(), at("thread"), a=3)
        with pytest.raises(LeaseLostError):
            await put(world.saver, under(lease), a=2)


async def nobody_copies_into_a_leased_thread_nor_renames_it(world: World) -> None:
    await Run(world.saver, "source").step({"a": 1})
    async with world.saver.lease("thread") as lease:
        await run_under(world.saver, lease).step({"a": 2})
        with pytest.raises(ThreadBusyError):
            await world.another().acopy_thread("source", "thread")
        with pytest.raises(ThreadBusyError):
            await world.another().arename_thread("thread", "other")
        assert await world.another().acopy_thread("thread", "copy") is True
    assert await values(world.saver, at("thread")) == {"a": 2}
    await put(world.saver, at("copy"), a=3)


async def whoever_prunes_a_leased_thread_does_so(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        run = run_under(world.saver, lease)
        for number in range(3):
            await run.step({"a": number})
        assert (await world.another().aprune(["thread"])).checkpoints == 2
        await run.step({"a": 3})


async def leases_of_different_threads_have_nothing_to_do_with_each_other(world: World) -> None:
    async with world.saver.lease("one") as one, world.another().lease("two") as two:
        await run_under(world.saver, one).step({"a": 1})
        await run_under(world.saver, two).step({"a": 2})
        async with world.another().lease("two", on_busy="interrupt"):
            await run_under(world.saver, one).step({"a": 3})
            with pytest.raises(LeaseLostError):
                await run_under(world.saver, two).step({"a": 3})
