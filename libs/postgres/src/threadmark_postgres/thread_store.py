"""The store operations on threads themselves in SQL, one statement each."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from threadmark.backends import (
    LeaseRow,
    Program,
    ThreadCounts,
    ThreadOutline,
    ThreadPlace,
    ThreadRow,
    ThreadScope,
    ThreadStore,
    from_column,
    to_column,
)
from threadmark_postgres.arrays import Texts
from threadmark_postgres.columns import from_optional, optional
from threadmark_postgres.schema import in_schema
from threadmark_postgres.sql import threads
from threadmark_postgres.sql.editing import replaced
from threadmark_postgres.steps import Rows, execute

_Clause = tuple[str, list[Any]]


class PostgresThreadStore(ThreadStore):
    """The rows of threads in one schema. None is the first schema of the connection's search path."""

    def __init__(self, schema: str | None) -> None:
        self._schema = schema

    def thread(self, thread_id: str) -> Program[ThreadOutline | None]:
        rows = yield from self._execute(threads.THREAD, to_column(thread_id), likely_last=True)
        return _outline(rows[0]) if rows else None

    def thread_outlines(self, thread_ids: Sequence[str]) -> Program[list[ThreadOutline]]:
        names = Texts(sorted(map(to_column, {*thread_ids})))
        rows = yield from self._execute(threads.THREADS_OF_IDS, names)
        return [_outline(columns) for columns in rows]

    def set_thread(self, row: ThreadRow) -> Program[None]:
        yield from self._execute(
            threads.SET_THREAD,
            to_column(row.thread_id),
            optional(row.owner),
            optional(row.title),
            None if row.title is None else to_column(row.title.casefold()),
            optional(row.metadata),
            row.expires_at,
            row.check or None,
        )

    def thread_page(
        self, scope: ThreadScope, after: ThreadPlace | None, offset: int, limit: int
    ) -> Program[list[ThreadOutline]]:
        order = threads.ORDERS[scope.sort].format(direction="DESC" if scope.descending else "ASC")
        clauses, params = _numbered([*_clauses(scope), *_behind(scope, after)], [limit, offset])
        statement = threads.THREAD_PAGE.format(clauses=clauses, order=order)
        rows = yield from self._execute(statement, *params, likely_last=True)
        outlines = [_outline(columns) for columns in rows]
        # The index is on heads, which repeat the owner. If they are damaged, the thread's own row counts.
        return [outline for outline in outlines if scope.owner in (None, outline.row.owner)]

    def count_threads(self, scope: ThreadScope) -> Program[int]:
        clauses, params = _numbered(_clauses(scope), [])
        statement = threads.COUNT_THREADS.format(clauses=clauses)
        ((count,),) = yield from self._execute(statement, *params, likely_last=True)
        return int(count)

    def thread_counts(self, thread_ids: Sequence[str]) -> Program[list[ThreadCounts]]:
        names = Texts(to_column(thread_id) for thread_id in thread_ids)
        rows = yield from self._execute(threads.THREAD_COUNTS, names, likely_last=True)
        return [_counts(columns) for columns in rows]

    def lock_lease(self, thread_id: str) -> Program[LeaseRow]:
        """One call of a server function, like the two methods that follow."""
        (row,) = yield from self._execute(threads.LOCK_LEASE, to_column(thread_id))
        return _lease(row)

    def set_lease(self, thread_id: str, lease: LeaseRow) -> Program[LeaseRow]:
        columns = (to_column(thread_id), lease.left, to_column(lease.holder), optional(lease.began))
        (row,) = yield from self._execute(threads.SET_LEASE, *columns)
        return _lease(row)

    def renew_lease(self, thread_id: str, token: int, left: int) -> Program[bool]:
        ((is_current,),) = yield from self._execute(threads.RENEW_LEASE, to_column(thread_id), token, left)
        return bool(is_current)

    def lease(self, thread_id: str) -> Program[LeaseRow | None]:
        rows = yield from self._execute(threads.LEASE, to_column(thread_id), likely_last=True)
        return _lease(rows[0]) if rows else None

    def _execute(self, statement: str, *params: Any, likely_last: bool = False) -> Program[Rows]:
        return execute(in_schema(statement, self._schema), params, likely_last=likely_last)


def _outline(columns: Sequence[Any]) -> ThreadOutline:
    thread_id, created_at, owner, title, metadata, expires_at, check, updated_at = columns
    row = ThreadRow(
        from_column(thread_id),
        created_at,
        from_optional(owner),
        from_optional(title),
        from_optional(metadata),
        expires_at,
        check or b"",
    )
    return ThreadOutline(row, updated_at)


def _counts(columns: Sequence[Any]) -> ThreadCounts:
    thread_id, checkpoints, namespaces, size, newest, *states = columns
    return ThreadCounts(from_column(thread_id), checkpoints, namespaces, int(size), from_optional(newest), *states)


def _lease(columns: Sequence[Any]) -> LeaseRow:
    token, left, holder, began = columns
    return LeaseRow(token, left, from_column(holder), from_optional(began))


def _numbered(clauses: Sequence[_Clause], params: list[Any]) -> tuple[str, list[Any]]:
    """Join clauses, and number their parameters after the existing ones. Returns all parameters, too."""
    texts = [threads.ALL_THREADS]
    for clause, values in clauses:
        texts.append(clause.format(*range(len(params) + 1, len(params) + 1 + len(values))))
        params = [*params, *values]
    return " AND ".join(texts), params


def _clauses(scope: ThreadScope) -> list[_Clause]:
    return list(_clauses_of(scope))


def _clauses_of(scope: ThreadScope) -> Iterator[_Clause]:
    if scope.owner is not None:
        yield threads.THREADS_OF_OWNER[scope.sort], [to_column(scope.owner)]
    if scope.status is not None:
        yield threads.THREADS_WITH_STATUS[scope.status], []
    if scope.since is not None:
        yield threads.THREADS_SINCE, [scope.since]
    if scope.until is not None:
        yield threads.THREADS_UNTIL, [scope.until]
    if scope.expired is not None:
        yield threads.THREADS_EXPIRED, [scope.expired]
    if scope.text is not None:
        yield threads.THREADS_WITH_TEXT, [_containing(scope.text.casefold()), _containing(scope.text)]
    for fragment in scope.fragments:
        yield threads.THREADS_WITH_FRAGMENT, [_containing(fragment)]


def _behind(scope: ThreadScope, after: ThreadPlace | None) -> Iterator[_Clause]:
    if after is None:
        return
    sign, thread = "<" if scope.descending else ">", to_column(after.thread_id)
    if scope.sort == "id":
        yield replaced(threads.THREADS_BEHIND_ID, ("{sign}", sign)), [thread]
    else:
        yield replaced(threads.THREADS_BEHIND[scope.sort], ("{sign}", sign)), [after.value, thread]


def _containing(text: str) -> str:
    """Return a pattern for LIKE that matches texts with this part."""
    return f"%{_SPECIAL.sub(_ESCAPED, to_column(text))}%"


_SPECIAL, _ESCAPED = re.compile(r"[\\%_]"), r"\\\g<0>"
