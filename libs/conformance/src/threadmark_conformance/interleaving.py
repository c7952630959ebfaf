"""Two operations on one thread that meet in every order of their transactions.

An operation may have several transactions, and computes between them from its reads. Each meeting is run once
for every order. In each order no value may be wrong, no write may be lost, and only documented errors may be raised.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from threadmark.errors import ThreadDeletedError
from threadmark.model import CheckpointTuple
from threadmark.program import Driver
from threadmark.saver import Saver
from threadmark_conformance.backend import Backend, World, in_world
from threadmark_conformance.engine import Run, at, checkpoint, id_of, listed
from threadmark_conformance.turns import Patient, Turns

_LONG = "a value that is stored in segments of its own. " * 8

_ORDERS_AT_MOST = 400


def _own_text(number: int) -> str:
    """Return a text that shares nothing with that of another number: only its own step's segments have it."""
    return "".join(sha256(f"{number} {part}".encode()).hexdigest() for part in range(40))


def _values(number: int) -> dict[str, Any]:
    return {"a": [number, _own_text(number)], "kept": _LONG, "n": number}


class _Scene:
    """A thread with a short history, and the operations that two savers which know it may run on it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.newest: dict[str, Any] = {}

    async def prepare(self, saver: Saver) -> None:
        run = Run(saver, self.name)
        for number in range(3):
            await run.step(_values(number), metadata={"run_id": "r"})
            await run.write(("a", f"early write {number}{_LONG}"), task="early")
        self.newest = run.config

    async def remember(self, saver: Saver) -> None:
        """Let a saver read every checkpoint, and so remember values that others may remove."""
        for item in await listed(saver, at(self.name)):
            await saver.aget_tuple(item.config)

    def child(self, number: int) -> Any:
        values = {**_values(2), "a": [f"child {number}", _own_text(0)]}
        return checkpoint(values, {"a": 10 + number, "kept": 1, "n": 3}, checkpoint_id=f"9{number}")

    def put(self, saver: Saver, number: int) -> Awaitable[Any]:
        return saver.aput(self.newest, self.child(number), {"child": number}, {"a": 10 + number})

    def put_again(self, saver: Saver, number: int) -> Awaitable[Any]:
        return saver.aput(at(self.name), self.child(number), {"child": number}, self.child(number)["channel_versions"])

    def write(self, saver: Saver, number: int) -> Awaitable[Any]:
        writes = [("a", [number, _own_text(0)]), ("__interrupt__", [number, _LONG])]
        return saver.aput_writes(self.newest, writes, f"task {number}")

    def write_same(self, saver: Saver, number: int) -> Awaitable[Any]:
        return saver.aput_writes(self.newest, [("a", [number, _LONG]), ("b", [number, _LONG])], "task")

    def write_again(self, saver: Saver, number: int) -> Awaitable[Any]:
        """Write to a channel that the task has written to: what this leaves behind is so much that it is swept."""
        return saver.aput_writes(self.newest, [("a", Random(number).randbytes(70_000))], "early")

    def delete(self, saver: Saver, _: int) -> Awaitable[Any]:
        return saver.adelete_thread(self.name)

    def delete_newest(self, saver: Saver, _: int) -> Awaitable[Any]:
        return saver.adelete_checkpoint(self.newest)

    def delete_runs(self, saver: Saver, _: int) -> Awaitable[Any]:
        return saver.adelete_for_runs(["r"])

    def prune(self, saver: Saver, _: int) -> Awaitable[Any]:
        return saver.aprune([self.name])

    def copy(self, saver: Saver, number: int) -> Awaitable[Any]:
        return saver.acopy_thread(self.name, f"{self.name} copy {number}")

    def get(self, saver: Saver, _: int) -> Awaitable[Any]:
        return saver.aget_tuple(at(self.name))

    def list_all(self, saver: Saver, _: int) -> Awaitable[Any]:
        return listed(saver, at(self.name))

    def assert_item(self, item: CheckpointTuple) -> None:
        """Fail unless the checkpoint reads as it was put, and each task's writes are complete."""
        if "child" in item.metadata:
            assert item.checkpoint == self.child(item.metadata["child"])
        else:
            number = item.metadata["step"]
            assert item.checkpoint["channel_values"] == _values(number)
        by_task: dict[str, dict[str, Any]] = {}
        for task, channel, value in item.pending_writes or []:
            by_task.setdefault(task, {})[channel] = value
        for task, written in by_task.items():
            if task == "task":
                number = written["a"][0]
                assert written == {"a": [number, _LONG], "b": [number, _LONG]}, "two batches are mixed"
            elif task == "early":
                assert written == {"a": f"early write {item.metadata['step']}{_LONG}"}
            else:
                number = int(task.removeprefix("task "))
                assert written == {"a": [number, _own_text(0)], "__interrupt__": [number, _LONG]}


class Meeting(NamedTuple):
    """Two operations, named by methods of the scene."""

    one: str
    other: str

    def __str__(self) -> str:
        return f"{self.one} meets {self.other}"


MEETINGS = tuple(
    Meeting(one, other)
    for one, others in {
        "put": ("put", "write", "delete", "delete_newest", "delete_runs", "prune", "copy", "get", "list_all"),
        "put_again": ("put_again", "delete", "prune"),
        "write": ("write", "delete", "delete_runs", "prune", "copy", "get", "list_all"),
        "write_same": ("write_same",),
        "write_again": ("prune",),
        "prune": ("prune", "delete", "copy", "get", "list_all", "delete_runs"),
        "copy": ("copy", "delete"),
        "delete": ("delete", "get", "list_all", "delete_runs"),
    }.items()
    for other in others
)
"""The operations that meet."""


def check_interleavings(
    meeting: Meeting, backend: Backend, api: str, folder: Path, *, warm: Sequence[bool] = (False, True)
) -> None:
    """Run a meeting in every order, with savers that do not remember the thread and with savers that do."""
    with backend(folder) as open_saver:
        asyncio.run(in_world(partial(_meet_in_every_order, meeting, warm), open_saver, api))


async def _meet_in_every_order(meeting: Meeting, warmths: Sequence[bool], world: World) -> None:
    for warm in warmths:
        script: list[int] | None = []
        for count in range(_ORDERS_AT_MOST):
            assert script is not None
            made = await _meet(meeting, world, script, f"thread {warm} {count}", warm=warm)
            script = _next_script(made)
            if script is None:
                break
        else:
            raise AssertionError(f"{meeting} has more than {_ORDERS_AT_MOST} orders")


def _next_script(made: Sequence[tuple[int, bool]]) -> list[int] | None:
    """Return the script of the next order; None after the last."""
    for position in range(len(made) - 1, -1, -1):
        who, free = made[position]
        if free and who == 0:
            return [each for each, _ in made[:position]] + [1]
    return None


async def _meet(meeting: Meeting, world: World, script: list[int], name: str, *, warm: bool) -> list[tuple[int, bool]]:
    turns, scene = Turns(script), _Scene(name)
    await scene.prepare(world.saver)
    patients: list[Patient] = []
    savers = [world.behind(partial(_patient, patients)) for _ in meeting]
    for who, (saver, patient) in enumerate(zip(savers, patients, strict=True)):
        if warm:
            await scene.remember(saver)
        patient.take_turns(turns, who)
    outcomes: list[Any] = [None, None]

    async def one(who: int, act: Callable[[Saver, int], Awaitable[Any]]) -> None:
        try:
            outcomes[who] = await act(savers[who], who)
        except ThreadDeletedError as error:
            outcomes[who] = error
        finally:
            turns.leave(who)

    await asyncio.gather(*(one(who, getattr(scene, action)) for who, action in enumerate(meeting)))
    await _assert_sound(meeting, scene, world.cold, outcomes)
    return turns.made


def _patient(patients: list[Patient], driver: Driver) -> Driver:
    patients.append(Patient(driver))
    return patients[-1]


async def _assert_sound(meeting: Meeting, scene: _Scene, saver: Saver, outcomes: Sequence[Any]) -> None:
    found = await listed(saver, at(scene.name))
    present = {item.checkpoint["id"]: item for item in found}
    for item in found:
        scene.assert_item(item)
    for who, (action, other) in enumerate((meeting, meeting[::-1])):
        outcome = outcomes[who]
        if isinstance(outcome, ThreadDeletedError):
            assert action in _CONTINUING, f"{action} failed: {outcome}"
            assert other in _REMOVING, f"{action} failed during {other}: {outcome}"
        elif action in ("put", "put_again") and other != "delete":
            assert f"9{who}" in present, f"{action} was acknowledged and is lost"
        elif action == "write" and other not in _REMOVING:
            written = present[id_of(scene.newest)].pending_writes or []
            assert f"task {who}" in {task for task, _, _ in written}, "a write was acknowledged and is lost"
        elif action in ("get", "list_all"):
            _assert_read(scene, outcome, may_be_empty=other in _REMOVING)
        elif action == "copy":
            _assert_read(scene, await listed(saver, at(f"{scene.name} copy {who}")), may_be_empty=other in _REMOVING)
    if "delete" in meeting:
        assert set(present) <= ({"90", "91"} if "put_again" in meeting else set()), "a deleted thread is back"


_REMOVING = {"delete", "delete_runs"}
_CONTINUING = {"put", "write"}


def _assert_read(scene: _Scene, outcome: Any, *, may_be_empty: bool) -> None:
    items = outcome if isinstance(outcome, list) else [outcome] if outcome is not None else []
    assert items or may_be_empty, "what was there was not found"
    for item in items:
        scene.assert_item(item)
