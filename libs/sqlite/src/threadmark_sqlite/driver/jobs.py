"""The writer's queue: threads and event loops hand over transactions and get their results in their own ways.

All requests that the tasks of an event loop make in one turn are handed over and answered together. Otherwise the
writer would begin with the first one while the other tasks still encode, the two threads would take the interpreter
from each other at every statement, and every answer would wake the loop.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from threadmark.backends import Answer, ClosedError, Failed, Program, Transaction, WaitingCall, settle

BATCH = 64
"""The most transactions of one commit."""


class Job(NamedTuple):
    """A transaction, and the place to wait for its result."""

    transaction: Transaction[Any]
    waiting: WaitingCall


class _Awaited(asyncio.Future[Any]):
    """The result of a transaction that can be withdrawn until it begins. After that, a cancelled task waits for it.

    Otherwise the task could go on and read, on another connection, before the commit.
    """

    _begun = False

    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._decided = threading.Lock()
        """Taken once, by the thread that begins the transaction or by the task that withdraws it."""

    def begin(self) -> bool:
        """Return whether the transaction may begin, or begin again. Called by the writer's thread."""
        if self._decided.acquire(blocking=False):
            self._begun = True
        return self._begun

    def cancel(self, msg: Any = None) -> bool:
        """Withdraw the transaction. Returns False if it has begun: then asyncio cancels the task after it."""
        return self._decided.acquire(blocking=False) and super().cancel(msg)


def _unless_withdrawn(begin: Callable[[], Program[Any]], awaited: _Awaited) -> Program[Any]:
    """Begin a program, unless the task that asked for it was cancelled while it waited for the file's lock."""
    return begin() if awaited.begin() else _nothing()


def _nothing() -> Program[None]:
    yield from ()


class Jobs:
    """The writer's queue."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
        self._turns: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        self._closing = threading.RLock()  # a garbage collection in the middle of `_hand_over` may call `close`
        self._closed = False
        self._taken = False

    @property
    def idle(self) -> bool:
        """Whether everything that was submitted has been done."""
        return not self._taken and self._queue.empty()

    def expect_open(self) -> None:
        """Raise ClosedError after `close`."""
        if self._closed:
            raise ClosedError

    def submit(self, transaction: Transaction[Any]) -> Answer:
        """Queue a transaction. Returns the place where the thread can wait for its result."""
        answer = Answer()
        self._hand_over([Job(transaction, answer)])
        return answer

    def asubmit(self, transaction: Transaction[Any]) -> asyncio.Future[Any]:
        """Like `submit`, for asyncio."""
        loop = asyncio.get_running_loop()
        future = _Awaited(loop=loop)
        self._turns.setdefault(loop, []).append(Job(transaction.through(_unless_withdrawn, future), future))
        # Each task asks for the hand-over. If only the first did and an interrupt lost its call, none would be handed
        # over.
        loop.call_soon(self._end_turn, loop)
        return future

    def close(self) -> None:
        """Accept no more jobs. An empty batch marks the end."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put([])

    def next_batch(self) -> list[Job]:
        """Wait for jobs and return them. Returns an empty list after `close`, when all are done."""
        self._taken = False
        batch = self._queue.get()
        if not batch:
            self._queue.put(batch)  # the next call finds the end, too
            return batch
        self._taken = True
        while len(batch) < BATCH:
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
        turn = self._turns.pop(loop, [])
        try:
            while turn:
                self._hand_over(turn[:BATCH])
                del turn[:BATCH]  # these are done, whatever happens to the rest
        except BaseException as error:
            for job in turn:
                settle(job.waiting, Failed(error))
            if not isinstance(error, ClosedError):
                raise

    def _hand_over(self, jobs: list[Job]) -> None:
        with self._closing:
            self.expect_open()
            self._queue.put(jobs)


def answer(outcomes: Iterable[tuple[Job, Any]]) -> None:
    """Deliver the outcomes. Each event loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[WaitingCall, Any]]] = {}
    for job, outcome in outcomes:
        if isinstance(job.waiting, Answer):
            settle(job.waiting, outcome)
        else:
            loops.setdefault(job.waiting.get_loop(), []).append((job.waiting, outcome))
    for loop, settled in loops.items():
        try:
            loop.call_soon_threadsafe(_settle_all, settled)
        except RuntimeError:
            continue  # the loop was closed, so no task waits in it


def _settle_all(outcomes: Iterable[tuple[WaitingCall, Any]]) -> None:
    for waiting, outcome in outcomes:
        settle(waiting, outcome)


def lacked_room(outcome: Any) -> bool:
    """Return whether a transaction failed because the stack was full."""
    return isinstance(outcome, Failed) and isinstance(outcome.error, RecursionError)
