"""The connections that a saver opened for one event loop."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

import psycopg

from threadmark.backends import ConfigError, ThreadmarkError, TransientStoreError
from threadmark_postgres.arrays import register_dumpers
from threadmark_postgres.driver.blocking import is_idle
from threadmark_postgres.driver.settings import Settings

Connection = psycopg.AsyncConnection[Any]


class LoopPool:
    """Up to `pool_size` connections of one event loop, closed when the loop shuts down.

    Giving a connection back and closing never await, so that a cancelled task cannot be stopped in the middle.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._free = settings.pool_size
        """How many more connections may be lent now. A semaphore is written in Python, and slower."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle: list[Connection] = []
        self._closed = False
        self._watch: AsyncGenerator[None, None] | None = None

    def lend(self) -> "_Loan":
        """Lend a connection, after waiting if all are in use."""
        return _Loan(self)

    async def take(self) -> Connection:
        """Wait for a connection. You must give it back."""
        if self._watch is None:
            # Before a loop ends it closes its asynchronous generators; there is no other sign of the end.
            self._watch = self._until_shutdown()
            await anext(self._watch)
        if self._free:
            self._free -= 1
        else:
            await self._wait()
        try:
            return self._idle.pop() if self._idle else await self._connect()
        except BaseException:
            self._let_next()
            raise

    def give_back(self, connection: Connection) -> None:
        """Make a connection available to others, if it is in order."""
        try:
            if self._closed or not is_idle(connection):
                connection.pgconn.finish()
            else:
                self._idle.append(connection)
        finally:
            self._let_next()

    async def forget_idle(self, longest: float) -> None:  # noqa: ARG002 - it takes no time
        """Close all idle connections."""
        self._finish_idle()

    def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        self._closed = True
        self._finish_idle()

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._settings.timeout):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # the connection came together with the error
                self._let_next()
            if isinstance(error, TimeoutError):
                raise TransientStoreError(
                    f"all {self._settings.pool_size} connections have been in use "
                    f"for {self._settings.timeout:g} s: give a larger pool_size"
                ) from error
            raise

    def _let_next(self) -> None:
        """Pass the right to a connection on to the longest waiting task."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def _connect(self) -> Connection:
        _expect_readers(asyncio.get_running_loop())
        connection: Connection = await psycopg.AsyncConnection.connect(**self._settings.connecting())
        register_dumpers(connection)
        return connection

    def _finish_idle(self) -> None:
        while self._idle:
            connection = self._idle.pop()
            connection.pgconn.finish()

    async def _until_shutdown(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._finish_idle()
            self._watch = None


def _expect_readers(loop: asyncio.AbstractEventLoop) -> None:
    """Raise ConfigError for an event loop that psycopg cannot use."""
    if type(loop).add_reader is asyncio.AbstractEventLoop.add_reader:  # which is not implemented
        raise ConfigError(
            f"Postgres cannot be used with asyncio on a {type(loop).__name__}, which has no add_reader, such as the "
            "default loop of Windows: run your program by asyncio.Runner(loop_factory=asyncio.SelectorEventLoop), or "
            "call the blocking methods"
        )


class _Loan:
    """A context that holds a connection of a pool."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: LoopPool) -> None:
        self._pool = pool

    async def __aenter__(self) -> Connection:
        self._connection = await self._pool.take()
        return self._connection

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        if error is not None and not isinstance(error, (psycopg.Error, ThreadmarkError, asyncio.CancelledError)):
            # A signal handler may have raised it anywhere in psycopg, whose state is then unknown.
            self._connection.pgconn.finish()
        self._pool.give_back(self._connection)
