"""Transactions that are run again, because the connection was lost before the answer to the commit came."""

from typing import Any

import pytest

from threadmark.errors import ConflictError, ThreadBusyError
from threadmark_conformance.backend import World
from threadmark_conformance.driver_wrapper import Resent
from threadmark_conformance.engine import Run, at, got, id_of, values
from threadmark_conformance.leasing import LONG, microseconds_left, put, run_under, under


async def nobody_waits_for_a_lease_of_his_own(world: World) -> None:
    resending = world.behind(Resent)
    for on_busy in ("reject", "wait", "interrupt", "rollback"):
        lost: list[object] = []
        async with resending.lease("thread", on_busy=on_busy, ttl=LONG, on_lost=lost.append) as lease:
            await put(resending, under(lease), a=on_busy)
            await lease.arenew()
            assert await microseconds_left(world) > LONG * 1_000_000 / 2
            with pytest.raises(ThreadBusyError):
                await put(world.another(), at("thread"), a="other")
            assert await lease.arelease() is True
        assert lost == []
        assert not lease.lost.is_set()
        assert (await world.saver.athread("thread")).status == "idle"  # type: ignore[union-attr]  # it was put
    assert await values(world.another(), at("thread")) == {"a": "rollback"}


async def the_lease_of_another_of_the_same_name_is_not_ones_own(world: World) -> None:
    async with world.saver.lease("thread", holder="worker", ttl=LONG) as lease:
        with pytest.raises(ThreadBusyError):
            async with world.behind(Resent).lease("thread", holder="worker", on_busy="reject"):
                raise AssertionError
        await put(world.saver, under(lease), a=1)


async def a_run_that_is_rolled_back_is_rolled_back_once(world: World) -> None:
    resending = world.behind(Resent)
    async with world.saver.lease("new") as lease:
        await run_under(world.saver, lease).step({"a": 1})
        async with resending.lease("new", on_busy="rollback") as taken:
            assert taken.config["configurable"] == {"thread_id": "new", "lease_token": taken.token}
            assert (await got(world.another(), at("new"))).checkpoint["channel_values"] == {}
            assert (await world.saver.athread("new")).checkpoints == 2  # type: ignore[union-attr]  # it was begun
    begins = await Run(world.saver, "begun").step({"a": 1})
    async with world.saver.lease("begun") as lease:
        await put(world.saver, under(lease, id_of(begins)), a=2)
        async with resending.lease("begun", on_busy="rollback") as taken:
            assert taken.config["configurable"]["checkpoint_id"] == id_of(begins)
            await put(resending, under(taken, id_of(begins)), a=3)
    assert (await got(world.another(), at("begun"))).parent_config == begins


async def what_was_created_or_renamed_is_not_taken_for_another_thread(world: World) -> None:
    resending = world.behind(Resent)
    created = await resending.acreate_thread("thread", title="x", metadata={"a": 1})
    assert created == await world.saver.athread("thread")
    with pytest.raises(ConflictError, match="there already"):
        await resending.acreate_thread("thread", title="y")
    assert await resending.arename_thread("thread", "other") is True
    assert await resending.arename_thread("thread", "third") is False
    renamed: Any = await world.saver.athread("other")
    assert (renamed.title, renamed.metadata) == ("x", {"a": 1})
    assert await world.saver.athread("thread") is None
