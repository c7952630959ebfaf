"""Waiting for the server on an event loop, with less work than psycopg's own `wait`.

For each answer, psycopg's `wait` sets a timer and cancels it, so that a signal is noticed even if nothing else wakes
the loop. Here it is only used in rare cases: statements that do not fit into the socket at once, and cancelled waiters.
"""

import asyncio
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

T = TypeVar("T")

# As in `exchange`, not to be looked up in their enumerations.
_WAIT_R, _READY_R = Wait.R, Ready.R


async def answered(connection: psycopg.AsyncConnection[Any], statement: PQGen[T]) -> T:
    """Like `connection.wait`."""
    try:
        awaited = next(statement)
        while awaited == _WAIT_R:
            try:
                await _until_readable(connection.pgconn.socket)
            except OSError:  # of a socket that was closed, for which psycopg has its own error
                break
            except BaseException as error:
                await connection.wait(_UnderWay(statement, awaited, error))
                raise
            awaited = statement.send(_READY_R)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # a generator's result is untyped in StopIteration
    return await connection.wait(_UnderWay(statement, awaited))


async def _until_readable(socket: int) -> None:
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(socket, _tell, readable)
    try:
        await readable
    finally:
        loop.remove_reader(socket)


def _tell(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


class _UnderWay(Generator[Wait, Ready | int, T]):
    """A statement that was begun, as psycopg's `wait` takes it over.

    With an error, it begins with that, as if the error had been raised there: psycopg then has the server stop the
    statement, and goes on to its end.
    """

    def __init__(self, statement: PQGen[T], awaited: Wait, error: BaseException | None = None) -> None:
        self._statement = statement
        self._awaited = awaited
        self._error = error

    def send(self, ready: Ready | int | None) -> Wait:
        """Begin with None, as every generator does."""
        if ready is not None:
            return self._statement.send(ready)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._awaited

    def throw(self, *error: Any) -> Wait:
        """Let the statement have the error."""
        return self._statement.throw(*error)
