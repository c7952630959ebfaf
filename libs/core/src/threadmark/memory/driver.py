"""The driver of dictionaries: one program at a time, or one transaction over several calls."""

from functools import partial
from typing import TypeVar

from threadmark.errors import ClosedError
from threadmark.memory.tables import Tables, execute
from threadmark.program import Transaction, play
from threadmark.runtime.blocks import INSIDE, expect_outside
from threadmark.runtime.processes import reset_after_fork
from threadmark.runtime.turns import Turn

T = TypeVar("T")


class MemoryDriver:
    """Runs one program at a time on the caller's thread, and undoes it if it fails."""

    may_hang = False

    def __init__(self) -> None:
        self._tables: Tables | None = Tables()
        self._turn = Turn()
        reset_after_fork(self)

    def __str__(self) -> str:
        return "the memory of this process"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        if INSIDE.get():
            expect_outside(self)
        with self._turn.lock:
            if self._turn.holder is not None:  # hardly ever, so a put is spared the call
                self._turn.wait()
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
        if self._turn.holder is not None:
            await self.until_free()
        return self.run(transaction)

    def hold(self, holder: object) -> Tables:
        """Take the dictionaries for a transaction over several calls, which gives them back by `release`."""
        with self._turn.lock:
            self._turn.wait()
            if self._tables is None:
                raise ClosedError
            self._tables.roll_back()
            self._turn.holder = holder
            return self._tables

    def release(self, holder: object) -> None:
        """Let others have the dictionaries."""
        self._turn.give_back(holder)

    def is_held_by(self, holder: object) -> bool:
        """Return whether a transaction has the dictionaries. In the child of a fork, it is the parent's."""
        return self._turn.holder is holder

    async def until_free(self) -> None:
        """Wait until no transaction over several calls has the dictionaries."""
        expect_outside(self)
        await self._turn.until_free()

    def close(self) -> None:
        """Drop all data."""
        expect_outside(self)
        with self._turn.lock:
            self._turn.wait()
            self._tables = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self.until_free()
        self.close()

    def _reset_after_fork(self) -> None:
        """In the child of a fork, the turn may be that of a thread that does not exist there."""
        self._turn = Turn()
