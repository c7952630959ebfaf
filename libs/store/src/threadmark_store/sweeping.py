"""The sweeper of a store: it removes expired items again and again, on a daemon thread or as a task of an event loop.

It holds the store by a weak reference, so a store that you forget to close can go, and the sweeper with it. It also
ends with the interpreter, and with its event loop, and prints nothing then.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakMethod, finalize

from threadmark.backends import ClosedError, Driver, Flow, Operation
from threadmark.program import aplay, play
from threadmark.runtime.processes import close_at_exit, reset_after_fork, was_closed
from threadmark_store.log import log

Ends = Callable[[], bool]
"""Whether a sweep should end before its next transaction."""
Sweep = Callable[[Ends], Operation[int]]
Stopping = SimpleQueue[None]
"""Something in it ends a thread. Unlike an Event, it can be set while memory is reclaimed, at any moment."""

_PAUSE = object()
"""A request to wait for the next sweep. Its answer is whether to end instead."""


class Sweeper:
    """Runs the method `sweep` of a store every so many seconds."""

    def __init__(self, driver: Driver, sweep: Sweep) -> None:
        self._driver = driver
        self._sweep = WeakMethod(sweep)
        self._changing = threading.Lock()
        self._stopping, self._waking = Stopping(), asyncio.Event()
        self._thread: threading.Thread | None = None
        self._ended: Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._signalled: tuple[object, object] = None, None
        """The future and the task that end soon: another start begins another one."""
        reset_after_fork(self)
        finalize(sweep.__self__, self._signal).atexit = False  # type: ignore[attr-defined]  # it is a bound method

    def start(self, seconds: float) -> "Future[None]":
        """Start it on a thread, unless one runs. The future is done when it has ended, and cancelling that ends it."""
        with self._changing:
            if self._ended is None or self._ended.done() or self._ended is self._signalled[0]:
                stopping, ended = Stopping(), Future[None]()
                ended.add_done_callback(lambda _: stopping.put(None))
                arguments = self._driver, self._sweep, stopping, seconds, ended
                thread = threading.Thread(target=_repeat, args=arguments, name="threadmark-store-sweeper", daemon=True)
                thread.start()
                self._stopping, self._ended, self._thread = stopping, ended, thread
                close_at_exit(self)
            return self._ended

    def stop(self, timeout: float | None = None) -> bool:
        """End it, after the transaction that runs. Returns whether the thread has ended; a task ends soon after."""
        self._signal()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
            if thread.is_alive():
                return False
        was_closed(self)
        return True

    def close(self) -> None:
        """Like `stop`."""
        self.stop()

    def astart(self, seconds: float) -> "asyncio.Task[None]":
        """Start it as a task of the running event loop, unless one runs. Cancelling the task ends it."""
        task = self._task
        if (
            task is None
            or task.done()
            or task.get_loop().is_closed()
            or task.cancelling()
            or task is self._signalled[1]
        ):
            self._waking = asyncio.Event()
            repeating = _arepeat(self._driver, self._sweep, self._waking, seconds)
            self._task = asyncio.get_running_loop().create_task(repeating, name="threadmark-store-sweeper")
            # A loop that is closed without cancelling its tasks would complain; nothing is lost with this one.
            setattr(self._task, "_log_destroy_pending", False)  # noqa: B010 - the type stubs leave it out
            return self._task
        return task

    async def astop(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as `asyncio.wait` has it
        """Like `stop`, and waits for a task as well, if it is one of this event loop."""
        task, thread = self._task, self._thread
        if thread is not None and thread.is_alive():
            stopped = await asyncio.to_thread(self.stop, timeout)
        else:
            stopped = self.stop()
        if task is None or task.get_loop() is not asyncio.get_running_loop() or task is asyncio.current_task():
            return stopped
        await asyncio.wait([task], timeout=timeout)
        return stopped and task.done()

    def _signal(self) -> None:
        self._signalled = self._ended, self._task
        self._stopping.put(None)
        if self._task is not None and not self._task.done():
            with suppress(RuntimeError):  # its event loop is closed, and it is gone
                self._task.get_loop().call_soon_threadsafe(self._waking.set)

    def _reset_after_fork(self) -> None:
        """In the child of a fork, which has neither the thread nor the event loop."""
        self._changing = threading.Lock()
        self._thread = self._ended = self._task = None


def _repeat(
    driver: Driver, sweep: WeakMethod[Sweep], stopping: Stopping, seconds: float, ended: "Future[None]"
) -> None:
    def answer(asked: Any) -> Any:
        if asked is not _PAUSE:
            return driver.run(asked)
        with suppress(Empty):
            stopping.get(timeout=min(seconds, threading.TIMEOUT_MAX))
            return True
        return False

    play(_sweeps(sweep, lambda: not stopping.empty()), answer)
    if ended.set_running_or_notify_cancel():
        ended.set_result(None)


async def _arepeat(driver: Driver, sweep: WeakMethod[Sweep], waking: asyncio.Event, seconds: float) -> None:
    async def answer(asked: Any) -> Any:
        if asked is not _PAUSE:
            return await driver.arun(asked)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # no further task
                await waking.wait()
        return waking.is_set()

    with suppress(asyncio.CancelledError):  # awaiting a task that was cancelled is no error, as with LangGraph's
        await aplay(_sweeps(sweep, waking.is_set), answer)


def _sweeps(sweep: WeakMethod[Sweep], ends: Ends) -> Flow[Any, None]:
    """Sweep after each pause, until one ends early. During a pause, nothing here holds the store."""
    while not (yield _PAUSE):
        operation = sweep()
        if operation is None:
            return
        steps = operation(ends)
        del operation
        try:
            removed = yield from steps
        except ClosedError:
            log.write(logging.INFO, "sweeper: it ends, because the store was closed")
            return
        except Exception as error:  # noqa: BLE001 - the next sweep may succeed
            problem = f"{type(error).__name__}: {error}"
            log.write(logging.WARNING, "sweeper: expired items were not removed: %s", problem)
        else:
            log.write(logging.DEBUG, "sweeper: removed %d expired items", removed)
