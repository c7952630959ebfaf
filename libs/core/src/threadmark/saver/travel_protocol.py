"""`TravelProtocol`: what a saver tells about a thread's past, for whatever accepts one."""

from typing import Any, Protocol, Self

from threadmark.model import Config
from threadmark.travel import Blame, Diff, HistoryPage, SearchPage, Tree, Values


class TravelProtocol(Protocol):
    """The methods of `Saver` about a thread's past; it documents each."""

    def without_classes(self) -> Self:
        """Return a saver on the same connections that shows objects by name and fields, as `threadmark.Shown`."""

    def history(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> HistoryPage:
        """Return a page of a thread's checkpoints, newest first, without reading a value."""

    async def ahistory(
        self, thread: Config | str, *, ns: str | None = "", limit: int = 50, cursor: str | None = None
    ) -> HistoryPage:
        """Like `history`, for asyncio."""

    def tree(self, thread: Config | str) -> Tree:
        """Return all checkpoints of a thread, and the branches that they form, in all namespaces."""

    async def atree(self, thread: Config | str) -> Tree:
        """Like `tree`, for asyncio."""

    def diff(self, a: Config, b: Config, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Return what differs between two checkpoints of a thread, by channel and by place inside of values."""

    async def adiff(self, a: Config, b: Config, *, path: str | None = None, limit: int = 1000) -> Diff:
        """Like `diff`, for asyncio."""

    def blame(self, thread: Config | str, path: str) -> Blame | None:
        """Return which checkpoint first held the present value at a path. Returns None where there is nothing."""

    async def ablame(self, thread: Config | str, path: str) -> Blame | None:
        """Like `blame`, for asyncio."""

    def fork(self, config: Config, values: Values | None = None, *, as_thread: str | None = None) -> dict[str, Any]:
        """Begin a branch at a checkpoint, or a thread of its own, and return the configuration to go on with."""

    async def afork(
        self, config: Config, values: Values | None = None, *, as_thread: str | None = None
    ) -> dict[str, Any]:
        """Like `fork`, for asyncio."""

    def restore(self, config: Config) -> dict[str, Any]:
        """Make a checkpoint the newest again, without losing what came after it. Returns its new configuration."""

    async def arestore(self, config: Config) -> dict[str, Any]:
        """Like `restore`, for asyncio."""

    def search(
        self,
        thread: Config | str,
        text: str,
        *,
        ns: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Return where a text occurs in a thread's values, pending writes and metadata, whatever its case."""

    async def asearch(
        self,
        thread: Config | str,
        text: str,
        *,
        ns: str | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        """Like `search`, for asyncio."""
