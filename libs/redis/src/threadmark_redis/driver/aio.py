"""Like `blocking`, for asyncio: the connections of one event loop."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import redis
from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from threadmark.backends import Pause, TransientStoreError, aplay
from threadmark_redis.driver.connecting import Address, Kind
from threadmark_redis.driver.facts import GREETING, Facts, RefusedError, admitted
from threadmark_redis.driver.failures import failure_of
from threadmark_redis.driver.settings import Settings
from threadmark_redis.driver.topology import UNOPENED, Conversation, Exchange, Outcome
from threadmark_redis.driver.wire import BROKEN, answered, made, packed, refused, whole
from threadmark_redis.steps import Command

CLASSES: dict[Kind, Any] = {
    "tcp": aioredis.Connection,
    "tls": aioredis.SSLConnection,
    "unix": aioredis.UnixDomainSocketConnection,
}

_LONGEST_END = 1.0
"""Seconds to wait until a connection is closed."""


class Link:
    """A connection to one server, which has been greeted when `open` returns."""

    def __init__(self, settings: Settings, address: Address, *, sentinel: bool) -> None:
        self._settings = settings
        self._address = address
        self._sentinel = sentinel
        self._outstanding = False
        self.facts: Facts | None = None
        """The server's facts about itself; None for a Sentinel."""
        servers = settings.servers
        connecting = servers.sentinels if sentinel and servers.sentinels else servers.connecting
        arguments = connecting.arguments(address)
        # With a timeout redis-py sends within `asyncio.wait_for`, which before Python 3.12 may lose a cancellation.
        self._timeout: float | None = arguments["socket_timeout"]
        arguments["socket_timeout"] = None
        self._connection = made(CLASSES[connecting.kind], arguments, Retry(NoBackoff(), 0))

    async def open(self) -> None:
        """Connect, and greet the server."""
        try:
            async with self._in_time():
                await self._connection.connect()
            if not self._sentinel:
                self.facts = admitted(self._address, await self._replies(GREETING), self._settings)
        except BaseException:
            await self.close()
            raise

    @property
    def is_reusable(self) -> bool:
        """Like that of `blocking.Link`."""
        return not self._outstanding and (self.facts is None or self.facts.is_master is not False)

    async def exchange(self, asked: Exchange) -> Outcome:
        """Send commands and return their replies."""
        return answered(asked, await self._replies(whole(asked, self.facts, self._settings)), self.facts)

    async def close(self) -> None:
        """Close the connection in any state, without waiting, so that a cancelled task can call it."""
        with suppress(*BROKEN):
            await self._connection.disconnect(nowait=True)

    async def end(self) -> None:
        """Close the connection and wait until it is closed, but not for long. With TLS both sides must agree."""
        with suppress(*BROKEN, TimeoutError):
            async with asyncio.timeout(_LONGEST_END):
                await self._connection.disconnect()

    async def _replies(self, commands: Sequence[Command]) -> list[Any]:
        self._outstanding = True
        async with self._in_time():
            await self._connection.send_packed_command([packed(commands)], check_health=False)
            replies = [await self._reply() for _ in commands]
        self._outstanding = False
        return replies

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError as error:
            raise redis.TimeoutError(f"Timeout reading from {self._address}") from error

    async def _reply(self) -> Any:
        try:
            return await self._connection.read_response(disable_decoding=True)
        except ResponseError as error:
            return refused(error)


class Pool:
    """Up to `pool_size` connections of one event loop to one server."""

    def __init__(self, settings: Settings, address: Address, *, sentinel: bool) -> None:
        self._settings = settings
        self._address = address
        self._sentinel = sentinel
        self._free = asyncio.Semaphore(settings.pool_size)
        self._idle: list[Link] = []
        self._closed = False

    @asynccontextmanager
    async def lend(self, *, opens: bool) -> AsyncIterator[Link]:
        """Like that of `blocking.Pool`."""
        await self._turn()
        link: Link | None = None
        try:
            link = self._idle.pop() if self._idle else await self._opened(opens=opens)
            yield link
        finally:
            self._free.release()
            if link is not None:
                await self._take_back(link)

    async def close_idle(self) -> None:
        """Close all idle connections, because one of them broke."""
        while self._idle:
            await self._idle.pop().close()

    async def end_idle(self) -> None:
        """Like `close_idle`, in good order, before the loop ends."""
        while self._idle:
            await self._idle.pop().end()

    async def close(self) -> None:
        """Close the idle connections now, and the others when they come back."""
        self._closed = True
        await self.end_idle()

    async def _turn(self) -> None:
        try:
            async with asyncio.timeout(self._settings.timeout):
                await self._free.acquire()
        except TimeoutError as error:
            raise TransientStoreError(
                f"all {self._settings.pool_size} connections to {self._address} have been in use "
                f"for {self._settings.timeout:g} s: give a larger pool_size"
            ) from error

    async def _opened(self, *, opens: bool) -> Link:
        if not opens:
            raise RefusedError(UNOPENED)
        link = Link(self._settings, self._address, sentinel=self._sentinel)
        await link.open()
        return link

    async def _take_back(self, link: Link) -> None:
        if link.is_reusable and not self._closed:
            self._idle.append(link)
        else:
            await link.close()


class Connections:
    """The pools of one event loop, closed when it shuts down."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop) -> None:
        self._settings = settings
        self._loop = loop
        self._pools: dict[Address, Pool] = {}
        self._watch: AsyncGenerator[None, None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def exchange(self, asked: Exchange) -> Outcome:
        """Send commands to a server. Returns the outcome."""
        if self._watch is None:
            # Before a loop ends it closes its asynchronous generators; there is no other sign of the end.
            self._watch = self._until_shutdown()
            await anext(self._watch)
        pool = self._pools.get(asked.address)
        if pool is None:
            pool = self._pools[asked.address] = Pool(self._settings, asked.address, sentinel=asked.sentinel)
        try:
            async with pool.lend(opens=asked.opens) as link:
                return await link.exchange(asked)
        except RefusedError as error:
            return error.refused
        except BROKEN as error:
            await pool.close_idle()  # the cause has probably broken all of them
            return failure_of(error)

    async def aclose(self) -> None:
        """Close every idle connection now, and the others when they come back."""
        for pool in list(self._pools.values()):
            await pool.close()

    def close(self) -> None:
        """Like `aclose`, soon, from any thread: connections are closed by their own loop."""
        with suppress(RuntimeError):  # the loop was closed, with its connections
            self._loop.call_soon_threadsafe(self._begin_closing)

    def _begin_closing(self) -> None:
        self._closing = self._loop.create_task(self.aclose())

    async def _until_shutdown(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._watch = None
            for pool in list(self._pools.values()):
                await pool.end_idle()


async def converse(connections: Connections, conversation: Conversation) -> Any:
    """Like `blocking.converse`, for asyncio."""

    async def answer(asked: Exchange | Pause) -> Outcome | None:
        if isinstance(asked, Pause):
            await asyncio.sleep(asked.seconds)
            return None
        return await connections.exchange(asked)

    return await aplay(conversation, answer)
