"""Connections for blocking callers: a pool of this process, or the connections that you passed."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import psycopg
from psycopg.generators import execute
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from threadmark.backends import ClosedError, ConfigError, StoreError, ThreadmarkError, TransientStoreError, play
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver.batching import MOST, Batch
from threadmark_postgres.driver.cancellation import in_use, of_thread
from threadmark_postgres.driver.conversation import Conversation
from threadmark_postgres.driver.exchange import exchange, is_plain, received, send_prepared, use_standard_loaders
from threadmark_postgres.driver.settings import Settings
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query, Rows

Connection = psycopg.Connection[Any]

# As in `exchange`, not to be looked up in their enumerations.
_IDLE, _ABORTED, _OFF = TransactionStatus.IDLE, PipelineStatus.ABORTED, PipelineStatus.OFF

_LEADERS = 2
"""How many batches run at once. With more of them, threads would rarely meet in one."""


class ConnectionSource(Protocol):
    """A source of connections. One that comes back in a transaction, or broken, is not lent again."""

    def lend(self) -> Any:
        """A context that holds a connection in autocommit mode, and in which the thread's errand uses it."""

    def forget_idle(self, longest: float) -> None:
        """Stop lending connections opened before now, as the server was lost. Takes at most `longest` seconds."""

    def close(self) -> None:
        """Close the connections, unless you passed them."""


class Pool:
    """Up to `pool_size` connections, opened when they are first needed. The last one used is lent first."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._unused = iter(range(settings.pool_size))
        self._free: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Has an item for each connection that came back. A semaphore is written in Python, and slower."""
        self._idle: list[Connection] = []
        self._closed = False

    def lend(self) -> "_Loan":
        """Lend a connection, after waiting if all are in use."""
        return _Loan(self)

    def take(self) -> Connection:
        """Wait for a connection. You must give it back."""
        try:
            self._free.get_nowait()
        except queue.Empty:
            self._wait()
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._connect()
        except BaseException:
            self._free.put(None)
            raise

    def give_back(self, connection: Connection) -> None:
        """Make a connection available to others, if it is in order."""
        try:
            if is_idle(connection):
                self._idle.append(connection)
            else:
                connection.close()
            if self._closed:  # perhaps closed only just now
                self._finish_idle()
        finally:
            self._free.put(None)

    def forget_idle(self, longest: float) -> None:  # noqa: ARG002 - it takes no time
        """Close all idle connections."""
        self._finish_idle()

    def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        self._closed = True
        self._finish_idle()

    def _wait(self) -> None:
        if next(self._unused, None) is not None:
            return
        try:
            self._free.get(timeout=max(self._settings.timeout, 0))
        except queue.Empty:
            raise TransientStoreError(
                f"all {self._settings.pool_size} connections have been in use "
                f"for {self._settings.timeout:g} s: give a larger pool_size"
            ) from None

    def _idle_connection(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _finish_idle(self) -> None:
        while (connection := self._idle_connection()) is not None:
            connection.close()

    def _connect(self) -> Connection:
        connection: Connection = psycopg.Connection.connect(**self._settings.connecting())
        register_dumpers(connection)
        return connection


class _Loan:
    """A context that holds a connection of a pool, which the errand of this thread uses, if it has one."""

    __slots__ = ("_connection", "_errand", "_pool")

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __enter__(self) -> Connection:
        self._errand = of_thread.errand
        self._connection = connection = self._pool.take()
        if self._errand is not None:
            try:
                self._errand.uses(connection)
            except BaseException:
                self._pool.give_back(connection)
                raise
        return connection

    def __exit__(self, *_: object) -> None:
        if self._errand is not None:
            self._errand.uses(None)
        self._pool.give_back(self._connection)


class BorrowedConnection:
    """A connection or a pool that you opened and will close."""

    def __init__(self, lend: Callable[[], Any], check: Callable[[], None] | None = None) -> None:
        self._lend = lend
        self._check = check

    @property
    def is_pool(self) -> bool:
        """Whether it is a pool, so that no other code uses a connection while it is lent."""
        return self._check is not None

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """Lend the connection, in autocommit mode until it comes back."""
        with self._lend() as connection:
            if connection.closed:
                raise ClosedError("the connection given was closed; make a new saver, from a URL to have it reconnect")
            if not is_free(connection):
                raise StoreError("the connection given has an open transaction: commit it or roll it back first")
            check_encoding(connection)
            register_dumpers(connection)
            before = connection.autocommit
            if not before:
                connection.autocommit = True
            try:
                with in_use(connection):
                    yield connection
            finally:
                if not before and is_free(connection):
                    connection.autocommit = before

    def forget_idle(self, longest: float) -> None:
        """Let a pool replace its broken connections, so that an attempt need not fail for each of them.

        If the server disappeared without closing them, each takes as long as its keepalive parameters say. So the pool
        goes on checking after `longest`.
        """
        if self._check is not None:
            looking = threading.Thread(target=self._check, name="threadmark-check", daemon=True)
            looking.start()
            looking.join(min(longest, threading.TIMEOUT_MAX))

    def close(self) -> None:
        """Does nothing, because the connections are yours."""


class StatementBatcher:
    """Sends the statements of threads that add at the same time together.

    Up to `_LEADERS` of them lead: they send all statements that have come. The others wait until they are answered, or
    until a leader that is done makes the first of them lead the next batch.
    """

    def __init__(self, ask: Callable[[Sequence[Query]], list[Rows]]) -> None:
        self._ask = ask
        self._changing = threading.Lock()
        self._waiting: list[_Member] = []
        self._leading = 0
        """How many threads lead."""

    # A leader may have used up its stack, so that it cannot call any of our functions. So answering the others and
    # handing on the lead take no call.

    def rows(self, query: Query) -> Rows:
        """Return this caller's rows of the shared answer, or none if its program has to run alone."""
        member: _Member | None = None
        is_alone = False
        try:
            with self._changing:
                is_alone = self._leading < _LEADERS  # no caller waits then
                if is_alone:
                    self._leading += 1
                else:
                    member = _Member(query)
                    self._waiting.append(member)
            if member is None:
                (rows,) = self._ask([query])
                return rows
            member.turn.acquire()
            if member.leads:
                self._lead(member)
        except ThreadmarkError:  # of the pool, not of the statement
            raise
        except Exception:  # noqa: BLE001 - whose fault it is shows when the program runs by itself
            return []
        finally:
            if is_alone or (member is not None and member.leads):
                with self._changing:
                    if self._waiting:
                        successor = self._waiting.pop(0)
                        successor.leads = True
                        successor.turn.release()
                    else:
                        self._leading -= 1
        if member.refusal is not None:
            raise member.refusal
        return member.rows

    def _lead(self, leader: "_Member") -> None:
        members = [leader]
        answers: list[Rows] = []
        refusal: ThreadmarkError | None = None
        try:
            with self._changing:
                members += self._waiting[: MOST - 1]
                del self._waiting[: MOST - 1]
            batch = Batch([member.query for member in members])
            answers = batch.rows(self._ask(batch.queries))
        except ThreadmarkError as error:  # of the pool, not of the statement
            refusal = error
        except Exception:  # noqa: BLE001, S110 - whose fault it is shows when each program runs by itself
            pass
        finally:
            for index, member in enumerate(members):
                member.rows, member.refusal = answers[index] if answers else [], refusal
                if member is not leader:
                    member.turn.release()


class _Member:
    """A thread in a batch: it goes on when its turn is released, answered or to lead."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.rows: Rows = []
        self.refusal: ThreadmarkError | None = None
        self.leads = False
        self.turn = threading.Lock()
        self.turn.acquire()


def converse(connection: Connection, conversation: Conversation, *, prepare: bool) -> Any:
    """Run a conversation to its end, and leave no transaction open. Returns the program's result."""
    try:
        return play(conversation, partial(send, connection, prepare=prepare))
    except BaseException:
        _roll_back(connection)
        raise


def answers(connection: Connection, queries: Sequence[Query], *, prepare: bool) -> list[Rows]:
    """Send statements that are one transaction by themselves, and leave none open. Returns the rows of each."""
    try:
        return send(connection, queries, prepare=prepare)
    except BaseException:
        _roll_back(connection)
        raise


def _answer_of_prepared(connection: Connection, query: Query) -> Rows | None:
    """Return the rows of a statement, None if it must be sent in another way."""
    if not is_plain(connection):
        return None
    with connection.lock:
        statements = send_prepared(connection, query)
        if statements is None:
            return None
        return received(connection, statements, connection.wait(execute(connection.pgconn)))


def send(connection: Connection, batch: Sequence[Query], *, prepare: bool) -> list[Rows]:
    """Send statements, in whatever transaction there is. Returns the rows of each."""
    if prepare and len(batch) == 1 and (rows := _answer_of_prepared(connection, batch[0])) is not None:
        return [rows]
    if is_plain(connection):
        with connection.lock:
            return connection.wait(exchange(connection, batch, prepare=prepare))
    return _answers_of_cursors(connection, batch, prepare=None if prepare else False)


def _answers_of_cursors(connection: Connection, batch: Sequence[Query], *, prepare: bool | None) -> list[Rows]:
    cursors = [psycopg.RawCursor(connection, row_factory=tuple_row) for _ in batch]
    for cursor in cursors:
        use_standard_loaders(cursor)
    if len(batch) == 1 and not is_pipelined(connection):
        _send(cursors[0], batch[0], prepare=prepare)
    else:
        with connection.pipeline():
            for cursor, query in zip(cursors, batch, strict=True):
                _send(cursor, query, prepare=prepare)
    return [cursor.fetchall() if cursor.rownumber is not None else [] for cursor in cursors]


def _send(cursor: Any, query: Query, *, prepare: bool | None) -> None:
    cursor.execute(query.sql, query.params or None, prepare=prepare, binary=True)


def _roll_back(connection: Connection) -> None:
    if connection.closed or is_free(connection):
        return
    try:
        if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
            # Its answer has not come yet. The server rolls back when the connection is closed.
            connection.close()
        else:
            send(connection, [Query(connections.ROLLBACK)], prepare=False)
    except psycopg.Error:
        connection.close()


def check_encoding(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raise ConfigError for a connection that returns text as bytes."""
    if connection.info.encoding == "ascii":
        raise ConfigError(
            "the connection given has the client_encoding SQL_ASCII, with which psycopg gives text as bytes: "
            "open it with client_encoding='UTF8'"
        )


def is_pipelined(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Return whether you have put the connection into pipeline mode, in which answers come at the end of a block."""
    return connection.pgconn.pipeline_status != PipelineStatus.OFF


def is_free(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Like `is_idle`, for a connection that you may have put into pipeline mode."""
    pgconn = connection.pgconn
    return pgconn.transaction_status == _IDLE and pgconn.pipeline_status != _ABORTED


def is_idle(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Return whether the connection works and has neither an open transaction nor running statements."""
    pgconn = connection.pgconn
    return pgconn.transaction_status == _IDLE and pgconn.pipeline_status == _OFF
