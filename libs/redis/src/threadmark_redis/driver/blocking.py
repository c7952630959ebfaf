"""Connections for blocking callers: a pool for each server, and separate connections for the main thread."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from threadmark.backends import Pause, TransientStoreError, may_be_interrupted, play
from threadmark_redis.driver.connecting import Address, Kind
from threadmark_redis.driver.facts import GREETING, Facts, RefusedError, admitted
from threadmark_redis.driver.failures import failure_of
from threadmark_redis.driver.settings import Settings
from threadmark_redis.driver.topology import UNOPENED, Conversation, Exchange, Outcome
from threadmark_redis.driver.wire import BROKEN, answered, made, packed, refused, whole
from threadmark_redis.steps import Command

CLASSES: dict[Kind, Any] = {
    "tcp": redis.Connection,
    "tls": redis.SSLConnection,
    "unix": redis.UnixDomainSocketConnection,
}


class Link:
    """A connection to one server, which has been greeted."""

    def __init__(self, settings: Settings, address: Address, *, sentinel: bool) -> None:
        self._settings = settings
        self._outstanding = False
        self.facts: Facts | None = None
        """The server's facts about itself; None for a Sentinel."""
        servers = settings.servers
        connecting = servers.sentinels if sentinel and servers.sentinels else servers.connecting
        arguments = connecting.arguments(address)
        self._connection = made(CLASSES[connecting.kind], arguments, Retry(NoBackoff(), 0))
        try:
            self._connection.connect()
            if not sentinel:
                self.facts = admitted(address, self._replies(GREETING), settings)
        except BaseException:
            self.close()
            raise

    @property
    def is_reusable(self) -> bool:
        """Return whether every reply has come, and the next change is as durable as the saver requires.

        A replica was not checked for that, and it may become a master.
        """
        return not self._outstanding and (self.facts is None or self.facts.is_master is not False)

    def exchange(self, asked: Exchange) -> Outcome:
        """Send commands and return their replies."""
        return answered(asked, self._replies(whole(asked, self.facts, self._settings)), self.facts)

    def close(self) -> None:
        """Close the connection in any state."""
        with suppress(*BROKEN):
            self._connection.disconnect()

    def _replies(self, commands: Sequence[Command]) -> list[Any]:
        self._outstanding = True
        self._connection.send_packed_command([packed(commands)], check_health=False)
        replies = [self._reply() for _ in commands]
        self._outstanding = False
        return replies

    def _reply(self) -> Any:
        try:
            return self._connection.read_response(disable_decoding=True)
        except ResponseError as error:
            return refused(error)


class Pool:
    """Up to `pool_size` connections to one server, opened when they are first needed. The last one used is lent first.

    The main thread is not counted: an interrupt may end it at any instruction, and would lose its connection.
    """

    def __init__(self, settings: Settings, address: Address, *, sentinel: bool) -> None:
        self._settings = settings
        self._address = address
        self._sentinel = sentinel
        self._free = threading.Semaphore(settings.pool_size)
        self._idle: list[Link] = []
        self._closed = False

    @contextmanager
    def lend(self, *, opens: bool) -> Iterator[Link]:
        """Lend a connection, after waiting if all are in use. One that comes back with a reply missing is closed.

        Raises RefusedError if one would have to be opened and `opens` is false.
        """
        counted = not may_be_interrupted()
        if counted and not self._free.acquire(timeout=max(self._settings.timeout, 0)):
            raise TransientStoreError(
                f"all {self._settings.pool_size} connections to {self._address} have been in use "
                f"for {self._settings.timeout:g} s: give a larger pool_size"
            )
        link: Link | None = None
        try:
            link = self._taken() or self._opened(opens=opens)
            yield link
        finally:
            if link is not None:
                self._take_back(link)
            if counted:
                self._free.release()

    def close_idle(self) -> None:
        """Close all idle connections."""
        while (link := self._taken()) is not None:
            link.close()

    def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        self._closed = True
        self.close_idle()

    def _opened(self, *, opens: bool) -> Link:
        if not opens:
            raise RefusedError(UNOPENED)
        return Link(self._settings, self._address, sentinel=self._sentinel)

    def _taken(self) -> Link | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _take_back(self, link: Link) -> None:
        if link.is_reusable:
            self._idle.append(link)
        else:
            link.close()
        if self._closed:  # perhaps closed only just now
            self.close_idle()


class Connections:
    """The pools of one process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._changing = threading.Lock()
        self._pools: dict[Address, Pool] = {}

    def exchange(self, asked: Exchange) -> Outcome:
        """Send commands to a server. Returns the outcome."""
        pool = self._pool(asked)
        try:
            with pool.lend(opens=asked.opens) as link:
                return link.exchange(asked)
        except RefusedError as error:
            return error.refused
        except BROKEN as error:
            pool.close_idle()  # the cause has probably broken all of them
            return failure_of(error)

    def close(self) -> None:
        """Close every idle connection now, and the others when they come back."""
        for pool in list(self._pools.values()):
            pool.close()

    def _pool(self, asked: Exchange) -> Pool:
        pool = self._pools.get(asked.address)
        if pool is None:
            with self._changing:
                pool = self._pools.setdefault(
                    asked.address, Pool(self._settings, asked.address, sentinel=asked.sentinel)
                )
        return pool


def converse(connections: Connections, conversation: Conversation) -> Any:
    """Run a conversation to its end. Returns its result."""

    def answer(asked: Exchange | Pause) -> Outcome | None:
        if isinstance(asked, Pause):
            time.sleep(asked.seconds)
            return None
        return connections.exchange(asked)

    return play(conversation, answer)
