"""Fresh databases of a backend, and savers on them, for the cases of the suite."""

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from threadmark.errors import ClosedError
from threadmark.interfaces import Interface
from threadmark.memory import MemorySaver
from threadmark.program import Driver, Program, Transaction
from threadmark.saver import Saver
from threadmark.store.contract import Store
from threadmark.types import VerifyReport
from threadmark_conformance.apis import APIS
from threadmark_conformance.counting import Reads, counted

Simple = TypeVar("Simple", bound=Interface)


class Opener(Protocol):
    """Opens another saver on a database."""

    def __call__(self, *, cache_bytes: int = ...) -> Saver:
        """Return a saver that shares the database with earlier ones but nothing in memory, as if in another process."""


Backend = Callable[[Path], AbstractContextManager[Opener]]
"""Takes an empty folder and provides a fresh database while the context lasts. The suite closes the savers."""


class World:
    """The world of a case: one fresh database, and any number of savers on it, all with one API.

    It is an asynchronous context manager, because savers are closed in the event loop that used them.
    """

    def __init__(self, open_saver: Opener, api: str) -> None:
        self._open = open_saver
        self._api = APIS[api]
        self._opened: list[Saver] = []
        self._cold: Saver | None = None
        self._base: Saver | None = None
        self.saver = self.another()
        _expect_complete(self.saver._store)  # noqa: SLF001 - the backend's rows, below the wrappers of the saver

    def another(self, *, cache_bytes: int | None = None) -> Saver:
        """Open another saver, which shares no cache with the others."""
        return self._api(self._own(cache_bytes))

    @property
    def cold(self) -> Saver:
        """A saver that never remembers anything. A case has one, as opening a saver takes longer than reading."""
        if self._cold is None:
            self._cold = self.another(cache_bytes=0)
        return self._cold

    def with_rules(self, **rules: Any) -> Saver:
        """Open another saver that treats threads by these rules (`threadmark.saver.context.ThreadRules`)."""
        saver = self._own(None)
        context = saver._context  # noqa: SLF001 - an opener takes no options but the one, whatever backend it is of
        saver._context = context._replace(threads=context.threads._replace(**rules))  # noqa: SLF001 - see above
        return self._api(saver)

    def interface(self, kind: Callable[..., Simple], saver: Saver | None = None, **options: Any) -> Simple:
        """Make an interface over a saver, by default over the first one, with the API of this world."""
        return self._api(kind(self.saver if saver is None else saver, **options))

    def in_memory(self) -> Saver:
        """Open an empty saver in memory. The others must give the same answers."""
        saver = MemorySaver()
        self._opened.append(saver)
        return self._api(saver)

    def behind(self, wrap: Callable[[Driver], Driver]) -> Saver:
        """Open another saver whose driver is wrapped by `wrap`."""
        saver = copy.copy(self._own(None))
        saver._driver = wrap(saver._driver)  # noqa: SLF001 - a fault is put between a saver and its database
        return self._api(saver)

    def counting(self, *, cache_bytes: int = 0) -> tuple[Saver, Reads]:
        """Open another saver and count its reads. By default it remembers nothing."""
        saver, reads = copy.copy(self._own(cache_bytes)), Reads()
        store = counted(saver._context.store, reads)  # noqa: SLF001 - a counter is put between a saver and its rows
        saver._context = saver._context._replace(store=store)  # noqa: SLF001 - see above
        return self._api(saver), reads

    def over(self, wrap: Callable[[Store], Store], saver: Saver | None = None) -> Saver:
        """Open another saver, or copy one, whose base store is wrapped by `wrap`, below any encryption."""
        saver = copy.copy(self.another() if saver is None else saver)
        saver._store = wrap(saver._store)  # noqa: SLF001 - the recorder is put between a saver and its rows
        saver._context = saver._new_context()  # noqa: SLF001 - see above
        return saver

    async def in_store(self, program: Callable[[Store], Program[Any]]) -> Any:
        """Run a program on the store itself, for faults that no saver makes. Returns its result."""
        saver = self._own(None)
        transaction = Transaction(program, (saver._context.store,), writes=True)  # noqa: SLF001 - see above
        return await saver._driver.arun(transaction)  # noqa: SLF001 - see above

    async def in_base_store(self, program: Callable[[Store], Program[Any]]) -> Any:
        """Like `in_store`, on the store below any encryption, which replication works on."""
        if self._base is None:
            self._base = self._own(None)
        transaction = Transaction(program, (self._base._store,), writes=True)  # noqa: SLF001 - see above
        return await self._base._driver.arun(transaction)  # noqa: SLF001 - see above

    async def assert_sound(self, thread_id: str | None = None) -> None:
        """Fail if anything stored is damaged or unreadable. A database that the case closed is not checked.

        A fault that a backend can repair from its rows does not count, because a crash may leave that behind.
        """
        try:
            verified = await self._verified(thread_id)
        except ClosedError:
            return
        assert [problem for problem in verified.problems if problem.kind != "orphan"] == []
        assert verified.unreadable == []

    async def _verified(self, thread_id: str | None) -> VerifyReport:
        """Verify by a saver that is open, as opening one takes longer. It reads past what that remembers."""
        how: Any = {"decode": True, "repair": thread_id is None}
        if self._cold is None:
            with suppress(ClosedError):  # the case may have closed this saver, and not the database
                return await self.saver.averify(thread_id, **how)
        return await self.cold.averify(thread_id, **how)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for saver in self._opened:
            await self._api(saver).aclose()

    def _own(self, cache_bytes: int | None) -> Saver:
        saver = self._open() if cache_bytes is None else self._open(cache_bytes=cache_bytes)
        self._opened.append(saver)
        return saver


_QUESTIONS = {
    name: function
    for name, function in inspect.getmembers(Store, inspect.isfunction)
    if name[0] != "_" and not inspect.isgeneratorfunction(function)
}
"""The operations that the protocol leaves to the backend. Those with an answer there are programs."""


def _expect_complete(store: Store) -> None:
    """Fail if a store lacks an operation: the protocol's own function would return None where a program is needed."""
    held = {name: getattr(store, name, None) for name in _QUESTIONS}
    lacking = [name for name, method in held.items() if getattr(method, "__func__", method) in (None, _QUESTIONS[name])]
    assert not lacking, (
        f"{type(store).__name__} lacks operations: write {', '.join(lacking)}, "
        "as the docstrings of threadmark.backends.Store say"
    )


def run_case(case: Callable[[World], Awaitable[None]], backend: Backend, api: str, folder: Path) -> None:
    """Run one case on a fresh database, in its own event loop."""
    with backend(folder) as open_saver:
        asyncio.run(in_world(case, open_saver, api))


async def in_world(case: Callable[[World], Awaitable[None]], open_saver: Opener, api: str) -> None:
    """Run one case on a database. Afterwards everything stored must be sound."""
    async with World(open_saver, api) as world:
        await case(world)
        await world.assert_sound()
