"""The way from one client to one database, inside its process: it can be closed, silent, or lose answers; or all ends.

Servers have proxies of their own (gates.py). This is for databases that nothing but this process reaches: files, and
dictionaries.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from threadmark import Saver, TransientStoreError
from threadmark.program import Driver, Transaction

T = TypeVar("T")

Way = Literal["open", "closed", "silent", "deaf"]
"""Whether the database can be reached; not at all; after a while (nothing is answered until it opens); or is reached,
and the answer is lost."""

_LOOKS = 0.002


class Killed(BaseException):
    """Stands for SIGKILL where a client is no process of its own: nothing it passes may catch it."""


class Link:
    """A driver that passes transactions to another one, as far as the way is open."""

    def __init__(self, driver: Driver, way: Callable[[], Way] | None = None) -> None:
        self._driver = driver
        self._way = way
        self.way: Way = "open"
        self.held = 0
        """How many transactions wait for a silent way to open."""
        self.kill: Callable[[], None] = _lives
        """Is called before and after every transaction, and may raise Killed."""

    def __str__(self) -> str:
        return str(self._driver)

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        self.kill()
        if self._is("silent"):
            self.held += 1
            while self._is("silent"):
                time.sleep(_LOOKS)
            self.held -= 1
        self._expect("closed")
        result = self._driver.run(transaction)
        self._expect("deaf")
        self.kill()
        return result

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""
        self.kill()
        if self._is("silent"):
            self.held += 1
            while self._is("silent"):  # noqa: ASYNC110 - what opens the way may be another process
                await asyncio.sleep(_LOOKS)
            self.held -= 1
        self._expect("closed")
        result = await self._driver.arun(transaction)
        self._expect("deaf")
        self.kill()
        return result

    def close(self) -> None:
        """Leave the driver open: it is others', too."""

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""

    def _is(self, way: Way) -> bool:
        return (self._way() if self._way else self.way) == way

    def _expect(self, way: Way) -> None:
        if self._is(way):
            raise TransientStoreError(f"the way to {self} is {way}")


def linked(saver: Saver, way: Callable[[], Way] | None = None) -> tuple[Saver, Link]:
    """Return a saver over the same database behind a link, and the link."""
    link = Link(saver._driver, way)
    return Saver(saver._store, link), link


class Death:
    """Ends one client at the given transaction of a thread, counted over its links: before it, or after its commit."""

    def __init__(self, links: list[Link]) -> None:
        self._links = links
        self._left = -1
        self._thread = 0
        self.came = False
        for link in links:
            link.kill = self._count

    def at(self, moments: int) -> None:
        """Let so many moments pass, of which each transaction of the calling thread has two."""
        self._left, self._thread = moments, threading.get_ident()

    def _count(self) -> None:
        if self.came:
            raise TransientStoreError("the client is dead, and its other threads know nothing of it")
        if self._left < 0 or threading.get_ident() != self._thread:
            return
        self._left -= 1
        if self._left < 0:
            self.came = True
            raise Killed


def _lives() -> None:
    pass
