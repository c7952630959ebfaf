"""What a cached saver asks for: a transaction on its database, or a call of its cache. It does no I/O itself.

An *exchange* is a generator of both. `driver` plays it for both APIs, so nothing of the logic knows which.
"""

from collections.abc import Generator
from typing import Any, Literal, NamedTuple, TypeVar

from threadmark.caching.cache import Cache
from threadmark.program import Transaction

T = TypeVar("T")


class CacheCall(NamedTuple):
    """A method of `Cache`, with its arguments. It is answered by its result, or by its error."""

    method: Literal["get", "set", "forget"]
    args: tuple[Any, ...]

    def on(self, cache: Cache) -> Any:
        """Call it."""
        return getattr(cache, self.method)(*self.args)

    async def aon(self, cache: Cache) -> Any:
        """Like `on`, for asyncio."""
        return await getattr(cache, f"a{self.method}")(*self.args)


Exchange = Generator[Transaction[Any] | CacheCall, Any, T]


def on_database(transaction: Transaction[T]) -> Exchange[T]:
    """Have a transaction run on the database. Returns its result."""
    result: T = yield transaction
    return result
