"""`MemorySaver`: the store on dictionaries and the driver that runs it."""

from typing import Any, Self

from threadmark.errors import ConfigError
from threadmark.header import Serializer
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.saver import CACHE_BYTES, Saver


class MemorySaver(Saver):
    """Keeps everything in this process; for tests, and for graphs whose state need not outlive them."""

    def __init__(self, *, serde: Serializer | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        super().__init__(MemoryStore(), MemoryDriver(), serde=serde, cache_bytes=cache_bytes)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Self:
        """The saver for `memory:`."""
        if url not in ("memory:", "memory://"):
            raise ConfigError(f"{url!r}: a memory saver has no name or path; write 'memory:'")
        return cls(**options)
