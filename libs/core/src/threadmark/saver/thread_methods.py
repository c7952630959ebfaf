"""The methods of a saver on threads themselves, in both APIs. The logic is in the modules of the operations."""

import copy
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Self, Unpack

from threadmark.errors import ConfigError, shown
from threadmark.model import UNSET, OnBusy, ThreadFilter, ThreadInfo, ThreadPage, ThreadSort, Unset
from threadmark.program import Driver, arun, run
from threadmark.saver.arguments import given_count, given_lease, given_owner, given_query, given_update
from threadmark.saver.context import SaverContext
from threadmark.saver.lease import Lease
from threadmark.saver.operations import copying, threads
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

    def threads(
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
            threads.threads(
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

    def thread(self, thread_id: str) -> ThreadInfo | None:
        """Return one thread without its checkpoints. Returns None if there is none."""
        return run(self._driver, threads.thread(self._context, thread_id))

    def create_thread(
        self,
        thread_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        owner: str | Unset | None = UNSET,
        expires: datetime | timedelta | Unset | None = UNSET,
    ) -> ThreadInfo:
        """Create a thread before its first checkpoint. Raises ConflictError if it is there already.

        Nobody has to: whatever is put first begins a thread. Where `expires` is left out, the option `ttl` decides.
        """
        update = given_update(title, metadata, owner, expires)
        return run(self._driver, threads.create_thread(self._context, thread_id, update))

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

    def rename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Give a thread another id, with everything in it. Returns whether there is one.

        Raises ConflictError if the new id is taken, and ThreadBusyError while somebody holds a lease of the thread. It
        costs as much as `copy_thread`, because every row is bound to its thread's id.
        """
        return run(self._driver, copying.rename_thread(self._context, thread_id, new_thread_id))

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
        """Return the right to write to a thread, for a `with` or `async with` block: one at a time has it.

        Start the run of the block with `lease.config`. Whatever is stored with its token is compared with the last one
        of the thread, in the database and in the same statement: once somebody else has taken a lease, it raises
        LeaseLostError, however late it comes. Whoever has no token is refused with a ThreadBusyError meanwhile. The
        lease is renewed in the background and by what is stored. docs/leases.md has examples, and what this cannot do.

        With "rollback" the block begins where the run of the other holder began: `lease.config` names that checkpoint,
        and a run that is started with it goes on from there. (Further runs of the block leave the `checkpoint_id` out.)
        Nothing is deleted, and no copy of the checkpoint is made: pending writes belong to its id, from which an engine
        makes those of tasks, so that the open questions of a copy would be lost.
        If the thread had no checkpoint then, an empty one is put as the newest. A run that began by a rollback itself
        is rolled back to the same place. Namespaces of subgraphs that keep a memory of their own are left as they are.

        An interrupt (Ctrl-C, a cancellation) while a lease is waited for leaves none. In the instant in which it is
        taken, one may be left that nobody releases: it is over after its `ttl`.

        Args:
            thread_id: The thread. It need not be there yet.
            on_busy: Where somebody else holds a lease, "wait" until it ends, "reject" raises ThreadBusyError at once,
                "interrupt" takes the lease over, and "rollback" does so and goes back to where the other run began.
            ttl: After how many seconds without renewal, or which timedelta, the lease ends by itself.
            holder: Who is named to others that find the thread busy (default: this host and process).
            timeout: How many seconds to wait, before a ThreadBusyError is raised (default: for as long as it takes).
            on_lost: Called with the lease, once, when it is known to be lost, by whichever thread finds out.
        """
        if on_lost is not None and not callable(on_lost):
            raise ConfigError(f"on_lost must be a function of the lease, not {shown(on_lost)}")
        wanted = given_lease(thread_id, on_busy, ttl, holder, timeout)
        return Lease(self._driver, self._context, wanted, timeout, on_lost)

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def athreads(
        self,
        *,
        sort: ThreadSort = "-updated",
        limit: int = 20,
        cursor: str | None = None,
        offset: int = 0,
        extract: Mapping[str, str] | None = None,
        **filters: Unpack[ThreadFilter],
    ) -> ThreadPage:
        """Like `threads`, for asyncio."""
        return await arun(
            self._driver,
            threads.threads(
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

    async def athread(self, thread_id: str) -> ThreadInfo | None:
        """Like `thread`, for asyncio."""
        return await arun(self._driver, threads.thread(self._context, thread_id))

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
        update = given_update(title, metadata, owner, expires)
        return await arun(self._driver, threads.create_thread(self._context, thread_id, update))

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

    async def arename_thread(self, thread_id: str, new_thread_id: str) -> bool:
        """Like `rename_thread`, for asyncio."""
        return await arun(self._driver, copying.rename_thread(self._context, thread_id, new_thread_id))

    # The end of what scripts/write_twins.py wrote.
