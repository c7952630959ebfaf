"""A driver that dies after any step of any program: the database must then have the old state or the new one.

Each operation is run once for every step it has, each time on another thread id. The driver dies by an exception inside
the program, at a point where a connection may be lost or a task killed. Afterwards another saver and the one whose
driver died must see the same state, old or new, and a repetition of the operation must give the new one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from threadmark.model import CheckpointTuple, PruneReport
from threadmark.program import Driver, Program, Transaction
from threadmark.saver import Saver
from threadmark_conformance.backend import Backend, World, in_world
from threadmark_conformance.driver_wrapper import DriverWrapper
from threadmark_conformance.engine import Run, at, checkpoint, early_id, listed

_LONG = "a value that is stored in segments of its own. " * 8

_STEPS_AT_MOST = 200


class DeathError(Exception):
    """Raised when the driver dies."""


class Mortal(DriverWrapper):
    """A driver that dies after a number of steps, or after a commit before it answers."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.steps_left: int | None = None
        self.answers_left: int | None = None

    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any], Any, Any]:
        result = yield transaction.through(self._until_death)
        self._answer_or_die()
        return result

    def _until_death(self, program: Callable[[], Program[Any]]) -> Program[Any]:
        steps = program()
        try:
            step = next(steps)
            while True:
                self._count()
                step = steps.send((yield step))
        except StopIteration as stop:
            # It may also die between the last step and the commit.
            self._count()
            return stop.value
        finally:
            steps.close()

    def _count(self) -> None:
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise DeathError

    def _answer_or_die(self) -> None:
        if self.answers_left is not None:
            self.answers_left -= 1
            if self.answers_left < 0:
                raise DeathError


State = dict[str, list[CheckpointTuple]]
"""Everything stored, by thread."""


class Operation(NamedTuple):
    """Something that a saver does to the threads whose names start with a prefix."""

    prepare: Callable[[Saver, str], Awaitable[None]]
    act: Callable[[Saver, str], Awaitable[Any]]


async def _history(saver: Saver, name: str) -> None:
    run = Run(saver, name)
    for number in range(3):
        await run.step({"a": f"{number}{_LONG}", "n": number}, metadata={"run_id": f"{name} {number % 2}"})
        await run.write(("a", f"write {number}{_LONG}"), ("__interrupt__", number))


async def _two_histories(saver: Saver, name: str) -> None:
    await _history(saver, name)
    await _history(saver, name + " other")


async def _nothing(saver: Saver, name: str) -> None:
    assert await saver.aget_tuple(at(name)) is None


async def _put_first(saver: Saver, name: str) -> None:
    await saver.aput(at(name), checkpoint({"a": _LONG}, checkpoint_id=early_id(1)), {"x": 1}, {"a": 1})


async def _put_next(saver: Saver, name: str) -> None:
    parent = await saver.aget_tuple(at(name))
    assert parent is not None
    made = checkpoint({"a": f"9{_LONG}", "b": _LONG + name, "n": 2}, {"a": 9, "b": 1, "n": 3}, checkpoint_id="9")
    await saver.aput(parent.config, made, {"x": 2}, {"a": 9, "b": 1})


async def _put_again(saver: Saver, name: str) -> None:
    newest = await saver.aget_tuple(at(name))
    assert newest is not None
    await saver.aput(newest.parent_config or at(name), newest.checkpoint, {"again": _LONG}, {})


async def _put_writes(saver: Saver, name: str) -> None:
    newest = await saver.aget_tuple(at(name))
    assert newest is not None
    writes = [("a", _LONG + name), ("__interrupt__", _LONG), ("b", 1), ("__error__", "x" * 200)]
    await saver.aput_writes(newest.config, writes, "another task", "path")


async def _put_writes_again(saver: Saver, name: str) -> None:
    newest = await saver.aget_tuple(at(name))
    assert newest is not None
    writes = [("a", "not the first"), ("__interrupt__", _LONG), ("b", _LONG + name), ("__error__", "x" * 200)]
    await saver.aput_writes(newest.config, writes, "task", "path")


async def _put_writes_first(saver: Saver, name: str) -> None:
    await saver.aput_writes(at(name, "", early_id(2)), [("a", _LONG), ("b", _LONG * 2)], "task")
    await saver.aput(at(name), checkpoint(checkpoint_id=early_id(2)), {}, {})


async def _delete(saver: Saver, name: str) -> None:
    await saver.adelete_thread(name)


async def _delete_checkpoint(saver: Saver, name: str) -> None:
    for item in await listed(saver, at(name), filter={"step": 0}):
        await saver.adelete_checkpoint(item.config)


async def _delete_runs(saver: Saver, name: str) -> None:
    await saver.adelete_for_runs([f"{name} 0", f"{name} other 1"])


async def _prune(saver: Saver, name: str) -> None:
    assert isinstance(await saver.aprune([name, name + " other"]), PruneReport)


async def _prune_all(saver: Saver, name: str) -> None:
    await saver.aprune([name, name + " other"], strategy="delete")


async def _copy(saver: Saver, name: str) -> None:
    await saver.acopy_thread(name, name + " other")


async def _copy_over(saver: Saver, name: str) -> None:
    await saver.acopy_thread(name, name + " other")


async def _fork(saver: Saver, name: str) -> None:
    newest = await saver.aget_tuple(at(name))
    assert newest is not None
    await saver.afork(newest.parent_config or at(name), {"n": _LONG * 2}, as_thread=name + " other")


OPERATIONS = {
    "put into a new thread": Operation(_nothing, _put_first),
    "put a child": Operation(_history, _put_next),
    "put an id again": Operation(_history, _put_again),
    "put writes": Operation(_history, _put_writes),
    "put writes of a task again": Operation(_history, _put_writes_again),
    "put writes, then their checkpoint": Operation(_nothing, _put_writes_first),
    "delete a thread": Operation(_history, _delete),
    "delete a checkpoint": Operation(_history, _delete_checkpoint),
    "delete runs": Operation(_two_histories, _delete_runs),
    "prune": Operation(_two_histories, _prune),
    "prune everything": Operation(_two_histories, _prune_all),
    "copy a thread": Operation(_history, _copy),
    "fork to a new thread": Operation(_history, _fork),
    "copy over a thread": Operation(_two_histories, _copy_over),
}
"""Every operation that writes."""


def check_crash(
    operation: Operation, backend: Backend, api: str, folder: Path, *, first: int = 0, stride: int = 1
) -> None:
    """Let the driver die at every step of an operation (every `stride`-th from `first` on) and before every answer."""
    with backend(folder) as open_saver:
        asyncio.run(in_world(partial(_die_everywhere, operation, first, stride), open_saver, api))


async def _die_everywhere(operation: Operation, first: int, stride: int, world: World) -> None:
    mortals: list[Mortal] = []

    def mortal(driver: Driver) -> Driver:
        mortals.append(Mortal(driver))
        return mortals[-1]

    saver = world.behind(mortal)
    for moment, counts in {
        "steps_left": range(first, _STEPS_AT_MOST, stride),
        "answers_left": range(_STEPS_AT_MOST),
    }.items():
        for count in counts:
            name = f"{moment} {count}"
            await operation.prepare(saver, name)
            setattr(mortals[0], moment, count)
            before = await _state(world.saver, name)
            died = await _dies(operation.act(saver, name))
            setattr(mortals[0], moment, None)
            if not died:
                break
            met = await _state(world.cold, name)
            assert await _state(saver, name) == met, "the saver whose driver died sees another state"
            if _repeatable(operation, before, met):
                await operation.act(saver, name)
            _assert_whole(before, met, await _state(world.cold, name), name)
            for thread in before:
                await world.assert_sound(thread)
        else:
            raise AssertionError(f"the operation has more than {_STEPS_AT_MOST} steps")
        assert count > counts[0], "the driver was asked hardly anything"


def _repeatable(operation: Operation, before: State, met: State) -> bool:
    """Return whether a repetition means the same. An operation that reads its own thread may find its own result."""
    return operation.act not in (_put_next, _put_writes, _put_again, _fork) or met == before


def _assert_whole(before: State, met: State, after: State, name: str) -> None:
    for thread, found in met.items():
        assert found in (before[thread], after[thread]), f"{thread!r} ({name}) is neither as before nor as after"


async def _dies(act: Awaitable[Any]) -> bool:
    try:
        await act
    except DeathError:
        return True
    return False


async def _state(saver: Saver, name: str) -> State:
    return {thread: await listed(saver, at(thread)) for thread in (name, name + " other")}
