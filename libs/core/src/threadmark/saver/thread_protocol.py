"""`ThreadProtocol`: what a saver can do with threads themselves, for whatever accepts one."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from threadmark.model import UNSET, OnBusy, ThreadInfo, ThreadPage, ThreadSort, ThreadStatus, Unset
from threadmark.saver.lease import Lease


class ThreadProtocol(Protocol):
    """The methods of `Saver` on threads, which documents each."""

    def for_owner(self, owner: str) -> Self:
        """Return a saver on the same connections in which only this owner's threads are there, for every method."""

    def threads(
        self,
        *,
        owner: str | None = None,
        status: ThreadStatus | None = None,
        metadata: Mapping[str, Any] | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
    ) -> ThreadPage:
        """Return a page of threads, and the cursor of the next one."""

    async def athreads(
        self,
        *,
        owner: str | None = None,
        status: ThreadStatus | None = None,
        metadata: Mapping[str, Any] | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
    ) -> ThreadPage:
        """Like `threads`, for asyncio."""

    def count_threads(
        self,
        *,
        owner: str | None = None,
        status: ThreadStatus | None = None,
        metadata: Mapping[str, Any] | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> int:
        """Return how many threads a listing with these arguments has."""

    async def acount_threads(
        self,
        *,
        owner: str | None = None,
        status: ThreadStatus | None = None,
        metadata: Mapping[str, Any] | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> int:
        """Like `count_threads`, for asyncio."""

    def thread(self, thread_id: str) -> ThreadInfo | None:
        """Return one thread without its checkpoints. Returns None if there is none."""

    async def athread(self, thread_id: str) -> ThreadInfo | None:
        """Like `thread`, for asyncio."""

    def create_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Create a thread before its first checkpoint. Raises ConflictError if it is there already."""

    async def acreate_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `create_thread`, for asyncio."""

    def update_thread(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Set something of a thread, and leave the rest. Raises ThreadNotFoundError if there is none."""

    async def aupdate_thread(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `update_thread`, for asyncio."""

    def rename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Give a thread another id, with everything in it. Returns whether there is one."""

    async def arename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Like `rename_thread`, for asyncio."""

    def lease(
        self,
        thread_id: str,
        *,
        on_busy: OnBusy = "wait",
        ttl: float | timedelta = 30,
        holder: str | None = None,
        timeout: float | None = None,
        on_lost: Callable[[Lease], object] | None = None,
    ) -> Lease:
        """Return the right to write to a thread, for a `with` or `async with` block: one at a time has it."""
