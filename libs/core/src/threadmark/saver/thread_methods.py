"""The methods of a saver on threads themselves, in both APIs. The logic is in the modules of the operations."""

import copy
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Self

from threadmark.model import UNSET, ThreadInfo, ThreadPage, ThreadSort, ThreadStatus, Unset
from threadmark.program import Driver, arun, run
from threadmark.saver.context import SaverContext
from threadmark.saver.operations import copying, threads
from threadmark.saver.thread_arguments import given_count, given_owner, given_query, given_update


class ThreadMethods:
    """What a saver does with threads themselves."""

    _driver: Driver
    _context: SaverContext

    def for_owner(self, owner: str) -> Self:
        """Return a saver on the same connections in which only this owner's threads are there, for every method.

        A thread of anybody else is neither read, written, listed, copied nor deleted through it, by its id either; one
        that begins belongs to the owner. Closing one saver closes both.
        """
        other = copy.copy(self)
        other._context = self._context.of_owner(given_owner(owner))  # noqa: SLF001 - of our own copy
        return other

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
    ) -> ThreadPage:
        """Return a page of threads, and the cursor of the next one.

        No value is read. A page goes along an index, however many threads there are; where few threads match
        `metadata`, `text` or `status`, many are looked at.

        Args:
            owner: Only this owner's.
            status: Only those that are "idle", "busy", "interrupted" or "error".
            metadata: Only those whose metadata has these keys, with equal JSON values.
            text: Only those with this text in their title, whatever its case, or exactly in their id.
            since: Only those updated at this time or later.
            until: Only those updated before this time.
            sort: By "updated", "created" or "id"; with a minus, the greatest comes first.
            limit: The most threads to return.
            cursor: The one of the page before. Threads that come or go meanwhile do not shift the next page.
            offset: How many to skip, which costs as much as to list them: prefer the cursor.
        """
        return run(
            self._driver,
            threads.threads(
                self._context,
                given_query(
                    owner=owner,
                    status=status,
                    metadata=metadata,
                    text=text,
                    since=since,
                    until=until,
                    sort=sort,
                ),
                given_count(limit, "limit"),
                cursor,
                given_count(offset, "offset"),
            ),
        )

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
    ) -> ThreadPage:
        """Like `threads`, for asyncio."""
        return await arun(
            self._driver,
            threads.threads(
                self._context,
                given_query(
                    owner=owner,
                    status=status,
                    metadata=metadata,
                    text=text,
                    since=since,
                    until=until,
                    sort=sort,
                ),
                given_count(limit, "limit"),
                cursor,
                given_count(offset, "offset"),
            ),
        )

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
        query = given_query(owner=owner, status=status, metadata=metadata, text=text, since=since, until=until)
        return run(self._driver, threads.count_threads(self._context, query))

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
        query = given_query(owner=owner, status=status, metadata=metadata, text=text, since=since, until=until)
        return await arun(self._driver, threads.count_threads(self._context, query))

    def thread(self, thread_id: str) -> ThreadInfo | None:
        """Return one thread without its checkpoints. Returns None if there is none."""
        return run(self._driver, threads.thread(self._context, thread_id))

    async def athread(self, thread_id: str) -> ThreadInfo | None:
        """Like `thread`, for asyncio."""
        return await arun(self._driver, threads.thread(self._context, thread_id))

    def create_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | None = None,
    ) -> ThreadInfo:
        """Create a thread before its first checkpoint. Raises ConflictError if it is there already.

        Nobody has to: whatever is put first begins a thread.
        """
        update = given_update(title, metadata, owner, expires)
        return run(self._driver, threads.create_thread(self._context, thread_id, update))

    async def acreate_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | None = None,
    ) -> ThreadInfo:
        """Like `create_thread`, for asyncio."""
        update = given_update(title, metadata, owner, expires)
        return await arun(self._driver, threads.create_thread(self._context, thread_id, update))

    def update_thread(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Set something of a thread, and leave the rest. Raises ThreadNotFoundError if there is none.

        `metadata` is patched key by key, and a key that is given None is removed. `expires` is a time with a time zone,
        or a timedelta from now; None is never.
        """
        update = given_update(title, metadata, owner, expires)
        return run(self._driver, threads.update_thread(self._context, thread_id, update))

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
        update = given_update(title, metadata, owner, expires)
        return await arun(self._driver, threads.update_thread(self._context, thread_id, update))

    def rename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Give a thread another id, with everything in it. Returns whether there is one.

        Raises ConflictError if the new id is taken, and ThreadBusyError while somebody holds a lease of the thread. It
        costs as much as `copy_thread`, because every row is bound to its thread's id.
        """
        return run(self._driver, copying.rename_thread(self._context, thread_id, new_thread_id))

    async def arename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Like `rename_thread`, for asyncio."""
        return await arun(self._driver, copying.rename_thread(self._context, thread_id, new_thread_id))
