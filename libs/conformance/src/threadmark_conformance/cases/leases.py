"""Leases: one writer at a time, whose token is compared in the database with everything that is stored."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from threadmark.errors import ConfigError, ConflictError, LeaseLostError, ThreadBusyError, ThreadNotFoundError
from threadmark.model import Config
from threadmark.saver import Lease, Saver
from threadmark.thread_store import LeaseRow
from threadmark_conformance.backend import World
from threadmark_conformance.engine import Run, at, checkpoint, got, id_of, pending, values

_LONG = 60
"""Seconds that no case takes."""

_SHORT = 0.25
"""Seconds after which a lease that nobody renews is over."""


def _under(lease: Lease, checkpoint_id: str | None = None) -> dict[str, Any]:
    """The configuration of something that is stored under a lease."""
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {**lease.config["configurable"], "checkpoint_ns": "", **named}}


def _run(saver: Saver, lease: Lease) -> Run:
    run = Run(saver, lease.thread_id)
    run.config = _under(lease)
    return run


async def _put(saver: Saver, config: Config, **channels: Any) -> dict[str, Any]:
    return await saver.aput(config, checkpoint(channels), {}, dict.fromkeys(channels, 1))


async def _taken(saver: Saver, thread_id: str = "thread", **options: Any) -> Lease:
    """A lease that nobody renews but its holder, as if the process that took it slept."""
    lease = saver.lease(thread_id, **{"ttl": _LONG, **options})
    await lease.__aenter__()
    await _stop_renewal(lease)
    return lease


async def _stop_renewal(lease: Any) -> None:
    renewal = getattr(lease, "_renewal")  # noqa: B009 - of the lease that an API of the suite may have wrapped
    await renewal.astop()


async def _over(saver: Saver, thread_id: str = "thread") -> None:
    """Wait until no lease of the thread lives."""
    async with asyncio.timeout(_LONG):
        while await _is_busy(saver, thread_id):  # noqa: ASYNC110 - the database's clock raises no event
            await asyncio.sleep(0.01)


async def _is_busy(saver: Saver, thread_id: str) -> bool:
    found = await saver.athread(thread_id)
    return found is not None and found.status == "busy"


async def _left(world: World) -> int:
    """For how many microseconds the lease lives on."""
    lease: LeaseRow = await world.in_store(lambda store: store.lease("thread"))
    return lease.left


async def _lost(lease: Lease) -> bool:
    return await asyncio.to_thread(lease.lost.wait, _LONG)


async def who_has_a_lease_writes_and_nobody_else(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        run = _run(world.saver, lease)
        config = await run.step({"a": 1})
        await run.write(("a", 2))
        other = world.another()
        with pytest.raises(ThreadBusyError, match=r"'thread' is leased by '.*process \d+' for \d+\.\d s more"):
            await _put(other, at("thread"), a=0)
        with pytest.raises(ThreadBusyError):
            await other.aput_writes(at("thread", "", id_of(config)), [("a", 3)], "other task")
        assert (await values(other, at("thread"))) == {"a": 1}
        assert await pending(other, at("thread")) == [("task", "a", 2)]
    await _put(world.saver, at("thread"), a=3)


async def a_thread_is_busy_while_a_lease_of_it_lives(world: World) -> None:
    await Run(world.saver).step({"a": 1})
    async with world.saver.lease("thread"):
        assert [each.status for each in (await world.another().athreads()).threads] == ["busy"]
        assert await world.another().acount_threads(status="busy") == 1
    assert [each.status for each in (await world.saver.athreads()).threads] == ["idle"]


async def a_lease_of_a_new_thread_begins_it_with_its_first_put(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        assert await world.saver.athread("thread") is None
        assert (await world.saver.athreads()).threads == []
        with pytest.raises(ThreadBusyError):
            await _put(world.another(), at("thread"), a=0)
        config = _under(lease)
        config["configurable"]["user_id"] = "ada"
        await _put(world.saver, config, a=1)
        found = await world.saver.athread("thread")
        assert found is not None
        assert (found.owner, found.status, found.checkpoints) == ("ada", "busy", 1)


async def what_a_put_returns_carries_the_token(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        config = await _put(world.saver, _under(lease), a=1)
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
            await _run(world.saver, lease).step({"a": 1})
    async with world.another().lease("thread") as lease:
        tokens.append(lease.token)
    assert tokens == sorted(set(tokens))


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
        async with other.lease("thread", ttl=_LONG):
            order.append("taken")

    async with world.saver.lease("thread", ttl=_LONG):
        waiting = asyncio.create_task(wait())
        await begun.wait()
        await asyncio.sleep(0.1)
        order.append("released")
    await waiting
    assert order == ["released", "taken"]


async def who_waits_gets_the_lease_of_somebody_who_died_when_it_is_over(world: World) -> None:
    dead = await _taken(world.saver, ttl=_SHORT)
    async with world.another().lease("thread", ttl=_LONG, timeout=_LONG) as lease:
        assert lease.token > dead.token
        with pytest.raises(LeaseLostError):
            await _put(world.saver, _under(dead), a=1)


async def who_waits_in_vain_is_told_so(world: World) -> None:
    async with world.saver.lease("thread", ttl=timedelta(seconds=_LONG)):
        with pytest.raises(ThreadBusyError):
            async with world.another().lease("thread", timeout=0.12):
                raise AssertionError
        with pytest.raises(ThreadBusyError):
            async with world.another().lease("thread", timeout=0):
                raise AssertionError


async def who_is_cancelled_while_waiting_takes_no_lease(world: World) -> None:
    begun = asyncio.Event()

    async def wait() -> None:
        begun.set()
        async with world.saver.lease("thread", ttl=_LONG, timeout=1):
            raise AssertionError

    async with world.another().lease("thread", ttl=_LONG):
        waiting = asyncio.create_task(wait())
        await begun.wait()
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await _put(world.saver, at("thread"), a=1)


async def a_stale_token_is_refused_for_good(world: World) -> None:
    first = await _taken(world.saver)
    run = _run(world.saver, first)
    config = await run.step({"a": 1})
    again = checkpoint({"a": 9}, {"a": 9}, checkpoint_id=id_of(config))
    async with world.another().lease("thread", on_busy="interrupt", ttl=_LONG) as second:
        for _ in range(2):
            with pytest.raises(LeaseLostError, match=f"token {first.token} was released or taken over"):
                await run.step({"a": 2})
            with pytest.raises(LeaseLostError):
                await run.write(("a", 2))
            with pytest.raises(LeaseLostError):  # the checkpoint is there, and would be replaced
                await world.saver.aput(_under(first), again, {}, {"a": 9})
            await second.arelease()
        assert await values(world.saver, at("thread")) == {"a": 1}
        assert await pending(world.saver, at("thread")) == []


async def a_released_token_is_refused_although_nobody_took_it(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        assert await lease.arelease() is True
        assert await lease.arelease() is False
        with pytest.raises(LeaseLostError):
            await _put(world.saver, _under(lease), a=1)
        assert not lease.lost.is_set()
    await _put(world.saver, at("thread"), a=1)


async def a_token_that_never_was_is_refused(world: World) -> None:
    await Run(world.saver).step({"a": 1})
    for token in (1, 2**62):
        config = {"configurable": {"thread_id": "thread", "checkpoint_ns": "", "lease_token": token}}
        with pytest.raises(LeaseLostError):
            await _put(world.saver, config, a=1)


async def what_can_be_no_token_is_a_mistake(world: World) -> None:
    for token in ("1", 1.0, True, [1], 0, -1, 2**63 - 1, 2**70):
        config = {"configurable": {"thread_id": "thread", "checkpoint_ns": "", "lease_token": token}}
        with pytest.raises(ConfigError, match="lease_token must be the token of a lease"):
            await _put(world.saver, config, a=1)


async def a_lease_that_ran_out_still_writes_until_somebody_takes_it(world: World) -> None:
    lease = await _taken(world.saver, ttl=_SHORT)
    run = _run(world.saver, lease)
    await run.step({"a": 1})
    await _over(world.another())
    await run.step({"a": 2})
    await run.write(("a", 3))
    await lease.arelease()
    assert await values(world.another(), at("thread")) == {"a": 2}


async def who_has_no_token_writes_again_when_the_lease_ran_out(world: World) -> None:
    lease = await _taken(world.saver, ttl=_SHORT)
    await _run(world.saver, lease).step({"a": 1})
    await _over(world.another())
    await _put(world.another(), at("thread"), a=2)
    assert await values(world.saver, at("thread")) == {"a": 2}


async def what_is_stored_under_a_lease_renews_it(world: World) -> None:
    lease = await _taken(world.saver, ttl=0.4)
    run = _run(world.saver, lease)
    await run.step({"a": 0})

    async def is_renewed_by(store_more: Callable[[], Awaitable[object]]) -> bool:
        while await _left(world) > 200_000:
            await asyncio.sleep(0.02)
        await store_more()
        return await _left(world) > 200_000

    for store_more in (lambda: run.step({"a": 1}), lambda: run.write(("a", 1))):
        async with asyncio.timeout(_LONG):
            while not await is_renewed_by(store_more):  # a slow machine has used it up when we look
                pass


async def a_lease_renews_itself_in_the_background(world: World) -> None:
    async with world.saver.lease("thread", ttl=0.6) as lease:
        await _run(world.saver, lease).step({"a": 1})
        with pytest.raises(ThreadBusyError):
            async with world.another().lease("thread", timeout=1.5):
                raise AssertionError
        assert not lease.lost.is_set()
        await lease.arenew()


async def the_holder_is_told_when_its_lease_is_taken_over(world: World) -> None:
    told: list[tuple[Lease, bool]] = []
    async with world.saver.lease(
        "thread", ttl=0.3, on_lost=lambda each: told.append((each, each.lost.is_set()))
    ) as lease:
        async with world.another().lease("thread", on_busy="interrupt", ttl=_LONG):
            assert await _lost(lease)
            with pytest.raises(LeaseLostError):
                await lease.arenew()
        with pytest.raises(LeaseLostError):
            await _put(world.saver, _under(lease), a=1)
    assert [(each.token, is_set) for each, is_set in told] == [(lease.token, True)]


async def the_holder_is_told_at_the_end_of_its_block_at_the_latest(world: World) -> None:
    told = threading.Event()
    async with world.saver.lease("thread", ttl=_LONG, on_lost=lambda _: told.set()) as lease:
        async with world.another().lease("thread", on_busy="interrupt", ttl=_LONG):
            assert not lease.lost.is_set()  # which the next renewal would find out, in a while
        assert not told.is_set()
    assert told.is_set()
    assert lease.lost.is_set()


async def a_callback_that_raises_harms_nobody(world: World) -> None:
    def fail(_: Lease) -> None:
        raise ValueError("of the application")

    async with world.saver.lease("thread", ttl=0.3, on_lost=fail) as lease:
        async with world.another().lease("thread", on_busy="interrupt", ttl=_LONG):
            assert await _lost(lease)
        async with world.another().lease("thread", on_busy="reject"):
            pass


async def an_error_of_the_block_is_the_one_that_is_raised(world: World) -> None:
    with pytest.raises(ZeroDivisionError):
        async with world.saver.lease("thread", ttl=_LONG):
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        async with world.saver.lease("thread", ttl=_LONG):
            await (await _taken(world.another(), on_busy="interrupt")).arelease()
            raise ZeroDivisionError
    async with world.saver.lease("thread", on_busy="reject"):
        pass


async def a_rollback_goes_back_to_where_the_other_run_began(world: World) -> None:
    before = Run(world.saver)
    beginning = await before.step({"a": "before"})
    await before.write(("__interrupt__", "a question"))
    first = await _taken(world.saver)
    run = before.fork(_under(first, id_of(beginning)))
    await run.step({"a": "abandoned"})
    await run.step({"a": "abandoned too"})
    async with world.another().lease("thread", on_busy="rollback", ttl=_LONG) as lease:
        assert lease.config["configurable"]["checkpoint_id"] == id_of(beginning)
        again = before.fork(_under(lease))
        assert await pending(world.saver, again.config) == [("task", "__interrupt__", "a question")]
        after = await again.step({"a": "after"})
        with pytest.raises(LeaseLostError):
            await run.step({"a": "too late"})
        newest = await got(world.another(), at("thread"))
        assert id_of(newest.config) == id_of(after)
        assert newest.parent_config is not None
        assert id_of(newest.parent_config) == id_of(beginning)
        # A run that began by a rollback is rolled back to the same place.
        async with world.another().lease("thread", on_busy="rollback", ttl=_LONG) as third:
            assert third.config["configurable"]["checkpoint_id"] == id_of(beginning)
        # And one that nobody rolls back begins where it finds the thread.
        async with world.another().lease("thread", on_busy="interrupt", ttl=_LONG) as fourth:
            assert "checkpoint_id" not in fourth.config["configurable"]
            async with world.another().lease("thread", on_busy="rollback", ttl=_LONG) as fifth:
                assert fifth.config["configurable"]["checkpoint_id"] == id_of(after)


async def a_rollback_of_a_run_that_began_the_thread_leaves_it_empty(world: World) -> None:
    first = await _taken(world.saver)
    async with world.another().lease("thread", on_busy="rollback", ttl=_LONG) as second:
        assert await world.saver.aget_tuple(at("thread")) is None  # there is nothing to be put back
        run = _run(world.saver, second)
        await run.step({"a": 1}, checkpoint_id="z")  # whose id sorts after every id of a clock
        async with world.another().lease("thread", on_busy="rollback", ttl=_LONG) as third:
            assert "checkpoint_id" not in third.config["configurable"]
            empty = await got(world.another(), at("thread"))
            assert empty.checkpoint["channel_values"] == {}
            assert empty.parent_config is None
            assert await values(world.another(), at("thread", "", "z")) == {"a": 1}
            again = _run(world.saver, third)
            again.config = _under(third, id_of(empty.config))
            await again.step({"b": 1})
            assert await values(world.another(), at("thread")) == {"b": 1}
            async with world.another().lease("thread", on_busy="rollback", ttl=_LONG) as fourth:
                assert fourth.config["configurable"]["checkpoint_id"] == id_of(empty.config)
    assert await first.arelease() is False


async def a_rollback_to_what_was_removed_is_refused_and_takes_nothing(world: World) -> None:
    run = Run(world.saver)
    await run.step({"a": 1})
    async with world.saver.lease("thread", ttl=_LONG) as lease:
        run.config = _under(lease, id_of(run.config))
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


async def to_delete_a_thread_ends_its_lease(world: World) -> None:
    async with world.saver.lease("thread", ttl=0.3) as lease:
        await _run(world.saver, lease).step({"a": 1})
        await world.another().adelete_thread("thread")
        with pytest.raises(LeaseLostError):
            await _put(world.saver, _under(lease), a=2)
        assert await _lost(lease)
        await _put(world.another(), at("thread"), a=3)
        with pytest.raises(LeaseLostError):
            await _put(world.saver, _under(lease), a=2)


async def nobody_copies_into_a_leased_thread_nor_renames_it(world: World) -> None:
    await Run(world.saver, "source").step({"a": 1})
    async with world.saver.lease("thread") as lease:
        await _run(world.saver, lease).step({"a": 2})
        with pytest.raises(ThreadBusyError):
            await world.another().acopy_thread("source", "thread")
        with pytest.raises(ThreadBusyError):
            await world.another().arename_thread("thread", "other")
        assert await world.another().acopy_thread("thread", "copy") is True
    assert await values(world.saver, at("thread")) == {"a": 2}
    await _put(world.saver, at("copy"), a=3)


async def whoever_prunes_a_leased_thread_does_so(world: World) -> None:
    async with world.saver.lease("thread") as lease:
        run = _run(world.saver, lease)
        for number in range(3):
            await run.step({"a": number})
        assert (await world.another().aprune(["thread"])).checkpoints == 2
        await run.step({"a": 3})


async def nobody_leases_the_thread_of_another_owner(world: World) -> None:
    ada, bob = world.saver.for_owner("ada"), world.another().for_owner("bob")
    async with ada.lease("thread", ttl=_LONG) as lease:
        await _run(ada, lease).step({"a": 1})
        for on_busy in ("wait", "reject", "interrupt", "rollback"):
            with pytest.raises(ThreadNotFoundError, match="'thread'"):
                async with bob.lease("thread", on_busy=on_busy):
                    raise AssertionError
        with pytest.raises(ThreadNotFoundError):
            await _put(bob, _under(lease), a=2)
        await _run(ada, lease).step({"a": 3})
    with pytest.raises(ThreadNotFoundError):
        async with bob.lease("thread"):
            raise AssertionError
    async with bob.lease("other") as own:
        await _run(bob, own).step({"a": 1})
        assert await bob.acount_threads() == 1


async def a_lease_is_entered_once(world: World) -> None:
    lease = world.saver.lease("thread", ttl=_LONG)
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
    assert await world.saver.athread("thread") is None


async def a_holder_may_have_any_name(world: World) -> None:
    for name in ("", "Ada's worker 'π'", "a\0b", "\ud800"):
        async with world.saver.lease("thread", holder=name) as lease:
            assert lease.holder == name
            with pytest.raises(ThreadBusyError):
                async with world.another().lease("thread", on_busy="reject"):
                    raise AssertionError


async def leases_of_different_threads_have_nothing_to_do_with_each_other(world: World) -> None:
    async with world.saver.lease("one") as one, world.another().lease("two") as two:
        await _run(world.saver, one).step({"a": 1})
        await _run(world.saver, two).step({"a": 2})
        config = _under(one)
        config["configurable"]["thread_id"] = "two"
        with pytest.raises(LeaseLostError):
            await _put(world.saver, config, a=3)


async def many_who_want_a_lease_get_it_one_after_the_other(world: World) -> None:
    inside, seen = [], []

    async def work(name: str) -> None:
        saver = world.another()
        async with saver.lease("thread", ttl=_LONG) as lease:
            inside.append(name)
            seen.append((len(inside), lease.token))
            newest = await saver.aget_tuple(at("thread"))
            run = _run(saver, lease)
            run.config = _under(lease, id_of(newest.config) if newest else None)
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
        assert await _lost(lease)
