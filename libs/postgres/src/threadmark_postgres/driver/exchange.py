"""Sending statements to the server and reading their rows, for both APIs.

For each statement, a cursor of psycopg determines how to write every parameter and how to read every column, which
costs several times as much as all the rest. Here `arrays` packs parameters, the readers of columns are kept, and
psycopg's wrapper of libpq does the sending. psycopg also does the waiting: `exchange` is a generator for the `wait` of
a connection, which also knows how to give up, or on an event loop for `waiting`.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, count
from secrets import token_hex
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.generators import execute, fetch_many, send
from psycopg.postgres import register_default_adapters, types
from psycopg.pq import DiagnosticField, ExecStatus, Format, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from threadmark.backends import reset_after_fork
from threadmark_postgres.arrays import packed
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query, Rows

Connection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]

_MOST = 100
"""The most statements that are prepared on one connection: the server keeps a plan for each."""


_READ = [types[name] for name in ("bool", "bytea", "float4", "float8", "int4", "int8", "name", "numeric", "text")]
"""The types of the columns that are read, also in arrays."""

_STANDARD = AdaptersMap(types=types)
"""psycopg's own loaders. Those of the connection may be the application's, which has bytes or numbers as it likes."""
register_default_adapters(_STANDARD)
for _info in _READ:
    _info.register(_STANDARD)  # its array


class _Names:
    """Names of prepared statements. Behind a pooler, a name of another process must not mean another statement."""

    def __init__(self) -> None:
        self._numbers = count()  # not a generator, which two threads must not enter
        self._reset_after_fork()
        reset_after_fork(self)

    def next(self) -> bytes:
        return f"{self._beginning}_{next(self._numbers)}".encode()

    def _reset_after_fork(self) -> None:
        self._beginning = f"threadmark_{token_hex(4)}"


_names = _Names()

# Looking up a member of an enumeration takes ten times as long as a constant of the module.
_BINARY, _OFF = Format.BINARY, PipelineStatus.OFF
_TUPLES_OK, _COMMAND_OK, _SYNC = ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.PIPELINE_SYNC

_GOOD = (_TUPLES_OK, _COMMAND_OK)

_UNKNOWN = (b"26000", b"42P05", b"0A000")
"""Errors of a statement that the server does not know, knows already, or cannot execute as it was prepared."""


class Statements:
    """The statements for which one connection has been used."""

    def __init__(self) -> None:
        # It is not of the connection, which keeps this object and must not be kept by it.
        self.loading = Transformer(_STANDARD)
        self._uses: dict[str, int] = {}
        self.names: dict[str, bytes] = {}
        """The names of the prepared statements."""

    def new_name(self, statement: str, threshold: int) -> bytes | None:
        """Count a use of a statement. Returns a name for it if it should be prepared now."""
        if statement in self.names:
            return None
        uses = self._uses.get(statement, 0)
        if uses >= threshold and len(self.names) < _MOST:
            return self.names.setdefault(statement, _names.next())
        if len(self._uses) >= _MOST:
            self._uses.clear()
        self._uses[statement] = uses + 1
        return None

    def forget(self) -> None:
        """Forget all prepared statements: the server does not know them any more."""
        self._uses.clear()
        self.names.clear()

    def was_not_prepared(self, statement: str) -> None:
        """Forget one statement, which the server refused or never reached."""
        self.names.pop(statement, None)


_of_connection: WeakKeyDictionary[Connection, Statements] = WeakKeyDictionary()


def use_standard_loaders(cursor: psycopg.RawCursor[Any] | psycopg.AsyncRawCursor[Any]) -> None:
    """Let a cursor read columns as `exchange` does."""
    for info in _READ:
        for oid in (info.oid, info.array_oid):
            loader = _STANDARD.get_loader(oid, _BINARY)
            if loader is not None:
                cursor.adapters.register_loader(oid, loader)


def is_plain(connection: Connection) -> bool:
    """Return whether statements can be exchanged here: in UTF-8, and outside of a pipeline that you began."""
    pgconn = connection.pgconn
    return pgconn.pipeline_status == _OFF and pgconn.parameter_status(b"client_encoding") == b"UTF8"


def send_prepared(connection: Connection, query: Query) -> Statements | None:
    """Send a statement that is prepared already, as nearly all are. `received` reads its answer.

    Returns None and sends nothing if it is not prepared.
    """
    statements = _of_connection.get(connection)
    if statements is None or query.sql not in statements.names:
        return None
    _send(connection.pgconn, statements, query)
    return statements


def received(connection: Connection, statements: Statements, results: Sequence[PGresult]) -> Rows | None:
    """Return the rows of the answer, None if the statement must be sent again because the server has forgotten it."""
    if results[-1].status in _GOOD:  # if a session is ended before its commit, the error follows the answer
        return _rows(statements, results)
    try:
        _check(results, statements)
    except errors.InvalidSqlStatementName:
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            raise
    return None


def exchange(connection: Connection, batch: Sequence[Query], *, prepare: bool) -> PQGen[list[Rows]]:
    """Send statements together. Returns the rows of each. A statement is prepared as often as psycopg would."""
    statements = _of_connection.get(connection)
    if statements is None:
        statements = _of_connection[connection] = Statements()
    pgconn = connection.pgconn
    threshold = connection.prepare_threshold if prepare else None
    begins = pgconn.transaction_status == TransactionStatus.IDLE
    try:
        return (yield from _sent(pgconn, statements, batch, threshold))
    except errors.InvalidSqlStatementName:
        # You had the server forget all statements, or psycopg did so after a rollback.
        if not begins:
            raise
    if pgconn.transaction_status != TransactionStatus.IDLE:
        yield from _sent(pgconn, statements, [Query(connections.ROLLBACK)], None)
    return (yield from _sent(pgconn, statements, batch, threshold))


def _sent(pgconn: PGconn, statements: Statements, batch: Sequence[Query], threshold: int | None) -> PQGen[list[Rows]]:
    # Each name is made when its statement is sent, because a batch may have one statement several times.
    fresh = (None if threshold is None else statements.new_name(query.sql, threshold) for query in batch)
    first = next(fresh)
    if len(batch) > 1 or first is not None:
        return (yield from _together(pgconn, statements, batch, chain([first], fresh)))
    _send(pgconn, statements, batch[0])
    results = yield from execute(pgconn)
    _check(results, statements)
    return [_rows(statements, results)]


def _together(
    pgconn: PGconn, statements: Statements, batch: Sequence[Query], fresh: Iterable[bytes | None]
) -> PQGen[list[Rows]]:
    """Send a batch in one round trip. A statement with a fresh name is prepared just before its use."""
    pgconn.enter_pipeline_mode()
    prepares: list[Query | None] = []
    for query, name in zip(batch, fresh, strict=True):
        if name is not None:
            pgconn.send_prepare(name, query.sql.encode())
            prepares.append(query)
        _send(pgconn, statements, query)
        prepares.append(None)
    pgconn.pipeline_sync()
    yield from send(pgconn)
    answers: list[list[PGresult]] = []
    while len(answers) < len(prepares):
        answers.append((yield from fetch_many(pgconn)))
    end = yield from fetch_many(pgconn)
    if end and end[-1].status != _SYNC:  # PgBouncer reports with which error the session has ended
        for results in (*answers, end):
            _check(results, statements)
    pgconn.exit_pipeline_mode()  # a connection that was interrupted before is dropped
    for results, prepared in zip(answers, prepares, strict=True):
        if prepared is not None and results[-1].status not in _GOOD:
            statements.was_not_prepared(prepared.sql)
    for results in answers:
        _check(results, statements)
    return [_rows(statements, results) for results, name in zip(answers, prepares, strict=True) if name is None]


def _send(pgconn: PGconn, statements: Statements, query: Query) -> None:
    params = packed(query.params)
    formats = [_BINARY] * len(params)
    name = statements.names.get(query.sql)
    if name is None:
        pgconn.send_query_params(query.sql.encode(), params, None, formats, _BINARY)
    else:
        pgconn.send_query_prepared(name, params, formats, _BINARY)


def _check(results: Sequence[PGresult], statements: Statements) -> None:
    for result in results:
        if result.status not in _GOOD:
            if result.error_field(DiagnosticField.SQLSTATE) in _UNKNOWN:
                statements.forget()
            raise errors.error_from_result(result)


def _rows(statements: Statements, results: Sequence[PGresult]) -> Rows:
    (result,) = results
    if result.status == _COMMAND_OK:
        return []
    loading = statements.loading
    loading.set_pgresult(result)
    rows = loading.load_rows(0, result.ntuples, tuple)
    loading.set_pgresult(None)  # the result may be large
    return rows
