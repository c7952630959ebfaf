"""Playing an exchange: running its transactions on the two databases, for both APIs."""

import asyncio
import time
from typing import Any, TypeVar

from threadmark.program import aplay, play
from threadmark.replication.steps import Exchange, On, Pause

T = TypeVar("T")


def play_exchange(exchange: Exchange[T]) -> T:
    """Run an exchange on the caller's thread. Returns its result."""
    return play(exchange, _answer)


async def aplay_exchange(exchange: Exchange[T]) -> T:
    """Like `play_exchange`, for asyncio."""
    return await aplay(exchange, _aanswer)


def _answer(asked: On | Pause) -> Any:
    if isinstance(asked, Pause):
        return time.sleep(asked.seconds)
    return asked.side.driver.run(asked.transaction)


async def _aanswer(asked: On | Pause) -> Any:
    if isinstance(asked, Pause):
        return await asyncio.sleep(asked.seconds)
    return await asked.side.driver.arun(asked.transaction)
