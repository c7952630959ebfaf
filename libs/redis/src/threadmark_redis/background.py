"""An event loop on its own thread, so that blocking callers can use code written for asyncio.

A blocking socket has a timeout for each piece that it receives, so a reply that comes in drops takes as long as it
likes. An event loop gives up the whole reply at a deadline, and the connection with it. Callers wait by
`workers.Answer`, because an interrupt may come at any instruction of the main thread.
"""

import asyncio
import threading
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from threadmark.backends import Answer, ClosedError, Failed, TransientStoreError, settle

T = TypeVar("T")

_LATE = 5.0
"""Seconds after which work that limits its own time will never answer, because the thread has ended."""


class Background:
    """The loop and its thread, which ends with the process at the latest."""

    def __init__(self) -> None:
        self._ending: asyncio.Event | None = None
        self._begun = Answer()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self._work, name="threadmark-cache", daemon=True)
        self._thread.start()
        self._loop: asyncio.AbstractEventLoop = self._begun.result()

    def call(self, work: Coroutine[Any, Any, T], within: float) -> T:
        """Run some work on the loop, which takes at most about `within` seconds. Returns its result."""
        answer = Answer()
        try:
            self._loop.call_soon_threadsafe(self._start, work, answer)
        except RuntimeError as error:  # the loop is closed
            work.close()
            raise ClosedError from error
        if not answer.wait(within + _LATE):
            raise TransientStoreError("the thread of the cache does not answer")
        result: T = answer.result()
        return result

    def end(self) -> None:
        """End the loop, which closes its connections, and wait a little for that."""
        if self._ending is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(_LATE)

    def _start(self, work: Coroutine[Any, Any, Any], answer: Answer) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)  # a loop keeps no task alive
        task.add_done_callback(partial(self._settle, answer))

    def _settle(self, answer: Answer, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            settle(answer, Failed(ClosedError()))
        else:
            error = task.exception()
            settle(answer, task.result() if error is None else Failed(error))

    def _work(self) -> None:
        asyncio.run(self._until_ended())

    async def _until_ended(self) -> None:
        self._ending = asyncio.Event()
        settle(self._begun, asyncio.get_running_loop())
        await self._ending.wait()
