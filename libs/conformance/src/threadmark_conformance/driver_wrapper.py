"""A driver around another one, whose effect on each transaction is written once for both APIs."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any

from threadmark.program import Driver, Transaction, aplay, play

_PAUSE = 0.0001


class DriverWrapper(ABC):
    """Runs each transaction as `_wrap` says, on the wrapped driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @abstractmethod
    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any] | None, Any, Any]:
        """Yield transactions for the wrapped driver, or None to let others go on for a moment. Returns the result."""

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        return play(self._wrap(transaction), self._answer)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        return await aplay(self._wrap(transaction), self._aanswer)

    def _answer(self, asked: Transaction[Any] | None) -> Any:
        return time.sleep(_PAUSE) if asked is None else self._driver.run(asked)

    async def _aanswer(self, asked: Transaction[Any] | None) -> Any:
        return await (asyncio.sleep(0) if asked is None else self._driver.arun(asked))

    def close(self) -> None:
        """Close the wrapped driver."""
        self._driver.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self._driver.aclose()
