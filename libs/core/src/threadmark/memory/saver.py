"""`MemorySaver` stores checkpoints in dictionaries. This module has the saver and its driver."""

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar, Unpack

from threadmark.errors import ClosedError, ConfigError
from threadmark.memory.holding import HeldMemory
from threadmark.memory.store import MemoryStore
from threadmark.memory.tables import Tables, execute
from threadmark.program import Transaction, play
from threadmark.runtime.blocks import INSIDE, expect_outside
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
        self.held: HeldMemory | None = None
        """The transaction over several calls that has the lock."""
        reset_after_fork(self)

    def __str__(self) -> str:
        return "the memory of this process"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        if INSIDE.get():
            expect_outside(self)
        with self._lock:
            if self._tables is None:
                raise ClosedError
            tables = self._tables
            tables.roll_back()  # the rest of a transaction that was interrupted, while it was undone or before
            try:
                result = play(transaction.begin(), partial(execute, tables))
            except BaseException:
                tables.roll_back()
                raise
            tables.commit()
            return result

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio. Nothing here waits, so another thread would gain nothing."""
        if self.held is not None:
            await self.until_free()
        return self.run(transaction)

    def hold(self, holder: HeldMemory) -> Tables:
        """Take the dictionaries for a transaction over several calls, which gives them back by `release`."""
        self._lock.acquire()
        if self._tables is None:
            self._lock.release()
            raise ClosedError
        self._tables.roll_back()
        self.held = holder
        return self._tables

    def release(self) -> None:
        """Let others have the dictionaries."""
        self.held = None
        self._lock.release()

    async def until_free(self) -> None:
        """Wait until no transaction over several calls has the dictionaries."""
        import asyncio  # programs without it need not load it

        expect_outside(self)
        while self.held is not None:  # noqa: ASYNC110 - any thread may release them, and cannot wake a task
            await asyncio.sleep(0.002)

    def close(self) -> None:
        """Drop all data."""
        expect_outside(self)
        with self._lock:
            self._tables = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self.until_free()
        self.close()

    def _reset_after_fork(self) -> None:
        """In the child of a fork: replace the lock, which a thread of the parent may have held during a transaction."""
        self._lock, self.held = threading.Lock(), None


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
