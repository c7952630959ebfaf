"""An empty store for each case, asked with either API by the same calls."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from langgraph.store.base import BaseStore, Item, Op, Result, SearchItem, TTLConfig

OpenStore = Callable[[Path, str, TTLConfig | None], AbstractAsyncContextManager[BaseStore]]
"""Takes an empty folder, the API that the case uses ("asyncio" or "blocking") and a configuration of expiry, and
opens a store without items.
"""


class Asked:
    """A store, asked with one API. For the blocking one, each call runs on some thread of a pool."""

    def __init__(self, store: BaseStore, api: str) -> None:
        self.store = store
        self._blocks = api == "blocking"

    async def put(self, namespace: Any, key: str, value: Mapping[str, Any], **options: Any) -> None:
        """Store an item."""
        await self.call("put", namespace, key, value, **options)

    async def get(self, namespace: Any, key: str, **options: Any) -> Item | None:
        """Return an item, or None."""
        found: Item | None = await self.call("get", namespace, key, **options)
        return found

    async def value(self, namespace: Any, key: str) -> Any:
        """Return the value of an item, or None."""
        found = await self.get(namespace, key)
        return None if found is None else found.value

    async def delete(self, namespace: Any, key: str) -> None:
        """Remove an item."""
        await self.call("delete", namespace, key)

    async def search(self, prefix: Any = (), /, **options: Any) -> list[SearchItem]:
        """Return the items of a namespace and those below it."""
        found: list[SearchItem] = await self.call("search", prefix, **options)
        return found

    async def keys(self, prefix: Any = (), /, *, limit: int = 100, **options: Any) -> list[str]:
        """Return the keys of the items that a search finds, in its order."""
        return [item.key for item in await self.search(prefix, limit=limit, **options)]

    async def namespaces(self, **options: Any) -> list[tuple[str, ...]]:
        """Return the namespaces."""
        found: list[tuple[str, ...]] = await self.call("list_namespaces", **options)
        return found

    async def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer several operations."""
        answers: list[Result] = await self.call("batch", ops)
        return answers

    async def call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call a method by the name that it has in the blocking API."""
        if self._blocks:
            return await asyncio.to_thread(getattr(self.store, name), *arguments, **options)
        return await getattr(self.store, f"a{name}")(*arguments, **options)


class StoreWorld:
    """The world of a case about any store: it opens one."""

    def __init__(self, open_store: OpenStore, api: str, folder: Path) -> None:
        self._open = open_store
        self._folder = folder
        self._opened = AsyncExitStack()
        self.api = api

    async def store(self, ttl: TTLConfig | None = None) -> Asked:
        """Open the store of this case, with this configuration of expiry."""
        return Asked(await self._opened.enter_async_context(self._open(self._folder, self.api, ttl)), self.api)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._opened.aclose()


def run_store_case(
    case: Callable[[StoreWorld], Awaitable[None]], open_store: OpenStore, api: str, folder: Path
) -> None:
    """Run one case on an empty store, in its own event loop."""

    async def run() -> None:
        async with StoreWorld(open_store, api, folder) as world:
            await case(world)

    asyncio.run(run())
