"""Running programs on dictionaries."""

import threading
from functools import partial
from typing import Any, TypeVar

from threadmark.errors import ClosedError
from threadmark.forks import begin_anew_after_fork
from threadmark.memory.tables import Call, Tables
from threadmark.program import Step, Transaction, play

T = TypeVar("T")


class MemoryDriver:
    """Runs a program at a time, on the caller's thread, and undoes it when it fails."""

    may_hang = False

    def __init__(self) -> None:
        self._tables: Tables | None = Tables()
        self._lock = threading.Lock()
        begin_anew_after_fork(self)

    def __str__(self) -> str:
        return "the memory of this process"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        with self._lock:
            if self._tables is None:
                raise ClosedError
            tables = self._tables
            tables.roll_back()  # what a transaction left that was interrupted, while it was undone or before
            try:
                result = play(transaction.program(), partial(_execute, tables))
            except BaseException:
                tables.roll_back()
                raise
            tables.commit()
            return result

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio. Nothing here waits, so nothing is gained by another thread."""
        return self.run(transaction)

    def close(self) -> None:
        """Let everything go."""
        with self._lock:
            self._tables = None

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def begin_anew(self) -> None:
        """In the child of a fork: another thread may have been in the middle of a transaction, and is not there."""
        self._lock = threading.Lock()


def _execute(tables: Tables, step: Step) -> Any:
    if not isinstance(step, Call):
        raise TypeError(f"the memory backend has no {type(step).__name__}")
    return step.function(tables)
