"""Several Threadmark stores on one database, and faults that no store makes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, TTLConfig

from threadmark.program import Driver, Program, Transaction
from threadmark.saver import Saver
from threadmark.sealing import Keyring, cipher_of
from threadmark_conformance.backend import Backend, Opener, World
from threadmark_conformance.item_stores.worlds import Asked, OpenStore
from threadmark_store import Store
from threadmark_store.backends import rows_over
from threadmark_store.batches import key_of
from threadmark_store.contract import ItemStore
from threadmark_store.shapes import ItemRow

KEYRING = Keyring({"key": bytes(range(32))}, "key", digest_secret=bytes(32))


class OwnWorld(World):
    """The world of a case about Threadmark's stores: one database, and any number of stores and savers on it."""

    def __init__(self, open_saver: Opener, api: str) -> None:
        super().__init__(open_saver, api)
        self.api = api

    def store(self, saver: Saver | None = None, **options: Any) -> Asked:
        """Open a store, by default over another saver, as in another process."""
        return Asked(Store(self._own(None) if saver is None else saver, **options), self.api)

    def of_owner(self, owner: str, **options: Any) -> Asked:
        """Open a store over an owner's view of another saver."""
        return self.store(self._own(None).for_owner(owner), **options)

    def with_keyring(self, keyring: Keyring | None, **options: Any) -> Asked:
        """Open a store over another saver that seals with this keyring, or with none."""
        saver = self._own(None)
        context = saver._context  # noqa: SLF001 - an opener takes no keyring, whatever backend it is of
        cipher = None if keyring is None else cipher_of(keyring)
        saver._context = context._replace(cipher=cipher)  # noqa: SLF001 - see above
        return self.store(saver, **options)

    def over_driver(self, wrap: Callable[[Driver], Driver]) -> tuple[Asked, Any]:
        """Open a store whose driver is wrapped by `wrap`. Returns the wrapper as well."""
        saver = self.behind(wrap)
        return self.store(saver), saver._driver  # noqa: SLF001 - the case lets it fail

    async def in_items(self, program: Callable[[ItemStore], Program[Any]]) -> Any:
        """Run a program on the rows themselves. Returns its result."""
        saver = self._own(None)
        transaction = Transaction(program, (rows_over(saver, "items"),), writes=True)
        return await saver._driver.arun(transaction)  # noqa: SLF001 - below the store, whose API does not matter here

    async def row(self, namespace: tuple[str, ...], key: str) -> ItemRow:
        """Return the row of an item."""
        asked = key_of(namespace, key)
        rows = await self.in_items(lambda items: items.items([asked]))
        found: ItemRow = rows[asked]
        return found

    async def set_rows(self, *rows: ItemRow) -> None:
        """Replace rows by damaged ones."""
        await self.in_items(lambda items: items.put(rows))


def over_savers(backend: Backend) -> OpenStore:
    """Return how `run_store_case` opens a store over a backend that you describe for the suite of savers."""

    @asynccontextmanager
    async def open_store(folder: Path, api: str, ttl: TTLConfig | None) -> AsyncIterator[BaseStore]:
        with backend(folder) as open_saver:
            saver = open_saver()
            yield Store(saver, ttl=ttl)
            await (asyncio.to_thread(saver.close) if api == "blocking" else saver.aclose())

    return open_store


def run_own_case(case: Callable[[OwnWorld], Awaitable[None]], backend: Backend, api: str, folder: Path) -> None:
    """Run one case about Threadmark's stores on a fresh database, in its own event loop."""

    async def run() -> None:
        with backend(folder) as open_saver:
            async with OwnWorld(open_saver, api) as world:
                await case(world)

    asyncio.run(run())
