"""The store operations on threads themselves, in SQL."""

from collections.abc import Iterator, Sequence
from json import dumps
from typing import Any

from threadmark.backends import (
    NO_NUMBER,
    LeaseRow,
    Program,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    ThreadStore,
    now,
    to_column,
)
from threadmark_sqlite.columns import (
    lease_columns,
    lease_row,
    thread_columns,
    thread_counts,
    thread_outline,
)
from threadmark_sqlite.placeholders import chunks, with_placeholders
from threadmark_sqlite.sql import threads
from threadmark_sqlite.steps import execute

_FEW = 1000
"""Up to this many found threads are looked up and sorted. With more, a walk soon meets some of them."""

Clause = tuple[str, Sequence[Any]]
"""A condition and its parameters."""


class SqliteThreadStore(ThreadStore):
    """The operations on threads themselves on one database."""

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        rows = yield from execute(threads.THREAD, (to_column(thread_id),))
        return thread_outline(rows[0]) if rows else None

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        found: dict[str, ThreadOutline] = {}
        for some in chunks([to_column(thread_id) for thread_id in thread_ids]):
            rows = yield from execute(with_placeholders(threads.THREADS_OF_IDS, some), some)
            found.update((row[0], thread_outline(row)) for row in rows)
        return list(found.values())

    def set_thread(self, row: ThreadRow) -> Program[None]:
        yield from execute(threads.SET_THREAD, (*thread_columns(row), to_column(row.thread_id)))

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        walk, clauses = _walk(scope, (yield from _found(scope)))
        columns = order = threads.SORT_COLUMNS[scope.sort]
        if after is not None:
            clauses.append(_after(scope, columns, after))
        if walk in threads.BY_MINUTE:
            order = (threads.MINUTE_OF_THREAD, *columns)
            clauses += _minutes(scope, after)
        direction = "DESC" if scope.descending else "ASC"
        statement = threads.PAGE.format(
            tables=f"{walk} {threads.HEAD_OF_THREAD}",
            clauses=_joined(clauses),
            order=", ".join(f"{column} {direction}" for column in order),
        )
        rows = yield from execute(statement, (*_params(clauses), limit, offset))
        return [thread_outline(row) for row in rows]

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        if scope.since is None and scope.until is None:
            tables, clauses = _walk_without_heads(scope)
        else:
            walk, clauses = _walk(scope._replace(sort="updated"), None)
            if walk in threads.BY_MINUTE:
                clauses += _minutes(scope, None)
            tables = f"{walk} {threads.HEAD_OF_THREAD}"
        statement = threads.COUNT.format(tables=tables, clauses=_joined(clauses))
        ((count,),) = yield from execute(statement, _params(clauses))
        return int(count)

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        found: list[ThreadCounts] = []
        for some in chunks([to_column(thread_id) for thread_id in thread_ids]):
            rows = yield from execute(with_placeholders(threads.COUNTS, some), some)
            found += [thread_counts(row) for row in rows]
        return found

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        began = now()
        yield from execute(threads.ADD_LEASED, (to_column(thread_id), began, began))
        lease = yield from self._lease(thread_id)
        if lease.outlasts:
            yield from execute(threads.BOUND_LEASE, (to_column(thread_id),))
            lease = yield from self._lease(thread_id)
        return lease

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        yield from execute(threads.SET_LEASE, (*lease_columns(lease), to_column(thread_id)))
        return (yield from self._lease(thread_id))

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        lease = yield from self.lease(thread_id)
        if lease is None or lease.token != token:
            return False
        yield from execute(threads.RENEW_LEASE, (left, left, to_column(thread_id)))
        return True

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        rows = yield from execute(threads.LEASE, (to_column(thread_id),))
        return lease_row(rows[0]) if rows else None

    def _lease(self, thread_id: str) -> Program[LeaseRow]:
        """Return the lease of a thread that has a row."""
        (row,) = yield from execute(threads.LEASE, (to_column(thread_id),))
        return lease_row(row)


def _found(scope: ThreadScope) -> Program[list[int] | None]:
    """Return the numbers of the threads that a search finds, None if they are many or nothing is searched for."""
    if scope.owner is not None:
        return None
    if scope.text is not None or scope.fragments:
        clauses = [(threads.LIVE, ()), *_searched(scope)]
        rows = yield from execute(threads.FOUND.format(clauses=_joined(clauses)), (*_params(clauses), _FEW + 1))
    elif scope.status == "unfinished" and scope.since is None:  # a walk would look up the checkpoints in its order
        clauses = [(threads.LIVE, ()), (threads.WITH_STATUS["unfinished"], ())]
        rows = yield from execute(threads.FOUND.format(clauses=_joined(clauses)), (_FEW + 1,))
    elif scope.status in threads.WRITTEN:
        rows = yield from execute(threads.WRITTEN[scope.status], (_FEW + 1,))
    else:
        return None
    return [number for (number,) in rows] if len(rows) <= _FEW else None


def _walk(scope: ThreadScope, found: Sequence[int] | None) -> tuple[str, list[Clause]]:
    """Return the index to walk along, and the conditions of the scope on threads and their root heads.

    If few threads were found, there is no walk.
    """
    clauses = [*_conditions(scope), (threads.ROOT_HEAD, ())]
    if scope.since is not None:
        clauses.append((threads.SINCE, (scope.since,)))
    if scope.until is not None:
        clauses.append((threads.UNTIL, (scope.until,)))
    if found is not None:
        return threads.BY_NUMBER, [(threads.WITH_NUMBER, (dumps(found),)), *clauses]
    return _few(scope) or threads.THREADS_BY[scope.sort, scope.owner is not None], clauses


def _minutes(scope: ThreadScope, after: ThreadPlace | None) -> Iterator[Clause]:
    """Yield the limits of a walk along minutes."""
    first = [] if scope.since is None else [scope.since]
    last = [] if scope.until is None else [scope.until]
    if after is not None:
        (last if scope.descending else first).append(after.value)
    if first:
        yield threads.FROM_MINUTE, (max(first),)
    if last:
        yield threads.TO_MINUTE, (min(last),)


def _walk_without_heads(scope: ThreadScope) -> tuple[str, list[Clause]]:
    """Return the same for a scope that needs no head, in any order."""
    by = threads.BY_CREATION if scope.owner is None else threads.BY_OWNER
    return _few(scope) or by, list(_conditions(scope))


def _few(scope: ThreadScope) -> str | None:
    """Return the index for a scope of a few threads, which can be sorted."""
    if scope.status == "busy":
        return threads.BY_LEASE
    return None if scope.expired is None else threads.BY_EXPIRY


def _conditions(scope: ThreadScope) -> Iterator[Clause]:
    """Yield the conditions of a scope on the thread's row and on its checkpoints."""
    yield threads.LIVE, ()
    if scope.owner is not None:
        yield threads.OF_OWNER, (to_column(scope.owner),)
    if scope.expired is not None:
        yield threads.EXPIRED, (scope.expired,)
    yield from _searched(scope)
    if scope.status is not None:
        yield threads.WITH_STATUS[scope.status], ()


def _searched(scope: ThreadScope) -> Iterator[Clause]:
    """Yield the conditions that have to be checked in all threads."""
    for fragment in scope.fragments:
        yield threads.WITH_FRAGMENT, (fragment,)
    if scope.text is not None:
        yield threads.WITH_TEXT, (to_column(scope.text.casefold()), to_column(scope.text))


def _after(scope: ThreadScope, columns: Sequence[str], place: ThreadPlace) -> Clause:
    """Return the condition of a page that begins after a thread."""
    if place.value == NO_NUMBER and scope.sort == "created" and not scope.descending:
        return threads.AFTER_NO_NUMBER, (to_column(place.thread_id),)
    values = (place.value, to_column(place.thread_id))[-len(columns) :]
    sign = "<" if scope.descending else ">"
    clause = threads.AFTER.format(columns=", ".join(columns), sign=sign, placeholders=", ".join("?" * len(columns)))
    return clause, values


def _joined(clauses: Sequence[Clause]) -> str:
    return " AND ".join(clause for clause, _ in clauses)


def _params(clauses: Sequence[Clause]) -> list[Any]:
    return [value for _, values in clauses for value in values]
