"""What a cache must answer: bytes by key, and nothing else. One is here, in memory; `threadmark_redis` has another."""

from collections.abc import Mapping, Sequence
from typing import Protocol


class Cache(Protocol):
    """Keeps bytes for a while. Every method has a twin for asyncio. What fails raises; whoever calls it goes on."""

    def get(self, thread_id: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the entries that are there."""

    async def aget(self, thread_id: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Like `get`, for asyncio."""

    def set(self, thread_id: str, epoch: int, entries: Mapping[bytes, bytes]) -> None:
        """Keep entries that were read in this epoch, unless the thread's fence is above it."""

    async def aset(self, thread_id: str, epoch: int, entries: Mapping[bytes, bytes]) -> None:
        """Like `set`, for asyncio."""

    def forget(self, thread_id: str, epoch: int) -> None:
        """Remove all entries of a thread, and raise its fence to this epoch: nothing read before it comes back."""

    async def aforget(self, thread_id: str, epoch: int) -> None:
        """Like `forget`, for asyncio."""

    def close(self) -> None:
        """Close its connections."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
