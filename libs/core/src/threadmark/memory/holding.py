"""Transactions over several calls on dictionaries: while one is open, it has the dictionaries to itself."""

import threading
from functools import partial
from typing import TypeVar

from threadmark.errors import ClosedError
from threadmark.memory.driver import MemoryDriver
from threadmark.memory.tables import Tables, execute
from threadmark.program import Transaction, play

T = TypeVar("T")


class HeldMemory:
    """A transaction over several calls. It undoes a program that fails, and at its end keeps or undoes the rest."""

    may_hang = False

    def __init__(self, driver: MemoryDriver) -> None:
        self._driver = driver
        self._turn = threading.Lock()
        self._key = object()
        """Stands for this transaction in the driver."""
        self._tables: Tables | None = None
        self._kept = 0
        """How many changes the programs made that did not fail."""

    def __str__(self) -> str:
        return f"{self._driver}, in a transaction"

    def __del__(self) -> None:
        """Roll back, if an interrupt came between the beginning and the block."""
        self.end(commit=False)
        self._driver.release(self._key)

    def begin(self) -> None:
        """Begin it when no other caller has the dictionaries."""
        try:
            self._tables = self._driver.hold(self._key)
        except BaseException:
            self._driver.release(self._key)
            raise

    async def abegin(self) -> None:
        """Like `begin`, for asyncio."""
        await self._driver.until_free()
        self.begin()

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program and return its result."""
        with self._turn:
            tables = self._expect_open()
            tables.roll_back(self._kept)  # the rest of a program that was interrupted
            try:
                result = play(transaction.begin(), partial(execute, tables))
            except BaseException:
                tables.roll_back(self._kept)
                raise
            self._kept = tables.changes
            return result

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""
        return self.run(transaction)

    def end(self, *, commit: bool) -> None:
        """Keep the changes, or undo them."""
        with self._turn:
            if not commit and not self._is_open:
                return
            tables = self._expect_open()
            tables.roll_back(self._kept if commit else 0)
            tables.commit()
            self._tables = None
            self._driver.release(self._key)

    async def aend(self, *, commit: bool) -> None:
        """Like `end`, for asyncio."""
        self.end(commit=commit)

    def close(self) -> None:
        """Do nothing: the block ends the transaction."""

    async def aclose(self) -> None:
        """Do nothing, as `close`."""

    @property
    def _is_open(self) -> bool:
        """Whether it has begun and not ended."""
        return self._tables is not None and self._driver.is_held_by(self._key)

    def _expect_open(self) -> Tables:
        if self._tables is None or not self._is_open:
            raise ClosedError("this transaction is not open: begin another one")
        return self._tables
