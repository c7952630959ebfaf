"""The driver of a cached saver: it plays exchanges, for both APIs."""

from typing import Any, TypeVar

from threadmark.caching.cache import Cache
from threadmark.caching.exchanges import Exchanges
from threadmark.caching.steps import CacheCall
from threadmark.program import Transaction, aplay, play
from threadmark.saver import Saver

T = TypeVar("T")


class CachedDriver:
    """Runs transactions on a saver's database, and asks a cache for the segments."""

    def __init__(self, saver: Saver, cache: Cache, exchanges: Exchanges, *, owns_cache: bool) -> None:
        self._saver = saver
        self._driver = saver._driver  # noqa: SLF001 - what a saver is made of is what this one is made of
        self._cache = cache
        self._exchanges = exchanges
        self._owns_cache = owns_cache

    def __str__(self) -> str:
        return f"{self._driver}, cached in {self._cache}"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program and return its result."""
        return play(self._exchanges.exchange(transaction), self._answer)

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""
        return await aplay(self._exchanges.exchange(transaction), self._aanswer)

    def close(self) -> None:
        """Close the saver, and the cache if nobody else has it."""
        play(self._exchanges.forget_pending(), self._answer)
        try:
            self._saver.close()
        finally:
            if self._owns_cache:
                self._cache.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await aplay(self._exchanges.forget_pending(), self._aanswer)
        try:
            await self._saver.aclose()
        finally:
            if self._owns_cache:
                await self._cache.aclose()

    def _answer(self, asked: Transaction[Any] | CacheCall) -> Any:
        return asked.on(self._cache) if isinstance(asked, CacheCall) else self._driver.run(asked)

    async def _aanswer(self, asked: Transaction[Any] | CacheCall) -> Any:
        return await (asked.aon(self._cache) if isinstance(asked, CacheCall) else self._driver.arun(asked))
