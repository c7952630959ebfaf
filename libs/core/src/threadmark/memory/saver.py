"""`MemorySaver`: the store on dictionaries and the driver that runs it."""

import os
from typing import TYPE_CHECKING, Self, Unpack

from threadmark.errors import ConfigError
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.store import MemoryStore
from threadmark.saver import Saver, SaverOptions

if TYPE_CHECKING:
    from threadmark.memory.kept import KeptDriver


class MemorySaver(Saver):
    """Keeps everything in this process, for tests and for graphs whose state need not outlive the process.

    With a `file`, everything is read from there when the saver is made, and stored there by `sync`, by `close` and when
    the program ends: what was put since then does not survive a crash. Only one saver has the file at a time.
    """

    _kept: "KeptDriver | None" = None

    def __init__(self, *, file: str | os.PathLike[str] | None = None, **options: Unpack[SaverOptions]) -> None:
        super().__init__(MemoryStore(), MemoryDriver(), **options)
        if file is None:
            self._keep_local_classes()
        else:
            # It needs sqlite3 and asyncio, which others need not wait for.
            from threadmark.memory.kept import KeptDriver

            self._driver = self._kept = KeptDriver(file)

    @classmethod
    def from_url(cls, url: str, *, file: str | os.PathLike[str] | None = None, **options: Unpack[SaverOptions]) -> Self:
        """The saver for `memory:`."""
        if url not in ("memory:", "memory://"):
            raise ConfigError(f"{url!r}: a memory saver has no name or path; write 'memory:'")
        return cls(file=file, **options)

    def sync(self) -> None:
        """Store in the file what has changed, all or nothing. When this returns, it is on the disk.

        Calls of other threads go on meanwhile, except for the moment in which their rows are taken. In asyncio, call it
        with `asyncio.to_thread`.
        """
        if self._kept is None:
            raise ConfigError("this saver has no file to store anything in: make it with MemorySaver(file=...)")
        self._kept.sync()
