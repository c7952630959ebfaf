"""The methods of a saver on threads themselves, in both APIs. The logic is in the modules of the operations."""

import copy
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Self, Unpack

from threadmark.model import UNSET, Config, MessagePage, ThreadFilter, ThreadInfo, ThreadPage, ThreadSort, Unset
from threadmark.program import Driver, arun, run
from threadmark.saver.arguments import given_count, given_owner, given_query, given_update
from threadmark.saver.context import SaverContext
from threadmark.saver.operations import copying, parts, threads
from threadmark.saver.paths import parse_paths


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

    def list_threads(
        self,
        *,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
        **filters: Unpack[ThreadFilter],
    ) -> ThreadPage:
        """Return a page of threads, and the cursor of the next one.

        A page goes along an index, however many threads there are; where few threads match `metadata`, `text` or
        `status`, many are looked at. No value is read, unless `extract` asks for parts.

        Args:
            sort: By "updated", "created" or "id"; with a minus, the greatest comes first.
            limit: The most threads to return.
            cursor: The one of the page before. Threads that come or go meanwhile do not shift the next page.
            offset: How many to skip, which costs as much as to list them: prefer the cursor.
            extract: Parts of each thread's newest state, as `{"last": "messages[-1].content"}`: the paths are those of
                `Saver.extract`, and what they lead to is in `ThreadInfo.extracted`. A part that cannot be read is left
                out there, and reported in `ThreadInfo.problems`; the other threads are listed all the same.
            filters: Which threads, by `owner`, `status`, `metadata`, `text`, `since` and `until`, as `ThreadFilter`
                describes them (default: all).
        """
        return run(
            self._driver,
            threads.list_threads(
                self._context,
                given_query(filters, sort),
                given_count(limit, "limit"),
                cursor,
                given_count(offset, "offset"),
                parse_paths(extract),
            ),
        )

    def count_threads(self, **filters: Unpack[ThreadFilter]) -> int:
        """Return how many threads a listing with these filters has."""
        return run(self._driver, threads.count_threads(self._context, given_query(filters)))

    def get_thread(self, thread_id: str) -> ThreadInfo | None:
        """Return one thread without its checkpoints. Returns None if there is none."""
        return run(self._driver, threads.get_thread(self._context, thread_id))

    def create_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Create a thread before its first checkpoint. Raises ConflictError if it is there already.

        Nobody has to: whatever is put first begins a thread. Where `expires_at` is left out, the option `ttl` decides.
        """
        update = given_update(title, metadata, owner, expires_at)
        return run(self._driver, threads.create_thread(self._context, thread_id, update))

    def update_thread(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Set something of a thread, and leave the rest. Raises ThreadNotFoundError if there is none.

        `metadata` is patched key by key, and a key that is given None is removed. `expires_at` is a time with a time
        zone, or a timedelta from now; None is never.
        """
        update = given_update(title, metadata, owner, expires_at)
        return run(self._driver, threads.update_thread(self._context, thread_id, update))

    def rename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Give a thread another id, with everything in it. Returns whether there is one.

        Raises ConflictError if the new id is taken, and ThreadBusyError while somebody holds a lease of the thread. It
        costs as much as `copy_thread`, because every row is bound to its thread's id.
        """
        return run(self._driver, copying.rename_thread(self._context, thread_id, new_thread_id))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def alist_threads(
        self,
        *,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
        **filters: Unpack[ThreadFilter],
    ) -> ThreadPage:
        """Like `list_threads`, for asyncio."""
        return await arun(
            self._driver,
            threads.list_threads(
                self._context,
                given_query(filters, sort),
                given_count(limit, "limit"),
                cursor,
                given_count(offset, "offset"),
                parse_paths(extract),
            ),
        )

    async def acount_threads(self, **filters: Unpack[ThreadFilter]) -> int:
        """Like `count_threads`, for asyncio."""
        return await arun(self._driver, threads.count_threads(self._context, given_query(filters)))

    async def aget_thread(self, thread_id: str) -> ThreadInfo | None:
        """Like `get_thread`, for asyncio."""
        return await arun(self._driver, threads.get_thread(self._context, thread_id))

    async def acreate_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `create_thread`, for asyncio."""
        update = given_update(title, metadata, owner, expires_at)
        return await arun(self._driver, threads.create_thread(self._context, thread_id, update))

    async def aupdate_thread(
        self,
        thread_id: str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `update_thread`, for asyncio."""
        update = given_update(title, metadata, owner, expires_at)
        return await arun(self._driver, threads.update_thread(self._context, thread_id, update))

    async def arename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Like `rename_thread`, for asyncio."""
        return await arun(self._driver, copying.rename_thread(self._context, thread_id, new_thread_id))

    # The end of what scripts/write_twins.py wrote.


class PartMethods:
    """What a saver reads without reading the whole state."""

    _driver: Driver
    _context: SaverContext

    def without_classes(self) -> Self:
        """Return a saver on the same connections that shows objects by name and fields, as
        `threadmark.types.ObjectView`.

        Whatever it reads needs no class and runs no code of one, so that a state can be looked at where the
        application is not installed. What it returns cannot be put. Closing one saver closes both.
        """
        other = copy.copy(self)
        other._context = self._context.without_classes()  # noqa: SLF001 - of our own copy
        return other

    def extract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Return a part of a thread's newest state, such as `messages[-1].content`, without reading the rest.

        A path is the name of a channel and any number of steps: `.name` (a dictionary's key or an object's field),
        `["key"]`, `[3]`, `[-20:]`. Only that channel is fetched, and only the part is decoded; a class is needed for
        what is returned, but not for what contains it. Fields alone are read: no property and no method is run.

        Where there is no thread, no such channel or nothing at the end of the path, `default` is returned. To tell that
        from a None that is stored, give an object of your own; `thread` tells whether there is a thread.

        Raises ConfigError, with the place, for a path that cannot be read, and for a delta channel, whose value only
        the graph can make.

        Args:
            thread: The thread's id, or a configuration that also names a namespace or a checkpoint.
            path: The path. A channel whose name has a dot or a bracket is written `["a.b"]`.
            default: What to return where there is nothing.
        """
        return run(self._driver, parts.extract(self._context, thread, path, default))

    def extract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Return a page of a thread's messages: the newest ones before `before`, oldest first.

        Only that channel is fetched, and only the page is decoded. A thread that is not there, or that has no such
        channel, has no messages.

        Args:
            thread: The thread's id, or a configuration that also names a namespace or a checkpoint.
            limit: The most messages to return.
            before: `MessagePage.before` of the page that was read last, or the id of a message; a ConfigError if there
                is none with it. Default: read from the end.
            channel: The channel that has the list of messages.
        """
        page = parts.extract_items(
            self._context, thread, given_count(limit, "limit"), parts.given_before(before), channel
        )
        return run(self._driver, page)

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def aextract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Like `extract`, for asyncio."""
        return await arun(self._driver, parts.extract(self._context, thread, path, default))

    async def aextract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Like `extract_items`, for asyncio."""
        page = parts.extract_items(
            self._context, thread, given_count(limit, "limit"), parts.given_before(before), channel
        )
        return await arun(self._driver, page)

    # The end of what scripts/write_twins.py wrote.
