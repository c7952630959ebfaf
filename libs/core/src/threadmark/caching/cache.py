"""What a cache must answer: bytes by place and key. One is here, in memory; `threadmark_redis` has another.

A *place* is sixteen bytes that stand for a thread of a database (`places.py`). A cache need not know what an entry is:
whoever reads one proves it (`proving.py`), and goes to the database where there is none. It has to keep one promise:
what was read before a place was forgotten never comes back. So each place has a *token*, which a reader gets before it
asks the database, and gives back with what it has read there; forgetting a place ends its token.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class Wanted(NamedTuple):
    """What is asked of one place."""

    epoch: int
    """That of the thread, as its database said. Entries from before it are removed, because the thread has lost rows
    since; a reader who comes with an older one gets no token."""
    keys: Sequence[bytes]


class Got(NamedTuple):
    """What is there of one place."""

    token: bytes
    """To be given back with what is added to the place later. It is empty where nothing may be added."""
    entries: Mapping[bytes, bytes]
    """Those of the wanted ones that are there."""


class Filling(NamedTuple):
    """What is to be added to one place."""

    token: bytes
    entries: Mapping[bytes, bytes]


@runtime_checkable
class Cache(Protocol):
    """Keeps bytes for a while. Every method has a twin for asyncio.

    A call that fails raises an error, and so does one that takes longer than `within` seconds; the caller goes on
    without it. Its text (`__str__`) says which cache, for log lines. It shows no password.
    """

    def get(self, wanted: Mapping[bytes, Wanted], ttl: float, within: float) -> dict[bytes, Got]:
        """Return what is there of these places. A new place is removed after `ttl` seconds."""

    async def aget(self, wanted: Mapping[bytes, Wanted], ttl: float, within: float) -> dict[bytes, Got]:
        """Like `get`, for asyncio."""

    def set(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Add entries to places. A place whose token has changed meanwhile stays as it is."""

    async def aset(self, fillings: Mapping[bytes, Filling], within: float) -> None:
        """Like `set`, for asyncio."""

    def forget(self, places: Collection[bytes], within: float) -> None:
        """Remove all entries of these places, and end their tokens."""

    async def aforget(self, places: Collection[bytes], within: float) -> None:
        """Like `forget`, for asyncio."""

    def close(self) -> None:
        """Close its connections."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
