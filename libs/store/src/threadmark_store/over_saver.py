"""`OverSaver`: the part of a store and a cache that opens and closes the saver that they work on."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from threadmark.backends import Driver, Operation, arun, run
from threadmark.encryption.resealing import register
from threadmark.saver import Saver
from threadmark_store.resealing import reencrypt

register("items", reencrypt)


class OverSaver(ABC):
    """A store or a cache, which closes the saver that it opened, at the end of a block or by `close`."""

    saver: Saver
    _driver: Driver
    _closes_saver = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self._driver}>"

    def setup(self) -> None:
        """Create the tables that are missing. The first call that needs them does so, too."""
        self.saver.setup()
        run(self._driver, self._prepared())

    async def asetup(self) -> None:
        """Like `setup`, for asyncio."""
        await self.saver.asetup()
        await arun(self._driver, self._prepared())

    @abstractmethod
    def _prepared(self) -> Operation[None]:
        """Create the tables that are missing, unless they are known to be there."""

    def close(self) -> None:
        """Close the saver if it was opened for this."""
        if self._closes_saver:
            self.saver.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        if self._closes_saver:
            await self.saver.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
