"""`MemorySaver` stores checkpoints in dictionaries. This module has the saver and its driver."""

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from threadmark.errors import ClosedError, ConfigError
from threadmark.memory.store import MemoryStore
from threadmark.memory.tables import Call, Tables
from threadmark.program import Step, Transaction, play
from threadmark.runtime.processes import reset_after_fork
from threadmark.saver import Saver, SaverOptions
from threadmark.saver.options import options_in

if TYPE_CHECKING:
    from threadmark.persistent.kept_memory import KeptDriver

T = TypeVar("T")


class MemoryDriver:
    """Runs one program at a time on the caller's thread, and undoes it if it fails."""

    may_hang = False

    def __init__(self) -> None:
        self._tables: Tables | None = Tables()
        self._lock = threading.Lock()
        reset_after_fork(self)

    def __str__(self) -> str:
        return "the memory of this process"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        with self._lock:
            if self._tables is None:
                raise ClosedError
            tables = self._tables
            tables.roll_back()  # the rest of a transaction that was interrupted, while it was undone or before
            try:
                result = play(transaction.begin(), partial(_execute, tables))
            except BaseException:
                tables.roll_back()
                raise
            tables.commit()
            return result

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio. Nothing here waits, so another thread would gain nothing."""
        return self.run(transaction)

    def close(self) -> None:
        """Drop all data."""
        with self._lock:
            self._tables = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def _reset_after_fork(self) -> None:
        """In the child of a fork: replace the lock, which a thread of the parent may have held during a transaction."""
        self._lock = threading.Lock()


def _execute(tables: Tables, step: Step) -> Any:
    if not isinstance(step, Call):
        raise TypeError(f"the memory backend has no {type(step).__name__}")
    return step.function(tables)


class MemorySaver(Saver):
    """Keeps everything in this process, for tests and for graphs whose state need not outlive the process.

    With a `file`, the saver reads the file when it is made, and stores everything there when you call `sync` or `close`
    and when the program ends. A crash loses the changes since then. Only one saver can have the file at a time.
    """

    _kept: "KeptDriver | None" = None

    def __init__(self, *, file: str | os.PathLike[str] | None = None, **options: Unpack[SaverOptions]) -> None:
        super().__init__(MemoryStore(), MemoryDriver(), **options)
        if file is None:
            self._keep_local_classes()
        else:
            # It needs sqlite3 and asyncio, which others need not wait for.
            from threadmark.persistent.kept_memory import KeptDriver

            self._driver = self._kept = KeptDriver(file)

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
        raise ConfigError(f"{url!r}: a memory saver has no name or path; write 'memory:'")
    return MemorySaver(file=file, **{**written, **options})
