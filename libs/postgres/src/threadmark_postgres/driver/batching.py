"""Statements that several callers share: what they add at the same time travels together and is committed together.

A round trip, the start of a statement and a commit cost more than the rows of one change, both for the server and
for this process. So whoever adds hands over the statement that its program begins with, and is given its own rows out
of the common answer. Where it gets none (nobody else came, the statement failed for somebody's sake, a removal holds
the thread), its program runs by itself: one bad change fails alone. There is no I/O in here.
"""

from collections.abc import Sequence
from typing import Any, cast

from threadmark.program import Transaction
from threadmark_postgres.arrays import BatchParams, size_of
from threadmark_postgres.sql.judging import for_several
from threadmark_postgres.steps import Query, Rows

MOST = 16
"""The most changes in a statement. With many more, the server and this process would wait for each other in turn."""

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
        if (
            isinstance(first, Query)
            and first.likely_last
            and (first.shared is not None or isinstance(first.params, BatchParams))
            and size_of(first.params) < _LARGE
        ):
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


def together(queries: Sequence[Query]) -> Query:
    """Combine queries of one kind. `split_rows` splits the result."""
    if len(queries) == 1:
        return queries[0]
    shared = [query.shared() if query.shared is not None else query for query in queries]
    batch_params = [cast("BatchParams", query.params) for query in shared]  # `BatchMember.query` gives no others
    statement = (
        shared[0].sql
        if len({params_of_change.thread for params_of_change in batch_params}) == 1
        else for_several(shared[0].sql)
    )
    return Query(statement, BatchParams.joined(batch_params), likely_last=True)


def split_rows(rows: Rows, parts: int) -> list[Rows]:
    """Return each caller's rows of the answer, numbered as if it had been alone."""
    if parts == 1:
        return [rows]
    found: list[Rows] = [[] for _ in range(parts)]
    for number, *judgement in rows:
        found[number - 1].append((1, *judgement))
    return found
