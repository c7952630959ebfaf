"""Plays operations whose answers are lost, and compares them with the same operations undisturbed."""

import itertools
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

from threadmark import Saver, ThreadmarkError, TransientStoreError
from unanswered.cutter import Cutter, Loss
from unanswered.operations import OPERATIONS, Operation, Place, clear, comparable, left_by

_numbers = itertools.count()

MAY_FAIL = {"a transaction": TransientStoreError}
"""The operations that are not tried again, and their documented error: then all of it was done, or nothing."""


class Result(NamedTuple):
    """The answer of an operation, and all that it left."""

    answer: str
    left: str
    answers: list[int]
    """The length of each of the server's answers."""
    was_lost: bool
    error: ThreadmarkError | None


class World(NamedTuple):
    """A server behind a proxy that may lose answers."""

    cutter: Cutter
    saver: Saver
    """Goes through the proxy."""
    observer: Saver
    """Does not."""
    api: Callable[[Any], Any]


def new_place(world: World) -> Place:
    """A thread that nothing has used, with a name of the same length as all others."""
    return Place(world.saver, world.api, f"<{next(_numbers):06d}>")


async def play(world: World, operation: Operation, loss: Loss | None) -> Result:
    """Play an operation on a new thread, and lose one of its answers, or none."""
    place = new_place(world)
    prepared = await operation.prepare(place)
    world.cutter.arm(loss)
    answer, error = "", None
    try:
        answer = comparable(await operation.call(place, prepared), place)
    except ThreadmarkError as raised:
        error = raised
    answers, was_lost = world.cutter.disarm()
    left = left_by(world.observer, place)
    clear(world.observer, place)
    return Result(answer, left, answers, was_lost, error)


class Losses:
    """Undisturbed results of an operation, with which others are compared."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name
        self._operation = OPERATIONS[name]

    async def begin(self) -> list[int]:
        """Play it undisturbed. Returns the length of each answer."""
        if self._name in MAY_FAIL:
            place = new_place(self._world)
            await self._operation.prepare(place)
            self._before = left_by(self._world.observer, place)
        await play(self._world, self._operation, None)  # opens connections
        self._whole = await play(self._world, self._operation, None)
        assert self._whole.error is None, self._whole.error
        return self._whole.answers

    async def lose(self, loss: Loss) -> tuple[bool, str]:
        """Play it, and lose one of its answers. Returns whether one was lost, and the objection."""
        found = await play(self._world, self._operation, loss)
        return found.was_lost, self._objection(found)

    def _objection(self, found: Result) -> str:
        if found.error is not None:
            expected = MAY_FAIL.get(self._name)
            if expected is None or not isinstance(found.error, expected):
                return f"raised {found.error!r}"
            if found.left not in (self._before, self._whole.left):
                return f"raised {found.error!r} and left {found.left}"
            return ""
        if found.answer != self._whole.answer:
            return f"answered {found.answer} in place of {self._whole.answer}"
        if found.left != self._whole.left:
            return f"left {found.left} in place of {self._whole.left}"
        return ""


class Counts(NamedTuple):
    """How often answers of an operation were lost, and the objections."""

    rounds: int
    lost: int
    answers: int
    """How many there are, undisturbed."""
    objections: list[str]


Choice = Callable[[list[int]], Iterable[Loss]]
"""Chooses the part to lose, of answers of these lengths."""


async def lose_each(world: World, name: str, choice: Choice) -> Counts:
    """Play an operation once for each loss of the choice."""
    losses = Losses(world, name)
    answers = await losses.begin()
    rounds = lost = 0
    objections: list[str] = []
    for loss in choice(answers):
        was_lost, objection = await losses.lose(loss)
        rounds += 1
        lost += was_lost
        if objection:
            place = f"{loss.spared} of {answers[loss.answer]} bytes of answer {loss.answer + 1} of {len(answers)}"
            objections.append(f"{name}, after {place}: {objection}")
    return Counts(rounds, lost, len(answers), objections)


def every(answers: list[int], *, small: int = 64, parts: int = 8) -> Iterable[Loss]:
    """Lose each answer: a small one at each byte, a large one whole, but for its last byte, and after parts of it."""
    for answer, length in enumerate(answers):
        places = range(length) if length <= small else {length - 1, *(length * part // parts for part in range(parts))}
        yield from (Loss(answer, spared) for spared in sorted(places))


def some(answers: list[int], *, random: Random, times: int = 1) -> Iterable[Loss]:
    """Lose the whole of the last answer, which tells of the commit, and so many times a part of any answer."""
    yield Loss(len(answers) - 1, 0)
    for _ in range(times):
        answer = random.randrange(len(answers))
        yield Loss(answer, random.randrange(answers[answer]))
