"""Connections of the page's server: half a request keeps none for long, and many of them keep no client out."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_WAITING = 100
"""Connections that have sent no whole request. With one more, the one that has waited longest is closed."""

REQUEST_SECONDS = 20.0
"""How long a request may take to arrive, its body included."""

_QUIET_SECONDS = 60.0


class Waiting:
    """The connections of a server that wait for a request, or for the rest of one, in the order in which they began."""

    def __init__(self, most: int = MOST_WAITING, seconds: float = REQUEST_SECONDS) -> None:
        self._most, self._seconds = most, seconds
        self._timers: dict[PageConnection, asyncio.TimerHandle] = {}

    def add(self, connection: "PageConnection") -> None:
        """Let a connection wait, and close the oldest one if they are too many."""
        if connection in self._timers:
            return
        self._timers[connection] = connection.loop.call_later(self._seconds, self._close, connection)
        if len(self._timers) > self._most:
            self._close(next(iter(self._timers)))

    def remove(self, connection: "PageConnection") -> None:
        """Forget a connection whose request is whole, or that is closed."""
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _close(self, connection: "PageConnection") -> None:
        self.remove(connection)
        connection.transport.abort()


class PageConnection(H11Protocol):
    """uvicorn's connection, whose requests have to arrive in time."""

    def __init__(self, *args: Any, waiting: Waiting, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waiting = waiting

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._waiting.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._waiting.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and wait no longer if the request is whole."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        waits = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing()
        (self._waiting.add if waits else self._waiting.remove)(self)


class OnceAMinute(logging.Filter):
    """Lets a message pass once a minute: a client can cause any number of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._last: dict[object, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        kind, now = (record.name, record.msg), self._clock()
        passes = now - self._last.get(kind, float("-inf")) >= _QUIET_SECONDS
        if passes:
            self._last = {each: at for each, at in self._last.items() if now - at < _QUIET_SECONDS} | {kind: now}
        return passes


def quiet(*names: str) -> None:
    """Let loggers of servers repeat themselves once a minute only."""
    for name in names:
        logger = logging.getLogger(name)
        if not any(isinstance(each, OnceAMinute) for each in logger.filters):
            logger.addFilter(OnceAMinute())
