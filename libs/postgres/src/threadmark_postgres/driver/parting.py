"""A caller that is cancelled leaves only when what it used is in order: it may be the user's, who goes on with it."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any

_LONGEST = 12.0
"""Seconds. psycopg asks the server to stop a statement and waits for its end; its releases differ in how long."""


async def in_order(operation: Coroutine[Any, Any, Any]) -> Any:
    """What the operation returns; a caller that is cancelled stops it and waits until it has given everything back."""
    work = asyncio.ensure_future(operation)
    try:
        await asyncio.wait([work])
    except asyncio.CancelledError:
        await stopped(work)
        raise
    return work.result()


async def on_thread(work: Callable[[], Any]) -> Any:
    """What the work returns; a caller that is cancelled waits for its end, because nobody can stop a thread.

    Work that no thread has begun by then is not begun any more.
    """
    wanted = True

    def begun() -> Any:
        return work() if wanted else None

    doing = asyncio.get_running_loop().run_in_executor(None, copy_context().run, begun)
    try:
        await asyncio.wait([doing])
    except asyncio.CancelledError:
        wanted = False
        doing.add_done_callback(_nobody_asks)
        while not doing.done():
            with suppress(asyncio.CancelledError):  # it is on its way out
                await asyncio.wait([doing])
        raise
    return doing.result()


async def stopped(work: asyncio.Task[Any]) -> None:
    """Cancel it and wait for its end, for a time; when that is over, once more, which closes its connection."""
    work.add_done_callback(_nobody_asks)
    if not work.cancelling():  # as it is already when the whole loop ends
        work.cancel()
    await _ended(work)
    if not work.done():
        work.cancel()
        await _ended(work)


async def _ended(work: asyncio.Task[Any]) -> None:
    clock = asyncio.get_running_loop().time
    until = clock() + _LONGEST
    while not work.done() and clock() < until:
        with suppress(asyncio.CancelledError):  # it is on its way out
            await asyncio.wait([work], timeout=until - clock())


def _nobody_asks(work: asyncio.Future[Any]) -> None:
    if not work.cancelled():
        work.exception()
