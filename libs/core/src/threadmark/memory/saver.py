"""`MemorySaver`: the store on dictionaries and the driver that runs it."""

from typing import Self, Unpack

from threadmark.errors import ConfigError
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.saver import Saver, SaverOptions


class MemorySaver(Saver):
    """Keeps everything in this process, for tests and for graphs whose state need not outlive the process."""

    def __init__(self, **options: Unpack[SaverOptions]) -> None:
        super().__init__(MemoryStore(), MemoryDriver(), **options)

    @classmethod
    def from_url(cls, url: str, **options: Unpack[SaverOptions]) -> Self:
        """The saver for `memory:`."""
        if url not in ("memory:", "memory://"):
            raise ConfigError(f"{url!r}: a memory saver has no name or path; write 'memory:'")
        return cls(**options)
