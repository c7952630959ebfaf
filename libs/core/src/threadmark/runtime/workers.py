"""Threads that work for others, so that a signal cannot interrupt the work.

Python runs signal handlers in the main thread, between any two instructions, and a handler may raise: that of Ctrl-C
raises KeyboardInterrupt. It may strike inside anything that the standard library implements in Python (Condition,
Semaphore, Event, Future, a generator's context manager), whose lock then stays held for ever. So the main thread
shares with others only operations that the interpreter does in one step: a lock taken by `with`, a queue, an attribute.
Other threads are never interrupted.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from weakref import finalize

from threadmark.errors import ClosedError
from threadmark.runtime.processes import reset_after_fork


class _Main:
    """Which thread is the main one. To ask `threading` for it takes two calls more, and every transaction asks."""

    thread = threading.main_thread().ident

    @classmethod
    def _reset_after_fork(cls) -> None:
        """Reset the child of a fork: the thread that forked is the main one there."""
        cls.thread = threading.get_ident()


reset_after_fork(_Main)


def may_be_interrupted() -> bool:
    """Whether a signal's handler may raise an exception in this thread."""
    return threading.get_ident() == _Main.thread


class Answer:
    """The result of work that another thread does. One thread waits for it, and may be interrupted at any time."""

    __slots__ = ("_done", "_error", "_result", "_woken")

    def __init__(self) -> None:
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._woken = threading.Lock()
        self._woken.acquire()

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def cancelled(self) -> bool:
        """Return False: work for a thread is always finished."""
        return False

    def set_result(self, result: Any) -> None:
        """Wake the waiting thread with a result. May be called once."""
        self._result = result
        self._done = True
        self._woken.release()

    def set_exception(self, error: BaseException) -> None:
        """Tell the waiting thread that the work failed."""
        self._error = error
        self.set_result(None)

    def wait(self, timeout: float = -1) -> bool:
        """Wait until the work is done, or for `timeout` seconds. Returns whether it is done."""
        if not self._done:  # checked first, because an earlier wait may have been interrupted just after it ended
            self._woken.acquire(timeout=timeout)
        return self._done

    def result(self) -> Any:
        """Wait for the work and return its result, or raise its error. May be called once."""
        self.wait()
        error, self._error = self._error, None  # its traceback will refer to this frame
        if error is not None:
            raise error
        return self._result


WaitingCall = Answer | asyncio.Future[Any]
"""The result that a thread, or a task of an event loop, waits for."""


class Failed(NamedTuple):
    """The outcome of work that raised an error."""

    error: BaseException


def outcome_of(work: Callable[[], Any]) -> Any:
    """Do the work. Returns its result, or a `Failed` with its error."""
    try:
        return work()
    except BaseException as error:  # noqa: BLE001 - raised in the caller that awaits the result
        return Failed(error)


def settle(waiting: WaitingCall, outcome: Any) -> None:
    """Set the outcome. Call it in the thread that waits for it. Does nothing if no thread waits any more."""
    if waiting.done():
        return
    if isinstance(outcome, Failed):
        waiting.set_exception(outcome.error)
    else:
        waiting.set_result(outcome)


def tell(waiting: WaitingCall, outcome: Any) -> None:
    """Like `settle`, from any thread."""
    if isinstance(waiting, Answer):
        settle(waiting, outcome)
        return
    with suppress(RuntimeError):  # the loop was closed, and nothing waits in it any more
        waiting.get_loop().call_soon_threadsafe(settle, waiting, outcome)


def run_on_loop(work: Callable[[], Coroutine[Any, Any, Any]], loop: asyncio.AbstractEventLoop) -> Any:
    """Run the work as a task of an event loop that another thread runs. Returns its result."""
    answer = Answer()
    loop.call_soon_threadsafe(_begin_task, work, answer)
    return answer.result()


_tasks: set[asyncio.Task[Any]] = set()
"""The running tasks, which event loops refer to only weakly."""


def _begin_task(work: Callable[[], Coroutine[Any, Any, Any]], answer: Answer) -> None:
    task = asyncio.ensure_future(work())
    _tasks.add(task)
    task.add_done_callback(partial(_end_task, answer))


def _end_task(answer: Answer, task: asyncio.Task[Any]) -> None:
    _tasks.discard(task)
    settle(answer, outcome_of(task.result))


async def in_spite_of_cancelling(work: Awaitable[Any]) -> Any:
    """Wait for the work even if the caller is cancelled or interrupted. Returns its result."""
    doing = asyncio.ensure_future(work)
    interruption: BaseException | None = None
    while not doing.done():
        try:
            await asyncio.wait([doing])
        except BaseException as error:  # noqa: BLE001 - raised below
            interruption = error
    if interruption is not None:
        # The work's own error would be lost otherwise, because only this caller asks for it.
        raise interruption from (None if doing.cancelled() else doing.exception())
    return doing.result()


class _Job(NamedTuple):
    work: Callable[[], Any]
    waiting: WaitingCall

    def do(self) -> None:
        if not self.waiting.cancelled():
            tell(self.waiting, outcome_of(self.work))


class Workers:
    """Up to `most` threads, started when needed, that do work in the order in which it is submitted."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._begin()
        reset_after_fork(self)

    def run(self, work: Callable[[], Any]) -> Any:
        """Have one of the threads do the work, and wait for it. Returns its result."""
        return self.submit(work).result()

    def submit(self, work: Callable[[], Any]) -> Answer:
        """Have one of the threads do the work. Returns an `Answer` to wait for."""
        answer = Answer()
        self._pool.give(_Job(work, answer))
        return answer

    def asubmit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Like `submit`, for asyncio. The work is not begun if the future is cancelled before."""
        future = asyncio.get_running_loop().create_future()
        self._pool.give(_Job(work, future))
        return future

    def end(self) -> None:
        """Accept no more work. The threads end when they have finished their work."""
        self._pool.end()

    def close(self) -> None:
        """Accept no more work, and wait until the threads have ended. It may be called again."""
        self.end()
        for thread in list(self._pool.threads):
            thread.join()

    def _reset_after_fork(self) -> None:
        """Forget the threads and their jobs in the child of a fork, which has none of them."""
        self._end.detach()
        self._begin()

    def _begin(self) -> None:
        self._pool = _Pool(self._most, self._name)
        self._end = finalize(self, self._pool.end)  # the threads do not keep this object alive


class _Pool:
    """The threads, and the state that they share."""

    def __init__(self, most: int, name: str) -> None:
        self.threads: list[threading.Thread] = []
        self._most = most
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._changing = threading.Lock()
        self._free = 0
        """The number of threads without work, minus the number of jobs that wait for one.

        An interrupt may leave it too low, so that a thread is started that was not needed, but never too high.
        """
        self._ended = False

    def give(self, job: _Job) -> None:
        with self._changing:
            if self._ended:
                raise ClosedError
            self._free -= 1
            self._jobs.put(job)
            lacking = self._free < 0 and len(self.threads) < self._most
        if lacking:
            # The thread counts itself when it runs: if starting it is interrupted, the next job starts another.
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def end(self) -> None:
        with self._changing:
            if not self._ended:
                self._jobs.put(None)
                self._ended = True

    def _work(self) -> None:
        with self._changing:
            if len(self.threads) >= self._most:
                return
            self.threads.append(threading.current_thread())
        while self._do_next():
            pass
        self._jobs.put(None)  # for the next thread

    def _do_next(self) -> bool:
        with self._changing:
            self._free += 1
        job = self._jobs.get()
        if job is not None:
            job.do()
        return job is not None
