"""Like `blocking`, for asyncio: your own connections, statements that tasks share, and conversations."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

import psycopg
from psycopg.generators import execute
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from threadmark.backends import ClosedError, ConfigError, StoreError, ThreadmarkError, aplay, in_spite_of_cancelling
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver.batching import MOST, Batch
from threadmark_postgres.driver.blocking import check_encoding, is_free, is_pipelined
from threadmark_postgres.driver.cancellation import stopped
from threadmark_postgres.driver.conversation import Conversation
from threadmark_postgres.driver.exchange import exchange, is_plain, received, send_prepared, use_standard_loaders
from threadmark_postgres.driver.pipelines import pipeline
from threadmark_postgres.driver.waiting import answered
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query, Rows

Connection = psycopg.AsyncConnection[Any]


class ConnectionSource(Protocol):
    """A source of connections. One that comes back in a transaction, or broken, is not lent again."""

    def lend(self) -> Any:
        """An asyncio context that holds a connection in autocommit mode."""

    async def forget_idle(self, longest: float) -> None:
        """Stop lending connections opened before now, as the server was lost. Takes at most `longest` seconds."""

    def close(self) -> None:
        """Close the connections, unless you passed them."""


class BorrowedConnection:
    """A connection or a pool that you opened and will close."""

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
                if is_pipelined(connection) != pipelined:  # an interrupt left this driver's pipeline open
                    connection.pgconn.finish()
                raise
            finally:
                if not before and is_free(connection):
                    await connection.set_autocommit(before)

    async def forget_idle(self, longest: float) -> None:
        """Let a pool check its connections, for `longest` seconds at most. `blocking.BorrowedConnection` says why."""
        if self._check is not None:
            # A check that is stopped loses the connections that it has taken out of the pool.
            looking = asyncio.create_task(self._check())
            self._looking.add(looking)
            looking.add_done_callback(self._looking.discard)
            await asyncio.wait([looking], timeout=longest)

    def close(self) -> None:
        """Does nothing, because the connections are yours."""

    def _bind_to_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            raise ConfigError(
                "this saver's asyncio connection belongs to another event loop: give a URL instead, "
                "then one saver serves any number of loops"
            )
        self._loop = loop


class PoolLoan:
    """A connection of a pool that you opened. It goes back even if the borrower is cancelled at that moment.

    A pool whose `putconn` is cancelled loses the connection, and never opens another one for it.
    """

    def __init__(self, pool: Any) -> None:
        self._loan = pool.connection()

    async def __aenter__(self) -> Connection:
        connection: Connection = await self._loan.__aenter__()
        return connection

    async def __aexit__(self, *raised: object) -> None:
        await in_spite_of_cancelling(self._loan.__aexit__(*raised))


class StatementBatcher:
    """Sends the statements of tasks that add in the same turn of an event loop together.

    Each task lets the turn end. The first to go on leads: it sends all statements that have come by then, perhaps only
    its own.
    """

    def __init__(self, ask: Callable[[Sequence[Query]], Awaitable[list[Rows]]]) -> None:
        self._ask = ask
        self._waiting: list[_Member] = []
        self._answering: dict[asyncio.Task[None], Sequence[asyncio.Future[Rows]]] = {}

    async def rows(self, query: Query) -> Rows:
        """Return this caller's rows of the shared answer, or none if its program has to run alone."""
        member = _Member(query)
        try:
            self._waiting.append(member)
            if len(self._waiting) < MOST:
                await asyncio.sleep(0)
            if member.answer is None:
                # If an interrupt struck the leader, its list is gone, and each of the others runs alone.
                members, self._waiting = self._waiting, []
                if len(members) > 1:
                    self._set_out(members)
            if member.answer is not None:
                return await member.answer
        except asyncio.CancelledError:
            await self._leave(member)
            raise
        (rows,) = await self._answers([query])
        return rows

    def _set_out(self, members: Sequence["_Member"]) -> None:
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Rows]] = [loop.create_future() for _ in members]
        # In a separate task, because no member may be stopped when another one is cancelled.
        task = loop.create_task(self._answer([member.query for member in members], answers))
        self._answering[task] = answers
        task.add_done_callback(self._answering.pop)
        for member, answer in zip(members, answers, strict=True):  # not before an answer is certain
            member.answer = answer

    async def _leave(self, member: "_Member") -> None:
        """Stop a statement when its last waiter leaves."""
        if member.answer is None:
            if member in self._waiting:
                self._waiting.remove(member)
            return
        member.answer.cancel()
        for task, answers in list(self._answering.items()):
            if any(answer is member.answer for answer in answers) and all(answer.cancelled() for answer in answers):
                await stopped(task)

    async def _answer(self, queries: Sequence[Query], answers: Sequence[asyncio.Future[Rows]]) -> None:
        found: list[Rows] = []
        try:
            found = await self._answers(queries)
        except ThreadmarkError as error:
            for answer in answers:
                if not answer.done():
                    answer.set_exception(error)
        finally:
            for index, answer in enumerate(answers):
                if not answer.done():
                    answer.set_result(found[index] if found else [])

    async def _answers(self, queries: Sequence[Query]) -> list[Rows]:
        try:
            batch = Batch(queries)
            return batch.rows(await self._ask(batch.queries))
        except ThreadmarkError:
            raise  # raised by the pool, not by the statement
        except Exception:  # noqa: BLE001 - whose fault it is shows when each program runs by itself
            return [[] for _ in queries]


class _Member:
    """A task in a batch."""

    __slots__ = ("answer", "query")

    def __init__(self, query: Query) -> None:
        self.query = query
        self.answer: asyncio.Future[Rows] | None = None
        """Its rows, if it shares a statement."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def converse(connection: Connection, conversation: Conversation, *, prepare: bool) -> Any:
    """Like `blocking.converse`, for asyncio."""
    try:
        return await aplay(conversation, partial(send, connection, prepare=prepare))
    except Exception:  # the source ends a transaction that a cancelled task leaves open
        await _roll_back(connection)
        raise


async def answers(connection: Connection, queries: Sequence[Query], *, prepare: bool) -> list[Rows]:
    """Like `blocking.answers`, for asyncio."""
    try:
        return await send(connection, queries, prepare=prepare)
    except Exception:
        await _roll_back(connection)
        raise


async def _answer_of_prepared(connection: Connection, query: Query) -> Rows | None:
    """Like `blocking._answer_of_prepared`, for asyncio."""
    if not is_plain(connection):
        return None
    async with connection.lock:
        statements = send_prepared(connection, query)
        if statements is None:
            return None
        return received(connection, statements, await answered(connection, execute(connection.pgconn)))


async def send(connection: Connection, batch: Sequence[Query], *, prepare: bool) -> list[Rows]:
    """Send statements, in whatever transaction there is. Returns the rows of each."""
    if prepare and len(batch) == 1 and (rows := await _answer_of_prepared(connection, batch[0])) is not None:
        return [rows]
    if is_plain(connection):
        async with connection.lock:
            return await answered(connection, exchange(connection, batch, prepare=prepare))
    return await _answers_of_cursors(connection, batch, prepare=None if prepare else False)


async def _answers_of_cursors(connection: Connection, batch: Sequence[Query], *, prepare: bool | None) -> list[Rows]:
    cursors = [psycopg.AsyncRawCursor(connection, row_factory=tuple_row) for _ in batch]
    for cursor in cursors:
        use_standard_loaders(cursor)
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
            await send(connection, [Query(connections.ROLLBACK)], prepare=False)
    except psycopg.Error:
        pass
    finally:
        if not is_free(connection):
            connection.pgconn.finish()
