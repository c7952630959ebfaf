"""Statements of several callers: what they add at the same time travels together and is committed together.

A round trip and a commit cost more than the rows of one change, both for the server and for this process. So whoever
adds hands over the statement that its program begins with, and is given its rows. Where it gets none (a statement
failed, for whosever sake), or they say that a removal holds the thread, its program runs by itself: one bad change
fails alone. There is no I/O in here.
"""

from collections.abc import Sequence
from typing import Any

from threadmark.program import Transaction
from threadmark_postgres.arrays import size_of
from threadmark_postgres.steps import Query, Rows

MOST = 16
"""The most statements that travel together. With many more, the server and this process would wait for each other."""

_LARGE = 64 * 1024
"""A change of this many bytes or more travels alone: it gains nothing from a batch and would delay the others."""


class BatchMember:
    """One caller of a batch: a program that waits for the answer to its first statement."""

    def __init__(self, transaction: Transaction[Any]) -> None:
        self._program = transaction.begin()
        self.query: Query | None = None
        """The statement, if others may take part in it."""
        self.result: Any = None
        first = next(self._program, None)
        if isinstance(first, Query) and first.turn and size_of(first.params) < _LARGE:
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
        """End the program, wherever it is."""
        self._program.close()


class Batch:
    """Statements that travel together, in the order in which all of them take rows."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._places = sorted(range(len(queries)), key=lambda place: queries[place].turn)
        self.queries = [queries[place] for place in self._places]

    def rows(self, answers: Sequence[Rows]) -> list[Rows]:
        """Return the rows of each statement, in the order in which they were given."""
        found: list[Rows] = [[] for _ in answers]
        for place, rows in zip(self._places, answers, strict=True):
            found[place] = rows
        return found
