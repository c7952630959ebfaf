"""What the writer has to do: handed over by threads and by event loops, answered to each in its own way.

What the tasks of one event loop ask for in one turn of it is handed over together, and answered together. Else the
writer would begin with the first of them while the others still encode, and the two threads would take the
interpreter from each other at every statement; and every answer would wake the loop.
"""

import asyncio
import queue
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

from threadmark.errors import ClosedError
from threadmark.program import Transaction

_BATCH = 64


class Job(NamedTuple):
    """A transaction, and where its result is waited for."""

    transaction: Transaction
    future: "Future[Any] | asyncio.Future[Any]"

    def begin(self) -> bool:
        """Whether it is to be done; from now on it cannot be cancelled any more."""
        if isinstance(self.future, Future):
            return self.future.set_running_or_notify_cancel()
        return not self.future.cancelled()


class Failed(NamedTuple):
    """The outcome of a job that came to nothing."""

    error: BaseException


class Jobs:
    """The writer's queue."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
        self._turns: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        self._closing = threading.Lock()
        self._closed = False
        self._taken = False

    @property
    def idle(self) -> bool:
        """Whether everything that was handed over has been done."""
        return not self._taken and self._queue.empty()

    def expect_open(self) -> None:
        """Raise ClosedError once no more is taken."""
        if self._closed:
            raise ClosedError("this saver was closed; open a new one")

    def submit(self, transaction: Transaction) -> Future[Any]:
        """The result to come, once it is committed."""
        future: Future[Any] = Future()
        self._hand_over([Job(transaction, future)])
        return future

    def asubmit(self, transaction: Transaction) -> asyncio.Future[Any]:
        """Like `submit`, for asyncio."""
        loop = asyncio.get_running_loop()
        turn = self._turns.get(loop)
        if turn is None:
            turn = self._turns[loop] = []
            loop.call_soon(self._end_turn, loop)
        future = loop.create_future()
        turn.append(Job(transaction, future))
        return future

    def close(self) -> None:
        """Take no more; an empty batch is the last one."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put([])

    def next_batch(self) -> list[Job]:
        """What is waiting, as soon as anything is; empty once everything is done and no more will come."""
        self._taken = False
        batch = self._queue.get()
        self._taken = True
        while 0 < len(batch) < _BATCH:
            try:
                more = self._queue.get_nowait()
            except queue.Empty:
                break
            if not more:
                self._queue.put(more)
                break
            batch = batch + more
        return batch

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        turn = self._turns.pop(loop)
        for start in range(0, len(turn), _BATCH):
            jobs = turn[start : start + _BATCH]
            try:
                self._hand_over(jobs)
            except ClosedError as error:  # those before are still done
                _settle_all((job.future, Failed(error)) for job in jobs)

    def _hand_over(self, jobs: list[Job]) -> None:
        with self._closing:
            self.expect_open()
            self._queue.put(jobs)


def answer(outcomes: Iterable[tuple[Job, Any]]) -> None:
    """Tell everybody who waits; each event loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for job, outcome in outcomes:
        if isinstance(job.future, Future):
            _settle(job.future, outcome)
        else:
            loops.setdefault(job.future.get_loop(), []).append((job.future, outcome))
    for loop, settled in loops.items():
        try:
            loop.call_soon_threadsafe(_settle_all, settled)
        except RuntimeError:
            continue  # the loop was closed, and nobody waits in it any more


def _settle_all(outcomes: "Iterable[tuple[Future[Any] | asyncio.Future[Any], Any]]") -> None:
    for future, outcome in outcomes:
        if not future.done():
            _settle(future, outcome)


def _settle(future: "Future[Any] | asyncio.Future[Any]", outcome: Any) -> None:
    if isinstance(outcome, Failed):
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome)
