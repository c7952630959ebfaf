"""Cancellation: a cancelled caller leaves only when its connection is in order, because you may own the connection."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import psycopg

from threadmark.backends import Answer, Workers, in_spite_of_cancelling

_LONGEST = 12.0
"""Seconds to wait for the end of a statement that was cancelled. Releases of psycopg differ in how long it takes."""


async def in_order(operation: Coroutine[Any, Any, Any]) -> Any:
    """Run an operation. A cancelled caller stops it and waits until it has released everything."""
    work = asyncio.ensure_future(operation)
    try:
        await asyncio.wait([work])
    except asyncio.CancelledError:
        await stopped(work)
        raise
    return work.result()


class LeftError(Exception):
    """The caller has left before its work used a connection."""


class Errand:
    """Work that a thread does for a caller, which may be interrupted or cancelled before it is done."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._changing = threading.Lock()
        self._requested = True
        self._begun = False
        self._connection: psycopg.Connection[Any] | None = None
        self._ended = Answer()

    def do(self) -> Any:
        """Return the result of the work. It is not begun if the caller has left."""
        with self._changing:
            if not self._requested:
                return None
            self._begun = True
        of_thread.errand = self
        try:
            return self._work()
        finally:
            of_thread.errand = None
            self._ended.set_result(None)

    def leave(self) -> bool:
        """Record that the caller no longer waits. Returns whether the work is running."""
        with self._changing:
            self._requested = False
            return self._begun and not self._ended.done()

    def stop(self) -> None:
        """Leave, and let the server stop the running statement."""
        with self._changing:
            self._requested = False
            if self._connection is not None:
                with suppress(psycopg.Error):
                    self._connection.cancel_safe(timeout=_LONGEST / 2)

    def wait(self) -> None:
        """Wait up to a timeout until the work has ended."""
        self._ended.wait(_LONGEST)

    def uses(self, connection: psycopg.Connection[Any] | None) -> None:
        """Record the connection that its statements are sent on. Raises LeftError if the caller has left."""
        with self._changing:
            if connection is not None and not self._requested:
                raise LeftError
            self._connection = connection


class _OfThread(threading.local):
    errand: Errand | None = None
    """The errand that the thread runs, if any."""


of_thread = _OfThread()


class in_use:  # noqa: N801 - it is used as a function would be
    """A block in which the errand of this thread, if it has one, uses the connection."""

    __slots__ = ("_connection", "_errand")

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._errand = of_thread.errand
        if self._errand is not None:
            self._errand.uses(self._connection)

    def __exit__(self, *_: object) -> None:
        if self._errand is not None:
            self._errand.uses(None)


def for_main_thread(workers: Workers, work: Callable[[], Any], *, waits: bool) -> Any:
    """Run the work on another thread, and stop its statement at an interrupt. Returns its result.

    With `waits`, an interrupted caller waits until the work has ended, because you own the connection.
    """
    errand = Errand(work)
    try:
        return workers.run(errand.do)
    except BaseException:
        if errand.leave():
            errand.stop()
            if waits:
                errand.wait()
        raise


async def on_thread(workers: Workers, work: Callable[[], Any], stopping: Workers | None = None) -> Any:
    """Run the work on another thread. Returns its result. A cancelled caller waits until the work has ended.

    With `stopping`, whose threads ask the server to stop the statement, that is soon. Work that no thread has begun is
    dropped.
    """
    errand = Errand(partial(copy_context().run, work))
    doing = workers.asubmit(errand.do)
    try:
        await asyncio.wait([doing])
    except BaseException:
        doing.add_done_callback(_nobody_asks)
        if errand.leave():
            if stopping is not None:
                stopping.submit(errand.stop)
            await in_spite_of_cancelling(asyncio.wait([doing]))
        raise
    return doing.result()


async def stopped(work: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end. If it takes too long, cancel it once more, which closes its connection."""
    work.add_done_callback(_nobody_asks)
    if not work.cancelling():  # as it is already if the whole loop ends
        work.cancel()
    await _ended(work)
    if not work.done():
        work.cancel()
        await _ended(work)


async def _ended(work: asyncio.Task[Any]) -> None:
    clock = asyncio.get_running_loop().time
    until = clock() + _LONGEST
    while not work.done() and clock() < until:
        with suppress(asyncio.CancelledError):  # it is ending already
            await asyncio.wait([work], timeout=until - clock())


def _nobody_asks(work: asyncio.Future[Any]) -> None:
    if not work.cancelled():
        work.exception()
