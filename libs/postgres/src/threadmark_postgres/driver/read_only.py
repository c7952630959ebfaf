"""A read-only driver around another driver."""

from typing import Any

from threadmark.backends import Driver, ReadOnlyError, Transaction


class ReadOnlyDriver:
    """Refuses every transaction that writes, before it begins."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __str__(self) -> str:
        return str(self._driver)

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        self._expect_reading(transaction)
        return self._driver.run(transaction)

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        self._expect_reading(transaction)
        return await self._driver.arun(transaction)

    def close(self) -> None:
        """Close every connection."""
        self._driver.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        await self._driver.aclose()

    def _expect_reading(self, transaction: Transaction[Any]) -> None:
        if transaction.writes:
            raise ReadOnlyError(f"{self._driver} is read-only for this saver: open one without read_only=True")
