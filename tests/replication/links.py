"""The way from one client to one database, inside its process: it can be closed, silent, or lose answers.

Servers have separate proxies (gates.py). This is for databases that nothing but this process reaches: files, and
dictionaries.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Literal, TypeVar

from threadmark import Saver, TransientStoreError
from threadmark.program import Driver, Transaction

T = TypeVar("T")

Way = Literal["open", "closed", "silent", "deaf"]
"""Whether the database can be reached; not at all; after a while (nothing is answered until it opens); is reached, and
the answer is lost."""

_LOOKS = 0.002


class Link:
    """A driver that passes transactions to another one, as far as the way is open."""

    def __init__(self, driver: Driver, way: Callable[[], Way] | None = None) -> None:
        self._driver = driver
        self._way = way
        self.way: Way = "open"

    def __str__(self) -> str:
        return str(self._driver)

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        while self._is("silent"):
            time.sleep(_LOOKS)
        self._expect("closed")
        result = self._driver.run(transaction)
        self._expect("deaf")
        return result

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""
        while self._is("silent"):  # noqa: ASYNC110 - another process may open the way
            await asyncio.sleep(_LOOKS)
        self._expect("closed")
        result = await self._driver.arun(transaction)
        self._expect("deaf")
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
