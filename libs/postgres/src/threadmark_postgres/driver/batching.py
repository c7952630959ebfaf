"""Batches: statements of concurrent callers that are sent together and committed together.

A round trip and a commit cost more than the rows of one change, both for the server and for this process. So a caller
that adds hands over its program's first statement, and gets its rows. If it gets none (a statement failed, its own or
another one) or the rows say that a removal holds the thread, its program runs by itself, so that a bad change fails
alone. There is no I/O in this module.
"""

from collections.abc import Sequence
from typing import Any

from threadmark.backends import Transaction
from threadmark_postgres.steps import Query, Rows

MOST = 16
"""The most statements that are sent together. With many more, the server and this process would wait for each other."""


class BatchMember:
    """A caller in a batch: a program that waits for the answer to its first statement."""

    def __init__(self, transaction: Transaction[Any]) -> None:
        self._program = transaction.begin()
        self.query: Query | None = None
        """The statement, if others may take part in it."""
        self.result: Any = None
        first = next(self._program, None)
        if isinstance(first, Query) and first.turn:
            self.query = first

    def ends_with(self, rows: Rows) -> bool:
        """Return whether the program ends with these rows. If so, it has a `result`."""
        if not rows:
            return False
        try:
            self._program.send(rows)
        except StopIteration as stop:
            self.result = stop.value
            return True
        return False

    def close(self) -> None:
        """End the program at whatever step it is."""
        self._program.close()


class Batch:
    """Statements that are sent together, in the order in which all of them take rows."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._positions = sorted(range(len(queries)), key=lambda position: queries[position].turn)
        self.queries = [queries[position] for position in self._positions]

    def rows(self, answers: Sequence[Rows]) -> list[Rows]:
        """Return the rows of each statement, in the order in which the statements were added."""
        found: list[Rows] = [[] for _ in answers]
        for position, rows in zip(self._positions, answers, strict=True):
            found[position] = rows
        return found
