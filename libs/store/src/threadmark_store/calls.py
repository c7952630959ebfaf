"""`Call`: a request of a flow that leaves the store's database alone, such as for the embeddings of texts."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call for the blocking API, and one for asyncio."""

    blocking: Callable[[], Any]
    waiting: Callable[[], Awaitable[Any]]

    def answer(self) -> Any:
        """Make the blocking call."""
        return self.blocking()

    async def aanswer(self) -> Any:
        """Make the call for asyncio."""
        return await self.waiting()
