"""Connections for blocking callers: a pool of this process, or what the user gave."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from threadmark.errors import ClosedError, StoreError
from threadmark.program import Query, Rows
from threadmark_postgres import sql
from threadmark_postgres.driver.exchange import Conversation
from threadmark_postgres.driver.settings import Settings

Connection = psycopg.Connection[Any]


class Lender(Protocol):
    """Where connections come from. One that comes back in a transaction, or broken, is not lent again."""

    def lend(self) -> Any:
        """A context that holds a connection in autocommit mode."""

    def forget_idle(self) -> None:
        """Do not lend any connection that was opened before: the server has gone."""

    def close(self) -> None:
        """Close what is not the user's."""


class Pool:
    """Up to `pool_size` connections, opened when they are first needed, the last used lent first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free = threading.Semaphore(settings.pool_size)
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection; the caller waits while all are in use."""
        if not self._free.acquire(timeout=max(self._settings.timeout, 0)):
            raise StoreError(
                f"all {self._settings.pool_size} connections have been in use "
                f"for {self._settings.timeout:g} s: give a larger pool_size"
            )
        connection: Connection | None = None
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            yield connection
        finally:
            if connection is not None:
                self._take_back(connection)
            self._free.release()

    def forget_idle(self) -> None:
        """Close all that nobody uses."""
        while self._idle:
            try:
                self._idle.pop().close()
            except IndexError:  # somebody else was quicker
                return

    def close(self) -> None:
        """Close all that nobody uses now, and the others when they come back."""
        self._closed = True
        self.forget_idle()

    def _connect(self) -> Connection:
        connection: Connection = psycopg.Connection.connect(**self._settings.connecting())
        return connection

    def _take_back(self, connection: Connection) -> None:
        if is_idle(connection):
            self._idle.append(connection)
        else:
            connection.close()
        if self._closed:  # perhaps only just now
            self.forget_idle()


class Given:
    """A connection, or a pool's connections, that the user opened and will close."""

    def __init__(self, lend: Callable[[], Any]) -> None:
        self._lend = lend

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """A connection, for the time being in autocommit mode."""
        with self._lend() as connection:
            if connection.closed:
                raise ClosedError("the connection given was closed; make a new saver, from a URL to have it reconnect")
            if not is_idle(connection):
                raise StoreError("the connection given has an open transaction: commit it or roll it back first")
            before = connection.autocommit
            if not before:
                connection.autocommit = True
            try:
                yield connection
            finally:
                if not before and is_idle(connection):
                    connection.autocommit = before

    def forget_idle(self) -> None:
        """Nothing: they are the user's."""

    def close(self) -> None:
        """Nothing: they are the user's."""


def converse(connection: Connection, exchange: Conversation, *, prepare: bool) -> Any:
    """Carry a conversation on to its end, and leave no transaction open."""
    try:
        batch = next(exchange)
        while True:
            batch = exchange.send(_answers(connection, batch, prepare=None if prepare else False))
    except StopIteration as stop:
        return stop.value
    except BaseException:
        _roll_back(connection)
        raise
    finally:
        exchange.close()


def _answers(connection: Connection, batch: Any, *, prepare: bool | None) -> list[Rows]:
    cursors = [psycopg.RawCursor(connection, row_factory=tuple_row) for _ in batch]
    if len(batch) == 1:
        _send(cursors[0], batch[0], prepare=prepare)
    else:
        with connection.pipeline():
            for cursor, query in zip(cursors, batch, strict=True):
                _send(cursor, query, prepare=prepare)
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _send(cursor: Any, query: Query, *, prepare: bool | None) -> None:
    cursor.execute(query.sql, query.params or None, prepare=prepare, binary=True)


def _roll_back(connection: Connection) -> None:
    if connection.closed or is_idle(connection):
        return
    try:
        if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
            # Its answer is still to come; the server rolls back when the connection is gone.
            connection.close()
        else:
            connection.execute(sql.ROLLBACK)
    except psycopg.Error:
        connection.close()


def is_idle(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether the connection works and has no transaction open."""
    return connection.pgconn.transaction_status == TransactionStatus.IDLE
