"""Playing a flow: running its transactions on the two databases, for both APIs, each with a deadline.

Callers must not wait for a database that hangs. So with a deadline, a blocking caller's transaction runs on another
thread, which is abandoned when the time is over; in an event loop its task is cancelled. A file does not hang: its
transactions run on the caller's own thread, because to hand each to another thread and back takes longer than a put.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from threadmark.program import Pause, aplay, play
from threadmark.replication.health import MissedDeadlineError
from threadmark.replication.steps import On, PairFlow, Side
from threadmark.runtime.workers import Workers

T = TypeVar("T")

_MOST_WORKERS = 64
"""Threads for each side. While so many transactions hang, the next one waits for a thread."""


def play_flow(flow: PairFlow[T]) -> T:
    """Run a flow on the caller's thread, without a deadline. Returns its result."""
    return play(flow, _answer)


class Player:
    """Runs flows of a pair whose transactions may take `deadline` seconds each; for None, as long as they like."""

    def __init__(self, sides: Sequence[Side], deadline: float | None) -> None:
        self._deadline = deadline
        self._workers = {side: Workers(_MOST_WORKERS, f"threadmark-{side.name}") for side in sides}
        self._tasks: set[asyncio.Future[Any]] = set()

    def play(self, flow: PairFlow[T]) -> T:
        """Run a flow. Returns its result."""
        return play(flow, self._answer)

    async def aplay(self, flow: PairFlow[T]) -> T:
        """Like `play`, for asyncio."""
        return await aplay(flow, self._aanswer)

    def end(self) -> None:
        """Let each thread end when it has finished its transaction."""
        for workers in self._workers.values():
            workers.end()

    def _answer(self, asked: On | Pause) -> Any:
        if self._deadline is None or isinstance(asked, Pause) or not asked.side.may_hang:
            return _answer(asked)
        side, transaction = asked
        answer = self._workers[side].submit(partial(side.driver.run, transaction))
        if not answer.wait(self._deadline):
            raise MissedDeadlineError(side, self._deadline)
        return answer.result()

    async def _aanswer(self, asked: On | Pause) -> Any:
        if self._deadline is None or isinstance(asked, Pause) or not asked.side.may_hang:
            return await _aanswer(asked)
        side, transaction = asked
        task = asyncio.ensure_future(side.driver.arun(transaction))
        try:
            await asyncio.wait([task], timeout=self._deadline)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task], timeout=self._deadline)
            self._leave(task)
            raise
        if not task.done():
            task.cancel()
            self._leave(task)
            raise MissedDeadlineError(side, self._deadline)
        return task.result()

    def _leave(self, task: asyncio.Future[Any]) -> None:
        """Keep a task that is not awaited. The event loop refers to it weakly, and logs an error that is not read."""
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()


def _answer(asked: On | Pause) -> Any:
    if isinstance(asked, Pause):
        return time.sleep(asked.seconds)
    return asked.side.driver.run(asked.transaction)


async def _aanswer(asked: On | Pause) -> Any:
    if isinstance(asked, Pause):
        return await asyncio.sleep(asked.seconds)
    return await asked.side.driver.arun(asked.transaction)
