"""`MemorySaver` stores checkpoints in dictionaries, and keeps them in a file if you want."""

import os
from typing import TYPE_CHECKING, Unpack

from threadmark.errors import ConfigError
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.holding import HeldMemory
from threadmark.memory.store import MemoryStore
from threadmark.saver import Saver, SaverOptions
from threadmark.saver.options import options_in

if TYPE_CHECKING:
    from threadmark.persistent.kept_memory import KeptDriver


class MemorySaver(Saver):
    """Keeps everything in this process, for tests and for graphs whose state need not outlive the process.

    With a `file`, the saver reads the file when it is made, and stores everything there when you call `sync` or `close`
    and when the program ends. A crash loses the changes since then. Only one saver can have the file at a time.
    """

    _kept: "KeptDriver | None" = None
    _no_transactions = "the memory of this process has no connection: use transaction()"

    def __init__(self, *, file: str | os.PathLike[str] | None = None, **options: Unpack[SaverOptions]) -> None:
        super().__init__(MemoryStore(), MemoryDriver(), **options)
        if file is None:
            self._keep_local_classes()
        else:
            # It needs sqlite3 and asyncio, which others need not wait for.
            from threadmark.persistent.kept_memory import KeptDriver

            self._driver = self._kept = KeptDriver(file)

    def _held_transaction(self) -> HeldMemory:
        if not isinstance(self._driver, MemoryDriver):
            raise self._refusal()
        return HeldMemory(self._driver)

    def sync(self) -> None:
        """Store all changes in the file, or none. When this returns, they are on the disk.

        Calls of other threads go on, except for the moment in which their rows are copied. In asyncio, call it with
        `asyncio.to_thread`.
        """
        if self._kept is None:
            raise ConfigError("this saver has no file to store anything in: make it with MemorySaver(file=...)")
        self._kept.sync()


def open_url(url: str, *, file: str | os.PathLike[str] | None = None, **options: Unpack[SaverOptions]) -> MemorySaver:
    """Return the saver for `memory:`."""
    rest, written = options_in(url, SaverOptions)
    if rest not in ("memory:", "memory://"):
        raise ConfigError(f"{url!r}: a memory saver has no name or path; write 'memory:', or 'memory:?keep_last=10'")
    return MemorySaver(file=file, **{**written, **options})
