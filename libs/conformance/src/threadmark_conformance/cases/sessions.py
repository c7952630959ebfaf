"""`Sessions`: checkpoints of named steps, in the order in which they were saved."""

import asyncio
from collections.abc import Generator
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from threadmark.errors import ConfigError, SerializationError, ThreadBusyError, ThreadNotFoundError
from threadmark.ids import time_of_id
from threadmark.interfaces import SessionCheckpoint, SessionMetadata, Sessions, SessionStats, States
from threadmark.program import Driver, Program, Transaction
from threadmark.saver.operations.removing import delete_checkpoint
from threadmark.store.contract import Store, now
from threadmark_conformance.backend import World
from threadmark_conformance.driver_wrapper import DriverWrapper
from threadmark_conformance.engine import Run, at, id_of, listed, values
from threadmark_conformance.leasing import taken

_LONG = "a part of a state that is long enough for a segment of its own. " * 8


class _DeletesFirst(DriverWrapper):
    """Deletes after a save has read the place of its checkpoint, and before the save is stored."""

    def __init__(self, driver: Driver, delete: Transaction[Any]) -> None:
        super().__init__(driver)
        self._delete: Transaction[Any] | None = delete

    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any] | None, Any, Any]:
        if transaction.writes and self._delete is not None:
            delete, self._delete = self._delete, None
            yield delete
        return (yield transaction)


def _drop(store: Store) -> Program[None]:
    yield from store.lock("session")
    yield from store.drop("session", now())


def _made(state: Any, step: int = 0, session_id: str = "session", **fields: Any) -> SessionCheckpoint:
    return SessionCheckpoint(
        SessionMetadata(session_id=session_id, node_name=f"node {step}", step=step, **fields), state
    )


async def _steps(sessions: Sessions, count: int, session_id: str = "session") -> list[SessionCheckpoint]:
    return [
        await sessions.asave(_made({"n": step, "text": f"{step}{_LONG}"}, step, session_id)) for step in range(count)
    ]


def _id(checkpoint: SessionCheckpoint) -> str:
    assert checkpoint.metadata.checkpoint_id is not None
    return checkpoint.metadata.checkpoint_id


async def a_checkpoint_is_loaded_as_it_was_saved(world: World) -> None:
    before = datetime.now(UTC)
    sessions, cold = world.interface(Sessions), world.interface(Sessions, world.cold)
    saved = await _steps(sessions, 3)
    for checkpoint in saved:
        assert await cold.aload("session", _id(checkpoint)) == checkpoint
        assert checkpoint.metadata.timestamp is not None
        assert before <= checkpoint.metadata.timestamp <= datetime.now(UTC)
        assert time_of_id(_id(checkpoint)) is not None
    assert await cold.aload("session") == await sessions.aload("session") == saved[-1]
    assert await values(world.saver, at("session")) == saved[-1].state
    when = datetime(2020, 2, 3, 4, 5, 6, 789, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    original = _made((1, {"b": b"bytes"}), 9, checkpoint_id="mine \0 \ud83d", timestamp=when)
    assert await sessions.asave(original) == original
    found = await cold.aload("session", "mine \0 \ud83d")
    assert found == original
    assert found is not None
    assert (type(found.state), found.metadata.timestamp) == (tuple, when)
    bare = await sessions.asave(SessionCheckpoint(SessionMetadata(session_id="bare"), None))
    assert await cold.aload("bare") == bare
    assert (bare.metadata.node_name, bare.metadata.step) == (None, None)


async def what_is_not_there_is_none(world: World) -> None:
    sessions = world.interface(Sessions)
    assert await sessions.aload("nobody") is None
    await _steps(sessions, 1)
    assert await sessions.aload("session", "no such id") is None
    assert await sessions.alist("nobody") == []
    assert await sessions.adelete("nobody") is False
    assert await sessions.adelete("session", "no such id") is False
    assert await sessions.adelete("nobody", "no such id") is False


async def a_listing_has_the_newest_first(world: World) -> None:
    sessions = world.interface(Sessions)
    saved = await _steps(sessions, 13)
    await _steps(sessions, 2, "other")
    for reader in (sessions, world.interface(Sessions, world.cold)):
        assert await reader.alist("session") == saved[:2:-1]
        assert await reader.alist("session", limit=100) == saved[::-1]
        assert await reader.alist("session", 1) == saved[-1:]
        assert await reader.alist("session", limit=0) == []


async def ids_of_any_kind_are_in_the_order_of_their_saves(world: World) -> None:
    sessions = world.interface(Sessions)
    names = ["z", "step-9", "step-10", None, "a", "", "step-2"]
    saved = []
    for step, name in enumerate(names):
        made = _made({"n": step}, step, checkpoint_id=name or None)
        saved.append(await sessions.asave(made))
    assert await sessions.alist("session") == saved[::-1]
    assert await sessions.aload("session") == saved[-1]
    assert [_id(each) for each in saved][:3] == ["z", "step-9", "step-10"]


async def a_known_id_is_replaced_at_its_place(world: World) -> None:
    sessions = world.interface(Sessions)
    saved = [
        await sessions.asave(_made({"n": step, "text": f"{step}{_LONG}"}, step, checkpoint_id=name))
        for step, name in enumerate(["step-8", "step-9", "step-10", "step-11"])
    ]
    for number in (2, 0, 3, 1):
        again = _made({"n": f"again {number}"}, 100 + number, checkpoint_id=_id(saved[number]))
        saved[number] = await world.interface(Sessions, world.another()).asave(again)
        for reader in (sessions, world.interface(Sessions, world.cold)):
            assert await reader.alist("session") == saved[::-1]
    parents = [item.parent_config and id_of(item.parent_config) for item in await listed(world.cold, at("session"))]
    assert parents == ["step-10", "step-9", "step-8", None]
    # If a checkpoint's parent was removed, only the checkpoint itself tells its place.
    assert await sessions.adelete("session", "step-9") is True
    saved[2] = await sessions.asave(_made("once more", 7, checkpoint_id="step-10"))
    del saved[1]
    assert await sessions.alist("session") == saved[::-1]
    assert (await sessions.astats()).checkpoints == 3


async def one_checkpoint_or_all_of_a_session_are_deleted(world: World) -> None:
    sessions = world.interface(Sessions)
    saved = await _steps(sessions, 5)
    for number in (4, 2, 0):
        assert await sessions.adelete("session", _id(saved[number])) is True
        assert await sessions.adelete("session", _id(saved[number])) is False
    assert await world.interface(Sessions, world.cold).alist("session") == [saved[3], saved[1]]
    follower = await sessions.asave(_made({"n": 5}, 5))
    assert await sessions.alist("session") == [follower, saved[3], saved[1]]
    assert await sessions.adelete("session") is True
    assert await sessions.alist("session") == []
    assert (await sessions.astats()).sessions == 0


async def clearing_all_leaves_other_threads_alone(world: World) -> None:
    sessions = world.interface(Sessions)
    for number in range(40):
        await sessions.asave(_made({"n": number}, session_id=f"session {number}"))
    await world.interface(States).asave("a state", {"a": 1})
    run = Run(world.saver, "graph")
    await run.step({"a": _LONG})
    await sessions.asave(_made({"a": 1}, session_id="graph"))  # into a thread that a graph began
    assert await sessions.astats() == SessionStats(40, 40, 1.0, (await sessions.astats()).size_bytes)
    assert await world.interface(Sessions, world.another()).aclear_all() == 40
    assert await sessions.aclear_all() == 0
    assert {thread.id for thread in (await world.saver.alist_threads()).threads} == {"a state", "graph"}
    assert await sessions.astats() == SessionStats(0, 0, 0.0, 0)
    assert len(await listed(world.cold, at("graph"))) == 2


async def stats_count_what_is_there(world: World) -> None:
    sessions = world.interface(Sessions)
    await _steps(sessions, 4, "one")
    await _steps(sessions, 2, "two")
    found = await sessions.astats()
    assert found[:3] == (2, 6, 3.0)
    infos = [await world.saver.aget_thread(name) for name in ("one", "two")]
    assert found.size_bytes == sum(info.size_bytes for info in infos if info)


async def two_who_save_at_once_lose_nothing(world: World) -> None:
    async def save(sessions: Sessions, who: str) -> None:
        for step in range(6):
            await sessions.asave(_made({"who": who, "text": _LONG}, step))

    both = [world.interface(Sessions, saver) for saver in (world.saver, world.another())]
    await asyncio.gather(*(save(sessions, who) for sessions, who in zip(both, "ab", strict=True)))
    found = (await world.interface(Sessions, world.cold).alist("session", limit=100))[::-1]
    for who in "ab":
        assert [each.metadata.step for each in found if each.state["who"] == who] == list(range(6))
    assert len(found) == 12


async def a_session_that_is_deleted_concurrently_starts_again(world: World) -> None:
    await _steps(world.interface(Sessions), 2)
    drop = Transaction(_drop, (world.saver._context.store,), writes=True)  # noqa: SLF001 - a program of the store's
    deleting = world.behind(partial(_DeletesFirst, delete=drop))
    saved = await world.interface(Sessions, deleting).asave(_made(3, 3))
    sessions = world.interface(Sessions, world.cold)
    assert await sessions.alist("session") == [saved]
    assert (await sessions.astats()).sessions == 1


async def a_checkpoint_that_is_deleted_while_it_is_replaced_is_saved_as_the_newest(world: World) -> None:
    sessions = world.interface(Sessions)
    saved = await _steps(sessions, 3)
    deleting = delete_checkpoint(world.another()._context, at("session", "", _id(saved[1])))  # noqa: SLF001 - one of its transactions
    behind = world.behind(partial(_DeletesFirst, delete=next(deleting)))
    again = await world.interface(Sessions, behind).asave(_made("again", 9, checkpoint_id=_id(saved[1])))
    reader = world.interface(Sessions, world.cold)
    assert await reader.alist("session") == [again, saved[2], saved[0]]
    assert await reader.aload("session") == again


async def what_is_handed_out_is_a_copy(world: World) -> None:
    sessions = world.interface(Sessions)
    state = {"items": [_LONG]}
    await sessions.asave(_made(state))
    state["items"].append("changed by its owner")
    for _ in range(2):
        for found in (await sessions.aload("session"), *(await sessions.alist("session"))):
            assert found is not None
            assert found.state == {"items": [_LONG]}
            found.state["items"].append("changed by a reader")


async def the_thread_of_a_graph_is_read_as_a_session(world: World) -> None:
    run = Run(world.saver, "graph")
    first = await run.step({"a": 1}, metadata={"source": "loop"})
    await run.step({"b": 2}, metadata={"node_name": 3, "step": "no number", "timestamp": "no time"})
    sessions = world.interface(Sessions)
    newest, oldest = await sessions.alist("graph")
    assert (newest.state, oldest.state) == ({"a": 1, "b": 2}, {"a": 1})
    assert oldest.metadata == SessionMetadata(
        checkpoint_id=id_of(first), session_id="graph", timestamp=datetime(2026, 1, 1, tzinfo=UTC), step=0
    )
    assert (newest.metadata.node_name, newest.metadata.step) == (None, None)
    assert await sessions.adelete("graph", id_of(first)) is True
    assert await sessions.adelete("graph") is True
    assert await world.saver.aget_thread("graph") is None


async def an_owner_sees_its_own_sessions_only(world: World) -> None:
    adas, eves = (world.interface(Sessions, world.saver.for_owner(name)) for name in ("ada", "eve"))
    saved = (await _steps(adas, 2, "adas"))[-1]
    await _steps(eves, 1, "eves")
    assert (await eves.aload("adas"), await eves.aload("adas", _id(saved)), await eves.alist("adas")) == (
        None,
        None,
        [],
    )
    assert (await eves.adelete("adas"), await eves.adelete("adas", _id(saved))) == (False, False)
    with pytest.raises(ThreadNotFoundError):
        await eves.asave(_made("planted", session_id="adas"))
    with pytest.raises(ThreadNotFoundError):
        await eves.asave(_made("planted", session_id="adas", checkpoint_id=_id(saved)))
    assert (await eves.astats())[:2] == (1, 1)
    assert await eves.aclear_all() == 1
    assert await adas.aload("adas") == saved


async def odd_arguments_are_refused_and_leave_nothing(world: World) -> None:
    sessions = world.interface(Sessions)
    odd: list[Any] = [
        lambda: sessions.asave({"metadata": {}, "state": {}}),  # type: ignore[arg-type]  # that is the point
        lambda: sessions.asave(_made(1, session_id="x" * 513)),
        lambda: sessions.asave(_made(1, checkpoint_id="x" * 257)),
        lambda: sessions.asave(_made(1), lease_token=0),
        lambda: sessions.aload("session", ""),
        lambda: sessions.aload(None),  # type: ignore[arg-type]  # that is the point
        lambda: sessions.alist("session", limit=-1),
        lambda: sessions.alist("session", limit=None),  # type: ignore[arg-type]  # that is the point
        lambda: sessions.adelete("session", ""),
    ]
    for call in odd:
        with pytest.raises(ConfigError):
            await call()
    with pytest.raises(SerializationError) as raised:
        await sessions.asave(_made({"items": [0, object()]}))
    assert raised.value.location == "state['items'] -> [1]"
    assert (await world.saver.alist_threads()).threads == []


async def a_save_respects_a_lease(world: World) -> None:
    sessions = world.interface(Sessions)
    lease = await taken(world.another(), "session")
    with pytest.raises(ThreadBusyError):
        await sessions.asave(_made(1))
    saved = await sessions.asave(_made(2), lease_token=lease.token)
    with pytest.raises(ThreadBusyError):
        await sessions.asave(_made(3, checkpoint_id=_id(saved)))
    assert await sessions.alist("session") == [saved]
