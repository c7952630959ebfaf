"""Repeated commits: a transaction that is run again because its answer was lost has the same effect and answer."""

from collections.abc import Generator
from typing import Any

import pytest

from threadmark import Conversations
from threadmark.errors import ConflictError, ThreadBusyError
from threadmark.program import Transaction
from threadmark.saver import Saver
from threadmark_conformance.backend import World
from threadmark_conformance.cases.talking import TALK
from threadmark_conformance.driver_wrapper import DriverWrapper
from threadmark_conformance.engine import Run, at, values
from threadmark_conformance.leasing import LONG, microseconds_left, put, taken, under


class _Twice(DriverWrapper):
    """A driver that loses the first answer of each transaction that writes, and then runs it again."""

    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any] | None, Any, Any]:
        if transaction.writes:
            yield transaction
        return (yield transaction)


def _twice(world: World) -> Saver:
    return world.behind(_Twice)


async def a_lease_is_taken_and_released_once(world: World) -> None:
    for on_busy in ("wait", "reject", "interrupt", "rollback"):
        notified: list[object] = []
        lease = _twice(world).lease("thread", on_busy=on_busy, ttl=LONG, on_lost=notified.append)
        async with lease:
            await put(world.saver, under(lease), a=on_busy)
        assert (lease.lost.is_set(), notified) == (False, [])
        assert await microseconds_left(world) == 0
        assert (await values(world.saver, at("thread")))["a"] == on_busy


async def a_lease_of_somebody_else_is_still_waited_for(world: World) -> None:
    held = await taken(world.saver)
    with pytest.raises(ThreadBusyError):
        await _twice(world).lease("thread", on_busy="reject").__aenter__()
    await put(world.saver, under(held), a=1)


async def a_thread_is_created_renamed_and_deleted_once(world: World) -> None:
    saver = _twice(world)
    assert (await saver.acreate_thread("thread", title="a title")).title == "a title"
    with pytest.raises(ConflictError):
        await saver.acreate_thread("thread")
    await Run(world.saver).step({"a": 1})
    assert await saver.arename_thread("thread", "renamed") is True
    assert await saver.arename_thread("thread", "renamed") is False
    assert await saver.adelete_thread("renamed") is True
    assert await saver.adelete_thread("renamed") is False


async def a_fork_is_made_once(world: World) -> None:
    config = await Run(world.saver).step({"a": 1})
    saver = _twice(world)
    assert await values(world.saver, await saver.afork(config, as_thread="new")) == {"a": 1}
    with pytest.raises(ConflictError):
        await saver.afork(config, as_thread="new")
    await saver.afork(config)
    assert len((await world.saver.ahistory("thread")).entries) == 2


async def a_put_that_expects_the_newest_is_done_once(world: World) -> None:
    run = Run(_twice(world))
    await run.step({"a": 1})
    run.config["configurable"]["expect_newest"] = True
    await run.step({"a": 2})
    with pytest.raises(ConflictError):
        await put(run.saver, {"configurable": {"thread_id": "thread", "expect_newest": True}}, a=3)


async def messages_are_stored_replaced_and_deleted_once(world: World) -> None:
    talk = world.interface(Conversations, _twice(world))
    for content in ("x" * 300, "y" * 300, "y"):
        messages = [{"id": "a", "content": content}, {"id": "b", "content": content}]
        assert await talk.aput_messages(TALK, messages) == ["a", "b"]
        assert await world.interface(Conversations, world.cold).aget_messages(TALK) == messages
        verified = await world.cold.averify("talk", decode=True)
        assert (verified.problems, verified.checkpoints) == ([], 2)
    assert await talk.adelete_message(TALK, "a") is True
    assert await talk.adelete_message(TALK, "a") is False
    await talk.aput_state(TALK, {"text": "z" * 300})
    assert await talk.aget_state(TALK) == {"text": "z" * 300}
    assert await talk.aclear_state(TALK) is True
    assert await talk.aclear_state(TALK) is False
    assert (await world.cold.averify("talk")).problems == []
    assert await talk.adelete_thread(TALK) is True
