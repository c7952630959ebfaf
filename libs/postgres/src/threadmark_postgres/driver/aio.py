"""Like `blocking`, for asyncio: a pool of one event loop, or what the user gave."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

import psycopg
from psycopg.errors import UniqueViolation
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from threadmark.errors import ClosedError, ConfigError, StoreError, ThreadmarkError, TransientStoreError
from threadmark_postgres import sql
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver.batching import MOST, split_rows, together
from threadmark_postgres.driver.blocking import check_encoding, is_free, is_idle, is_pipelined
from threadmark_postgres.driver.cancellation import stopped
from threadmark_postgres.driver.conversation import Conversation
from threadmark_postgres.driver.exchange import exchange, is_plain
from threadmark_postgres.driver.pipelines import pipeline
from threadmark_postgres.driver.settings import Settings
from threadmark_postgres.steps import Query, Rows

Connection = psycopg.AsyncConnection[Any]


class ConnectionSource(Protocol):
    """Where connections come from. One that comes back in a transaction, or broken, is not lent again."""

    def lend(self) -> Any:
        """An asyncio context that holds a connection in autocommit mode."""

    async def forget_idle(self, longest: float) -> None:
        """Stop lending connections opened before now, as the server has gone. Takes `longest` seconds at most."""

    def close(self) -> None:
        """Close the connections, unless they are the user's."""


class LoopPool:
    """Up to `pool_size` connections of one event loop, closed when the loop shuts down.

    Giving a connection back and closing never await, so that a cancelled task cannot be stopped in the
    middle.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free = asyncio.Semaphore(settings.pool_size)
        self._idle: list[Connection] = []
        self._closed = False
        self._watch: AsyncGenerator[None, None] | None = None

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """Lend a connection, after waiting if all are in use."""
        if self._watch is None:
            # A loop closes its asynchronous generators before it ends, and tells nobody else.
            self._watch = self._until_shutdown()
            await anext(self._watch)
        await self._turn()
        connection: Connection | None = None
        try:
            connection = self._idle.pop() if self._idle else await self._connect()
            yield connection
        except (psycopg.Error, ThreadmarkError, asyncio.CancelledError):
            raise
        except BaseException:
            # A signal's handler may have raised it anywhere in psycopg, whose state nobody knows then.
            if connection is not None:
                connection.pgconn.finish()
            raise
        finally:
            if connection is not None:
                self._take_back(connection)
            self._free.release()

    async def forget_idle(self, longest: float) -> None:  # noqa: ARG002 - it takes no time
        """Close all idle connections."""
        self._finish_idle()

    def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        self._closed = True
        self._finish_idle()

    async def _turn(self) -> None:
        if not self._free.locked():  # a timeout costs more than the rest
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._settings.timeout):
                await self._free.acquire()
        except TimeoutError as error:
            raise TransientStoreError(
                f"all {self._settings.pool_size} connections have been in use "
                f"for {self._settings.timeout:g} s: give a larger pool_size"
            ) from error

    async def _connect(self) -> Connection:
        connection: Connection = await psycopg.AsyncConnection.connect(**self._settings.connecting())
        register_dumpers(connection)
        return connection

    def _finish_idle(self) -> None:
        while self._idle:
            connection = self._idle.pop()
            connection.pgconn.finish()

    def _take_back(self, connection: Connection) -> None:
        if self._closed or not is_idle(connection):
            connection.pgconn.finish()
        else:
            self._idle.append(connection)

    async def _until_shutdown(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._finish_idle()
            self._watch = None


class BorrowedConnection:
    """A connection, or a pool's connections, that the user opened and will close."""

    def __init__(self, lend: Callable[[], Any], check: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        self._lend = lend
        self._check = check
        self._looking: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made_on = running_loop()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that uses it, or None if that is not known yet."""
        return self._loop or self._made_on

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Connection]:
        """Lend the connection, in autocommit mode until it comes back."""
        self._bind_to_loop()
        async with self._lend() as connection:
            if connection.closed:
                raise ClosedError("the connection given was closed; make a new saver, from a URL to have it reconnect")
            if not is_free(connection):
                raise StoreError("the connection given has an open transaction: commit it or roll it back first")
            check_encoding(connection)
            register_dumpers(connection)
            before, pipelined = connection.autocommit, is_pipelined(connection)
            try:
                if not before:
                    await connection.set_autocommit(True)
                yield connection
            except BaseException:
                await _roll_back(connection)
                if is_pipelined(connection) != pipelined:  # an interrupt left a pipeline of ours open
                    connection.pgconn.finish()
                raise
            finally:
                if not before and is_free(connection):
                    await connection.set_autocommit(before)

    async def forget_idle(self, longest: float) -> None:
        """Let a pool check its connections, for `longest` seconds at most. `blocking.BorrowedConnection` says why."""
        if self._check is not None:
            # A check that is stopped would lose the connections that it has taken out of the pool.
            looking = asyncio.create_task(self._check())
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)
            await asyncio.wait([looking], timeout=longest)

    def close(self) -> None:
        """Does nothing, because the connections are the user's."""

    def _bind_to_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise ConfigError(
                "this saver's asyncio connection belongs to another event loop: give a URL instead, "
                "then one saver serves any number of loops"
            )
        self._loop = loop


class StatementBatcher:
    """Lets the tasks that add in the same turn of an event loop share a statement."""

    def __init__(self, ask: Callable[[Query], Awaitable[Rows]]) -> None:
        self._ask = ask
        self._waiting: dict[str, list[_Member]] = {}
        self._answering: dict[asyncio.Task[None], Sequence[_Member]] = {}

    async def rows(self, query: Query) -> Rows:
        """Return this caller's rows of the shared answer, or none if its program has to run alone."""
        loop = asyncio.get_running_loop()
        member = _Member(query, loop.create_future())
        kind = query.kind or query.sql
        waiting = self._waiting.setdefault(kind, [])
        waiting.append(member)
        if len(waiting) == MOST:
            self._set_out(kind)
        else:  # each asks for it: where an interrupt lost the first one's call, nobody would set out any more
            loop.call_soon(self._set_out, kind)
        try:
            rows = await member.rows
        except asyncio.CancelledError:
            await self._leave(member)
            raise
        if rows is None:
            (rows,) = await self._answers([query])
        return rows

    def _set_out(self, kind: str) -> None:
        members = [member for member in self._waiting.pop(kind, ()) if not member.rows.done()]
        if len(members) == 1:
            members[0].rows.set_result(None)
        elif members:
            # In a task of its own, because no member may be stopped when another is cancelled.
            task = asyncio.create_task(self._answer(members))
            self._answering[task] = members
            task.add_done_callback(self._answering.pop)

    async def _leave(self, member: "_Member") -> None:
        """Stop a statement when its last waiter leaves."""
        for task, members in list(self._answering.items()):
            if any(other is member for other in members) and all(other.rows.cancelled() for other in members):
                await stopped(task)

    async def _answer(self, members: Sequence["_Member"]) -> None:
        answers: list[Rows] = []
        try:
            answers = await self._answers([member.query for member in members])
        except ThreadmarkError as error:
            for member in members:
                if not member.rows.done():
                    member.rows.set_exception(error)
        finally:
            for index, member in enumerate(members):
                if not member.rows.done():
                    member.rows.set_result(answers[index] if answers else [])

    async def _answers(self, queries: Sequence[Query]) -> list[Rows]:
        try:
            return split_rows(await self._ask(together(queries)), len(queries))
        except ThreadmarkError:
            raise  # of the pool, not of the statement
        except Exception:  # noqa: BLE001 - whose fault it is shows when each program runs by itself
            return [[] for _ in queries]


class _Member(NamedTuple):
    """A task in a batch, and the future for its rows (None if it is alone)."""

    query: Query
    rows: asyncio.Future[Rows | None]


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def converse(connection: Connection, conversation: Conversation, *, prepare: bool) -> Any:
    """Like `blocking.converse`, for asyncio."""
    try:
        batch = next(conversation)
        while True:
            try:
                answers = await _answers(connection, batch, prepare=prepare)
            except UniqueViolation as error:  # it may know what to do; if not, the error passes through
                batch = conversation.throw(error)
            else:
                batch = conversation.send(answers)
    except StopIteration as stop:
        return stop.value
    except Exception:
        await _roll_back(connection)
        raise
    finally:  # what a cancelled task leaves open, the lender ends
        conversation.close()


async def answer(connection: Connection, query: Query, *, prepare: bool) -> Rows:
    """Like `blocking.answer`, for asyncio."""
    try:
        (rows,) = await _answers(connection, (query,), prepare=prepare)
    except Exception:
        await _roll_back(connection)
        raise
    return rows


async def _answers(connection: Connection, batch: Sequence[Query], *, prepare: bool) -> list[Rows]:
    if is_plain(connection):
        async with connection.lock:
            return await connection.wait(exchange(connection, batch, prepare=prepare))
    return await _answers_of_cursors(connection, batch, prepare=None if prepare else False)


async def _answers_of_cursors(connection: Connection, batch: Sequence[Query], *, prepare: bool | None) -> list[Rows]:
    cursors = [psycopg.AsyncRawCursor(connection, row_factory=tuple_row) for _ in batch]
    if len(batch) == 1 and not is_pipelined(connection):
        await _send(cursors[0], batch[0], prepare=prepare)
    else:
        async with pipeline(connection):
            for cursor, query in zip(cursors, batch, strict=True):
                await _send(cursor, query, prepare=prepare)
    return [await cursor.fetchall() if cursor.rownumber is not None else [] for cursor in cursors]


async def _send(cursor: Any, query: Query, *, prepare: bool | None) -> None:
    await cursor.execute(query.sql, query.params or None, prepare=prepare, binary=True)


async def _roll_back(connection: Connection) -> None:
    if connection.closed or is_free(connection):
        return
    try:
        if connection.pgconn.transaction_status != TransactionStatus.ACTIVE:
            await _answers(connection, [Query(sql.ROLLBACK)], prepare=False)
    except psycopg.Error:
        pass
    finally:
        if not is_free(connection):
            connection.pgconn.finish()
