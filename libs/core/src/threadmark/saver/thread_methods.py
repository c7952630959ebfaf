"""The saver's methods for threads and parts of a state, in both APIs. The modules in `operations` have the logic."""

import copy
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Self, Unpack

from threadmark.model import (
    UNSET,
    CheckpointRef,
    Config,
    Duration,
    MessagePage,
    ThreadFilter,
    ThreadInfo,
    ThreadPage,
    ThreadSort,
    Unset,
)
from threadmark.program import Driver, arun, run
from threadmark.saver.arguments import checked_count, checked_owner, thread_query, thread_update
from threadmark.saver.context import SaverContext
from threadmark.saver.operations import copying, parts, reading, threads
from threadmark.saver.paths import parse_paths


class ThreadMethods:
    """The methods of a saver for threads as a whole."""

    _driver: Driver
    _context: SaverContext

    def for_owner(self, owner: str) -> Self:
        """Return a saver on the same connections in which every method sees only this owner's threads.

        It does not read, write, list, copy or delete a thread of another owner, not even by its id. A thread that
        begins through it belongs to the owner. If you close one saver, both are closed.
        """
        other = copy.copy(self)
        other._context = self._context.of_owner(checked_owner(owner))  # noqa: SLF001 - of our own copy
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

        An index serves the page, however many threads there are. If few threads match `metadata`, `text` or `status`,
        many have to be looked at. No value is read unless you ask for parts with `extract`.

        Args:
            sort: By "updated", "created" or "id"; a minus puts the greatest first.
            limit: The most threads to return.
            cursor: The cursor of the page before. Threads that appear or disappear between two calls do not shift the
                next page.
            offset: The number of threads to skip. Skipping costs as much as listing: prefer the cursor.
            extract: Parts of each thread's newest state, as `{"last": "messages[-1].content"}`. The paths are those of
                `Saver.extract`, and the values are in `ThreadInfo.extracted`. A part that cannot be read is missing
                there and reported in `ThreadInfo.problems`; the other threads are listed all the same.
            filters: Which threads to return, by `owner`, `status`, `metadata`, `text`, `since` and `until`, as
                described in `ThreadFilter` (default: all).
        """
        return run(
            self._driver,
            threads.list_threads(
                self._context,
                thread_query(filters, sort),
                checked_count(limit, "limit"),
                cursor,
                checked_count(offset, "offset"),
                parse_paths(extract),
            ),
        )

    def count_threads(self, **filters: Unpack[ThreadFilter]) -> int:
        """Return the number of threads that match these filters."""
        return run(self._driver, threads.count_threads(self._context, thread_query(filters)))

    def unfinished(self, *, idle_for: Duration, limit: int = 100, cursor: str | None = None) -> ThreadPage:
        """Return a page of threads whose runs died, those that were updated longest ago first.

        Nodes are still to run after the newest checkpoint of such a thread (`ThreadInfo.next`), it has no live lease,
        and it waits for no person: `graph.invoke(None, lease.config)` continues it. `list_threads` has more filters for
        threads with this status.

        Args:
            idle_for: Only threads that stored no checkpoint for this long, by this process's clock. If you run without
                leases, give more than your longest step takes, or a run that lives may be among them.
            limit: The most threads to return.
            cursor: The cursor of the page before.
        """
        return run(self._driver, threads.unfinished(self._context, idle_for, checked_count(limit, "limit"), cursor))

    def get_thread(self, thread_id: Config | str) -> ThreadInfo | None:
        """Return one thread without its checkpoints, or None if there is none."""
        return run(self._driver, threads.get_thread(self._context, thread_id))

    def create_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Create a thread before its first checkpoint. Raises ConflictError if it already exists.

        This is optional, because the first put creates its thread. If you leave `expires_at` out, the option `ttl`
        decides.
        """
        update = thread_update(title, metadata, owner, expires_at)
        return run(self._driver, threads.create_thread(self._context, thread_id, update))

    def update_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Set the title, metadata, owner or expiry of a thread. Raises ThreadNotFoundError if there is none.

        Arguments that you leave out change nothing. `metadata` is patched key by key; the value None removes a key.
        `expires_at` is a time with a time zone or a timedelta from now; None means never.
        """
        update = thread_update(title, metadata, owner, expires_at)
        return run(self._driver, threads.update_thread(self._context, thread_id, update))

    def rename_thread(self, thread_id: Config | str, new_thread_id: Config | str) -> bool:
        """Give a thread another id, with everything in it. Returns whether the thread existed.

        Raises ConflictError if the new id is taken, and ThreadBusyError while the thread has a live lease. It costs as
        much as `copy_thread`, because every row is bound to its thread's id.
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
                thread_query(filters, sort),
                checked_count(limit, "limit"),
                cursor,
                checked_count(offset, "offset"),
                parse_paths(extract),
            ),
        )

    async def acount_threads(self, **filters: Unpack[ThreadFilter]) -> int:
        """Like `count_threads`, for asyncio."""
        return await arun(self._driver, threads.count_threads(self._context, thread_query(filters)))

    async def aunfinished(self, *, idle_for: Duration, limit: int = 100, cursor: str | None = None) -> ThreadPage:
        """Like `unfinished`, for asyncio."""
        return await arun(
            self._driver, threads.unfinished(self._context, idle_for, checked_count(limit, "limit"), cursor)
        )

    async def aget_thread(self, thread_id: Config | str) -> ThreadInfo | None:
        """Like `get_thread`, for asyncio."""
        return await arun(self._driver, threads.get_thread(self._context, thread_id))

    async def acreate_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `create_thread`, for asyncio."""
        update = thread_update(title, metadata, owner, expires_at)
        return await arun(self._driver, threads.create_thread(self._context, thread_id, update))

    async def aupdate_thread(
        self,
        thread_id: Config | str,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires_at: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Like `update_thread`, for asyncio."""
        update = thread_update(title, metadata, owner, expires_at)
        return await arun(self._driver, threads.update_thread(self._context, thread_id, update))

    async def arename_thread(self, thread_id: Config | str, new_thread_id: Config | str) -> bool:
        """Like `rename_thread`, for asyncio."""
        return await arun(self._driver, copying.rename_thread(self._context, thread_id, new_thread_id))

    # The end of the part that scripts/write_twins.py wrote.


class PartMethods:
    """The methods of a saver that read a part of a state, or a state without its classes."""

    _driver: Driver
    _context: SaverContext

    def without_classes(self) -> Self:
        """Return a saver on the same connections that shows objects by name and fields (`ObjectView`).

        It needs no class to read a state and runs no code of one, so you can look at a state where the application is
        not installed. You cannot put the values that it returns. If you close one saver, both are closed.
        """
        other = copy.copy(self)
        other._context = self._context.without_classes()  # noqa: SLF001 - of our own copy
        return other

    def get_checkpoint_ref(self, config: Config | str) -> CheckpointRef | None:
        """Return the ids of the checkpoint that `config` names, or of the newest of its namespace, or None.

        Use it to find out if a thread has moved on. It reads neither the state nor pending writes, and does not count
        as a read for `refresh_on_read`. A missing checkpoint raises CorruptDataError as in `get_tuple`, but the row
        that is found is not proven.
        """
        return run(self._driver, reading.get_checkpoint_ref(self._context, config))

    def extract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Return a part of a thread's newest state, such as `messages[-1].content`, without reading the rest.

        A path is the name of a channel and any number of steps: `.name` (a dictionary's key or an object's field),
        `["key"]`, `[3]`, `[-20:]`. Only that channel is fetched, and only the part is decoded. You need the class of
        the value that is returned, but not of the objects that contain it. Only fields are read; no property and no
        method runs.

        Returns `default` if there is no such thread or channel, or nothing at the end of the path. To tell that from a
        stored None, pass an object that you made yourself; to find out if the thread exists, call `get_thread`.

        Raises ConfigError, with the place, for a path that cannot be read, and for a delta channel, whose value only
        the graph can make.

        Args:
            thread: The thread's id, or a configuration that also names a namespace or a checkpoint.
            path: The path. Write a channel whose name has a dot or a bracket as `["a.b"]`.
            default: The value to return if there is nothing.
        """
        return run(self._driver, parts.extract(self._context, thread, path, default))

    def extract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Return a page of a thread's messages: the newest ones before `before`, oldest first.

        Only that channel is fetched, and only the page is decoded. The page is empty if there is no such thread or
        channel.

        Args:
            thread: The thread's id, or a configuration that also names a namespace or a checkpoint.
            limit: The most messages to return.
            before: `MessagePage.before` of the last page, or the id of a message; raises ConfigError if no message has
                this id. By default the page ends with the newest message.
            channel: The channel that has the list of messages.
        """
        page = parts.extract_items(
            self._context, thread, checked_count(limit, "limit"), parts.checked_before(before), channel
        )
        return run(self._driver, page)

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def aget_checkpoint_ref(self, config: Config | str) -> CheckpointRef | None:
        """Like `get_checkpoint_ref`, for asyncio."""
        return await arun(self._driver, reading.get_checkpoint_ref(self._context, config))

    async def aextract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Like `extract`, for asyncio."""
        return await arun(self._driver, parts.extract(self._context, thread, path, default))

    async def aextract_items(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Like `extract_items`, for asyncio."""
        page = parts.extract_items(
            self._context, thread, checked_count(limit, "limit"), parts.checked_before(before), channel
        )
        return await arun(self._driver, page)

    # The end of the part that scripts/write_twins.py wrote.
