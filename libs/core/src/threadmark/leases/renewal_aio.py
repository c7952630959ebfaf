"""The task that renews a lease: like `renewal.RenewalThread`, for asyncio."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from threadmark.leases.renewal import Renewed, Renewing
from threadmark.program import arun


class RenewalTask:
    """A task that renews a lease until it is stopped, or the lease is lost. Each renewal is a separate task."""

    def __init__(self, renewing: Renewing, lose: Callable[[], None]) -> None:
        self._renewing = renewing
        self._lose = lose
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self) -> None:
        """Begin to renew."""
        self._loop = asyncio.get_running_loop()
        self._tasks = [self._loop.create_task(self._work(), name="threadmark-lease")]

    def stop(self) -> None:
        """Stop renewing, without waiting for a renewal that is on its way. Any thread may call this."""
        with suppress(RuntimeError):  # the loop was closed, and its tasks with it
            self._loop.call_soon_threadsafe(self._cancel)

    async def astop(self) -> None:
        """Like `stop`, and wait for every task to end. Only the event loop of `start` can do this."""
        if asyncio.get_running_loop() is not self._loop:
            self.stop()
            return
        self._cancel()
        await asyncio.gather(*self._others(), return_exceptions=True)

    def _cancel(self) -> None:
        for task in self._others():
            task.cancel()

    def _others(self) -> list[asyncio.Task[Any]]:
        """Return the tasks without the caller's own one, because `on_lost` may release the lease."""
        return [task for task in self._tasks if task is not asyncio.current_task(self._loop)]

    async def _work(self) -> None:
        schedule = self._renewing.schedule
        while True:
            await asyncio.sleep(schedule.pause(waits=False))
            if schedule.is_over():
                break
            sent = time.monotonic()
            sending = self._loop.create_task(arun(self._renewing.driver, self._renewing.operation()))
            self._tasks[1:] = [sending]
            await asyncio.wait([sending], timeout=schedule.pause(waits=True))
            if not sending.done() or not self._renewing.goes_on(Renewed(sent, _outcome(sending))):
                break
        self._lose()


def _outcome(sending: asyncio.Task[bool]) -> bool | Exception:
    try:
        return sending.result()
    except Exception as error:  # noqa: BLE001 - whatever it is, the lease is kept as long as it lives
        return error
