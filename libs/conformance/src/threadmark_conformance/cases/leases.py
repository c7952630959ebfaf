"""Leases: one writer at a time; taken, waited for, renewed, taken over, rolled back and released."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from threadmark.errors import ConfigError, ConflictError, LeaseLostError, ThreadBusyError, ThreadNotFoundError
from threadmark.types import Lease
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, got, id_of, pending, values
from threadmark_conformance.leasing import LONG, SHORT, is_lost, microseconds_left, put, run_under, taken, under


async def a_thread_is_busy_while_a_lease_of_it_lives(world: World) -> None:
    await Run(world.saver).step({"a": 1})
    async with world.saver.lease("thread"):
        assert [each.status for each in (await world.another().alist_threads()).threads] == ["busy"]
        assert await world.another().acount_threads(status="busy") == 1
    assert [each.status for each in (await world.saver.alist_threads()).threads] == ["idle"]


async def a_lease_of_a_new_thread_begins_it_with_its_first_put(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        assert await world.saver.aget_thread("thread") is None
        assert (await world.saver.alist_threads()).threads == []
        with pytest.raises(ThreadBusyError):
            await put(world.another(), at("thread"), a=0)
        config = under(lease)
        config["configurable"]["user_id"] = "ada"
        await put(world.saver, config, a=1)
        found = await world.saver.aget_thread("thread")
        assert found is not None
        assert (found.owner, found.status, found.checkpoints) == ("ada", "busy", 1)


async def a_busy_thread_is_rejected_at_once(world: World) -> None:
    async with world.saver.lease("thread", holder="worker 7"):
        with pytest.raises(ThreadBusyError, match="'worker 7'"):
            async with world.another().lease("thread", on_busy="reject"):
                raise AssertionError
    async with world.another().lease("thread", on_busy="reject"):
        pass


async def who_waits_gets_the_lease_when_it_is_released(world: World) -> None:
    other = world.another()
    begun, order = asyncio.Event(), []

    async def wait() -> None:
        begun.set()
        async with other.lease("thread", ttl=LONG):
            order.append("taken")

    async with world.saver.lease("thread", ttl=LONG):
        waiting = asyncio.create_task(wait())
        await begun.wait()
        await asyncio.sleep(0.1)
        order.append("released")
    await waiting
    assert order == ["released", "taken"]


async def who_waits_gets_the_lease_of_somebody_who_died_when_it_is_over(world: World) -> None:
    dead = await taken(world.saver, ttl=SHORT)
    async with world.another().lease("thread", ttl=LONG, timeout=LONG) as lease:
        assert lease.token > dead.token
        with pytest.raises(LeaseLostError):
            await put(world.saver, under(dead), a=1)


async def waiting_in_vain_is_reported(world: World) -> None:
    async with world.saver.lease("thread", ttl=timedelta(seconds=LONG)):
        with pytest.raises(ThreadBusyError):
            async with world.another().lease("thread", timeout=0.12):
                raise AssertionError
        with pytest.raises(ThreadBusyError):
            async with world.another().lease("thread", timeout=0):
                raise AssertionError


async def a_lease_renews_itself_in_the_background(world: World) -> None:
    for _ in range(3):  # it may be lost if the machine stops for longer than it lives
        async with world.saver.lease("thread", ttl=2.4) as lease:
            before, left = 2_400_001, await microseconds_left(world)
            async with asyncio.timeout(LONG):
                while left <= before and not lease.lost.is_set():  # without a renewal it only gets less
                    await asyncio.sleep(0.02)
                    before, left = left, await microseconds_left(world)
            if not lease.lost.is_set():
                await lease.arenew()
                return
    raise AssertionError("it is lost again and again")


async def the_holder_is_notified_when_its_lease_is_taken_over(world: World) -> None:
    notified: list[tuple[Lease, bool]] = []
    async with world.saver.lease(
        "thread", ttl=0.3, on_lost=lambda each: notified.append((each, each.lost.is_set()))
    ) as lease:
        async with world.another().lease("thread", on_busy="interrupt", ttl=LONG):
            assert await is_lost(lease)
            with pytest.raises(LeaseLostError):
                await lease.arenew()
        with pytest.raises(LeaseLostError):
            await put(world.saver, under(lease), a=1)
    assert [(each.token, is_set) for each, is_set in notified] == [(lease.token, True)]


async def the_holder_is_notified_at_the_end_of_its_block_at_the_latest(world: World) -> None:
    notified = threading.Event()
    async with world.saver.lease("thread", ttl=LONG, on_lost=lambda _: notified.set()) as lease:
        async with world.another().lease("thread", on_busy="interrupt", ttl=LONG):
            assert not lease.lost.is_set()  # which the next renewal would notice, after a while
        assert not notified.is_set()
    assert notified.is_set()
    assert lease.lost.is_set()


async def a_callback_that_raises_harms_nobody(world: World) -> None:
    def fail(_: Lease) -> None:
        raise ValueError("of the application")

    async with world.saver.lease("thread", ttl=0.3, on_lost=fail) as lease:
        async with world.another().lease("thread", on_busy="interrupt", ttl=LONG):
            assert await is_lost(lease)
        async with world.another().lease("thread", on_busy="reject"):
            pass


async def an_error_of_the_block_is_the_one_that_is_raised(world: World) -> None:
    with pytest.raises(ZeroDivisionError):
        async with world.saver.lease("thread", ttl=LONG):
            raise ZeroDivisionError

    async def fail_after_the_lease() -> None:
        async with world.saver.lease("thread", ttl=LONG):
            await (await taken(world.another(), on_busy="interrupt")).arelease()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_after_the_lease()
    async with world.saver.lease("thread", on_busy="reject"):
        pass


async def a_rollback_goes_back_to_where_the_other_run_began(world: World) -> None:
    before = Run(world.saver)
    beginning = await before.step({"a": "before"})
    await before.write(("__interrupt__", "a question"))
    first = await taken(world.saver)
    run = before.fork(under(first, id_of(beginning)))
    await run.step({"a": "abandoned"})
    await run.step({"a": "abandoned too"})
    async with world.another().lease("thread", on_busy="rollback", ttl=LONG) as lease:
        assert lease.config["configurable"]["checkpoint_id"] == id_of(beginning)
        again = before.fork(under(lease))
        assert await pending(world.saver, again.config) == [("task", "__interrupt__", "a question")]
        after = await again.step({"a": "after"})
        with pytest.raises(LeaseLostError):
            await run.step({"a": "too late"})
        newest = await got(world.another(), at("thread"))
        assert id_of(newest.config) == id_of(after)
        assert newest.parent_config is not None
        assert id_of(newest.parent_config) == id_of(beginning)
        # A run that began by a rollback is rolled back to the same place.
        async with world.another().lease("thread", on_busy="rollback", ttl=LONG) as third:
            assert third.config["configurable"]["checkpoint_id"] == id_of(beginning)
        # A run that is not rolled back begins at the thread's present state.
        async with world.another().lease("thread", on_busy="interrupt", ttl=LONG) as fourth:
            assert "checkpoint_id" not in fourth.config["configurable"]
            async with world.another().lease("thread", on_busy="rollback", ttl=LONG) as fifth:
                assert fifth.config["configurable"]["checkpoint_id"] == id_of(after)


async def a_rollback_of_a_run_that_began_the_thread_leaves_it_empty(world: World) -> None:
    first = await taken(world.saver)
    async with world.another().lease("thread", on_busy="rollback", ttl=LONG) as second:
        assert await world.saver.aget_tuple(at("thread")) is None  # there is nothing to roll back
        run = run_under(world.saver, second)
        await run.step({"a": 1}, checkpoint_id="z")  # whose id sorts after every id of a clock
        async with world.another().lease("thread", on_busy="rollback", ttl=LONG) as third:
            assert "checkpoint_id" not in third.config["configurable"]
            empty = await got(world.another(), at("thread"))
            assert empty.checkpoint["channel_values"] == {}
            assert empty.parent_config is None
            assert await values(world.another(), at("thread", "", "z")) == {"a": 1}
            again = run_under(world.saver, third)
            again.config = under(third, id_of(empty.config))
            await again.step({"b": 1})
            assert await values(world.another(), at("thread")) == {"b": 1}
            async with world.another().lease("thread", on_busy="rollback", ttl=LONG) as fourth:
                assert fourth.config["configurable"]["checkpoint_id"] == id_of(empty.config)
    assert await first.arelease() is False


async def a_rollback_to_what_was_removed_is_refused_and_takes_nothing(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    async with world.saver.lease("thread", ttl=LONG) as lease:
        run.config = under(lease, id_of(run.config))
        await run.step({"a": 2})
        await world.saver.aprune(["thread"])
        with pytest.raises(ConflictError, match=r"began at checkpoint .* which was removed"):
            async with world.another().lease("thread", on_busy="rollback"):
                raise AssertionError
        await run.step({"a": 3})


async def a_thread_that_is_not_busy_is_not_rolled_back(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    for on_busy in ("interrupt", "rollback"):
        async with world.saver.lease("thread", on_busy=on_busy) as lease:
            assert "checkpoint_id" not in lease.config["configurable"]
    assert (await got(world.saver, at("thread"))).config == config


async def nobody_leases_the_thread_of_another_owner(world: World) -> None:
    ada, bob = world.saver.for_owner("ada"), world.another().for_owner("bob")
    async with ada.lease("thread", ttl=LONG) as lease:
        await run_under(ada, lease).step({"a": 1})
        for on_busy in ("wait", "reject", "interrupt", "rollback"):
            with pytest.raises(ThreadNotFoundError, match="'thread'"):
                async with bob.lease("thread", on_busy=on_busy):
                    raise AssertionError
        with pytest.raises(ThreadNotFoundError):
            await put(bob, under(lease), a=2)
        await run_under(ada, lease).step({"a": 3})
    with pytest.raises(ThreadNotFoundError):
        async with bob.lease("thread"):
            raise AssertionError
    async with bob.lease("other") as own:
        await run_under(bob, own).step({"a": 1})
        assert await bob.acount_threads() == 1
    async with ada.lease("not begun", ttl=LONG, holder="a machine of Ada's"):
        with pytest.raises(ThreadBusyError) as refused:
            async with bob.lease("not begun", on_busy="reject"):
                raise AssertionError
    assert "Ada" not in str(refused.value)


async def a_lease_is_entered_once(world: World) -> None:
    lease = world.saver.lease("thread", ttl=LONG)
    for attribute in ("token", "config"):
        with pytest.raises(ConfigError, match="not taken yet"):
            getattr(lease, attribute)
    async with lease:
        with pytest.raises(ConfigError, match="entered once"):
            await lease.__aenter__()
        await lease.arenew()
    with pytest.raises(ConfigError, match="entered once"):
        await lease.__aenter__()


async def odd_arguments_of_a_lease_are_refused(world: World) -> None:
    odd: list[dict[str, Any]] = [
        {"thread_id": None},
        {"thread_id": "x" * 5000},
        {"on_busy": "enqueue"},
        {"on_busy": None},
        {"ttl": 0},
        {"ttl": -1},
        {"ttl": "30"},
        {"ttl": float("nan")},
        {"ttl": True},
        {"ttl": timedelta(days=365)},
        {"holder": 7},
        {"holder": "x" * 5000},
        {"timeout": -1},
        {"timeout": 1, "on_busy": "reject"},
        {"on_lost": "call me"},
    ]
    for options in odd:
        with pytest.raises(ConfigError):
            world.saver.lease(**{"thread_id": "thread", **options})
    assert world.saver.lease(7).thread_id == "7"  # type: ignore[arg-type]  # as everywhere
    assert await world.saver.aget_thread("thread") is None


async def a_holder_may_have_any_name(world: World) -> None:
    for name in ("", "Ada's worker 'π'", "a\0b", "\ud800"):
        async with world.saver.lease("thread", holder=name) as lease:
            assert lease.holder == name
            with pytest.raises(ThreadBusyError):
                async with world.another().lease("thread", on_busy="reject"):
                    raise AssertionError


async def many_who_want_a_lease_get_it_one_after_the_other(world: World) -> None:
    inside, seen = [], []

    async def work(name: str) -> None:
        saver = world.another()
        async with saver.lease("thread", ttl=LONG) as lease:
            inside.append(name)
            seen.append((len(inside), lease.token))
            newest = await saver.aget_tuple(at("thread"))
            run = run_under(saver, lease)
            run.config = under(lease, id_of(newest.config) if newest else None)
            await run.step({"a": name})
            inside.remove(name)

    await asyncio.gather(*(work(f"worker {number}") for number in range(5)))
    assert [count for count, _ in seen] == [1] * 5
    tokens = [token for _, token in seen]
    assert tokens == sorted(set(tokens))


async def a_saver_that_is_closed_renews_no_lease(world: World) -> None:
    other = world.another()
    lease = other.lease("thread", ttl=0.3)
    async with lease:
        await other.aclose()
        assert await is_lost(lease)
