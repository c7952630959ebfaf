"""A caller that is cancelled leaves only when what it used is in order: it may be the user's, who goes on with it."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
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


def _nobody_asks(work: asyncio.Task[Any]) -> None:
    if not work.cancelled():
        work.exception()
