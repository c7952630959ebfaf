"""The driver for both APIs: it runs programs over connections of this process and of each event loop."""

import asyncio
import os
import threading
import time
from typing import Any

from threadmark.backends import ClosedError, Step, Transaction, close_at_exit, reset_after_fork, was_closed
from threadmark_redis.driver import aio, blocking
from threadmark_redis.driver.conversation import conversation
from threadmark_redis.driver.facts import Facts
from threadmark_redis.driver.failures import Retries
from threadmark_redis.driver.log import log
from threadmark_redis.driver.router import Router
from threadmark_redis.driver.settings import Settings
from threadmark_redis.driver.topology import Conversation

_inherited: list[object] = []
"""Connections that a fork carried into this process. They are kept, because closing them could touch the parent's."""


class RedisDriver:
    """Runs programs on one server, a cluster, or the master that Sentinels name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._router = Router(settings)
        self._changing = threading.Lock()
        self._connections: blocking.Connections | None = None
        self._of_loops: dict[asyncio.AbstractEventLoop, aio.Connections] = {}
        self._process = os.getpid()
        self._closed = False
        reset_after_fork(self)
        close_at_exit(self)

    def __str__(self) -> str:
        return str(self._settings)

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        begun = time.monotonic()
        talk = conversation(self._router, self._settings, transaction)
        try:
            return self._converse(talk)
        finally:
            self._look_back(transaction, begun)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        begun = time.monotonic()
        talk = conversation(self._router, self._settings, transaction)
        try:
            return await self._aconverse(talk)
        finally:
            self._look_back(transaction, begun)

    async def aanswer(self, step: Step, retries: Retries) -> Any:
        """Return the answer to a step outside of any transaction."""
        return await self._aconverse(self._router.answer(step, retries))

    def start(self) -> None:
        """Connect to every master, check its durability, and whether this release may write."""
        self._converse(self._router.start(self._router.retries()))
        self._router.format.expect(writes=True)

    async def astart(self) -> None:
        """Like `start`, for asyncio."""
        await self._aconverse(self._router.start(self._router.retries()))
        self._router.format.expect(writes=True)

    def survey(self) -> list[tuple[Facts, bool]]:
        """Return each master's facts about itself, and whether it runs scripts."""
        found: list[tuple[Facts, bool]] = self._converse(self._router.survey(self._router.retries()))
        return found

    async def asurvey(self) -> list[tuple[Facts, bool]]:
        """Like `survey`, for asyncio."""
        found: list[tuple[Facts, bool]] = await self._aconverse(self._router.survey(self._router.retries()))
        return found

    def warnings(self, facts: Facts) -> list[str]:
        """Return warnings about a server."""
        return self._router.warnings(facts)

    def close(self) -> None:
        """Close every connection, also those of other event loops. Running calls are finished."""
        for each in self._give_up():
            each.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        loop = asyncio.get_running_loop()
        own = self._of_loops.get(loop)
        for each in self._give_up():
            if each is own:
                await own.aclose()
            else:
                each.close()

    def _reset_after_fork(self) -> None:
        """In the child of a fork, replace the lock: a thread that does not exist there may hold it."""
        self._changing = threading.Lock()

    def _give_up(self) -> list[blocking.Connections | aio.Connections]:
        """Refuse further calls. Returns the connections to close."""
        with self._changing:
            self._closed = True
            found: list[blocking.Connections | aio.Connections] = []
            if self._process == os.getpid():
                found += self._of_loops.values()
                found += [self._connections] if self._connections is not None else []
        was_closed(self)
        return found

    def _converse(self, talk: Conversation) -> Any:
        try:
            return blocking.converse(self._connections_of_process(), talk)
        finally:
            if log.noted:
                log.flush()

    async def _aconverse(self, talk: Conversation) -> Any:
        try:
            return await aio.converse(self._connections_of_loop(), talk)
        finally:
            if log.noted:
                log.flush()

    def _look_back(self, transaction: Transaction[Any], begun: float) -> None:
        seconds = time.monotonic() - begun
        if seconds >= self._settings.slow:
            log.note_slow(self._settings, seconds, transaction)
            log.flush()

    def _connections_of_process(self) -> blocking.Connections:
        with self._changing:
            self._check_process()
            if self._connections is None:
                self._connections = blocking.Connections(self._settings)
            return self._connections

    def _connections_of_loop(self) -> aio.Connections:
        with self._changing:
            self._check_process()
            loop = asyncio.get_running_loop()
            if loop not in self._of_loops:
                for ended in [other for other in self._of_loops if other.is_closed()]:
                    del self._of_loops[ended]
                self._of_loops[loop] = aio.Connections(self._settings, loop)
            return self._of_loops[loop]

    def _check_process(self) -> None:
        if self._closed:
            raise ClosedError
        if self._process != os.getpid():
            _inherited.extend([self._connections, self._of_loops])
            self._connections, self._of_loops, self._process = None, {}, os.getpid()
            close_at_exit(self)
