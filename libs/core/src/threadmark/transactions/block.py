"""`SaverTransaction`: a block whose calls are stored together or not at all. Backends open and end it."""

import threading
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from threadmark.errors import ConfigError
from threadmark.program import Driver
from threadmark.runtime.blocks import enter, expect_outside, leave

S_co = TypeVar("S_co", covariant=True)
Other = TypeVar("Other")


class HeldTransaction(Driver, Protocol):
    """A transaction of a database that a block begins and ends.

    As a driver it runs each program in a savepoint, so that a program that fails leaves nothing behind, and the
    transaction can go on. Before it begins and after it has ended, it raises ClosedError.
    """

    def begin(self) -> None:
        """Begin it, after waiting for others if it has to."""

    async def abegin(self) -> None:
        """Like `begin`, for asyncio."""

    def end(self, *, commit: bool) -> None:
        """Commit it, or roll it back, which raises nothing."""

    async def aend(self, *, commit: bool) -> None:
        """Like `end`, for asyncio."""


class SaverTransaction(Generic[S_co]):
    """A transaction for a `with` or `async with` block. `Saver.transaction` makes it.

    Everything that is stored through `saver` is committed when the block ends, or dropped if the block raises.
    """

    def __init__(self, driver: object, held: HeldTransaction, saver: S_co) -> None:
        self._driver = driver
        self.is_open = False
        """Whether the block has begun and not ended."""
        self._held = held
        self._saver = saver
        self._entered = threading.Lock()
        """Acquired once: a second beginning would take the place of the first one, and lose what that stored."""

    @property
    def saver(self) -> S_co:
        """The saver whose calls belong to the transaction. Threads and tasks of the block may share it."""
        return self._saver

    def _for_saver(self, saver: Other) -> "SaverTransaction[Other]":
        """Return the same transaction with another saver, which is made of this one."""
        return SaverTransaction(self._driver, self._held, saver)

    def __enter__(self) -> Self:
        self._expect_first()
        self._held.begin()
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leave()
        finally:
            self._held.end(commit=kind is None)

    async def __aenter__(self) -> Self:
        self._expect_first()
        await self._held.abegin()
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leave()
        finally:
            await self._held.aend(commit=kind is None)

    def _expect_first(self) -> None:
        expect_outside(self._driver)
        if not self._entered.acquire(blocking=False):
            raise ConfigError("a transaction is entered once: call transaction() of the saver for each block")

    def _enter(self) -> None:
        self.is_open = True
        enter(self)

    def _leave(self) -> None:
        self.is_open = False
        leave(self)
