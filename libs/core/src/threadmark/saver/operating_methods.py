"""A saver's methods for its operator, and those that read parts of a state, in both APIs."""

import copy
from collections.abc import Sequence
from typing import Any, Self

from threadmark.model import CheckpointRef, Config, MessagePage, OnProgress, PlainRows, Stats, Verified
from threadmark.program import Driver, arun, run
from threadmark.saver.arguments import given_count
from threadmark.saver.context import SaverContext
from threadmark.saver.operations import copying, counting, inspecting, parts


class OperatingMethods:
    """What whoever operates a database asks about it: whether it is sound, how much it holds, what is there."""

    _driver: Driver
    _context: SaverContext

    def verify(
        self,
        thread_id: str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> Verified:
        """Read everything stored, or everything of one thread, and report what is damaged or orphaned.

        It compares bytes with what was written and needs none of the application's classes. With `decode=True` it also
        decodes every value, and reports in `unreadable` what this program's serializer cannot decode.
        `Verified.threads` is 0 if there is no thread of this id. It costs a get of every checkpoint, from a cold cache:
        each row is read twice and each value is joined and hashed, in transactions of 16 checkpoints that block nobody.
        With `repair=True` and no `thread_id` the backend first makes anew what it can make from its rows: on Redis the
        index of threads, elsewhere there is nothing of the kind. No damaged row is touched.
        """
        verified = inspecting.verify(self._context, thread_id, decode=decode, repair=repair, progress=progress)
        return run(self._driver, verified)

    def stats(self, thread_id: str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Return how much is stored, and how much it would be if every value were stored whole.

        With `thread_id`, of that thread only; `Stats.threads` is 0 if there is none. Damaged data is reported beside
        the figures of everything else.
        """
        return run(self._driver, counting.stats(self._context, thread_id, progress))

    def has_tables(self) -> bool:
        """Return whether the database has its tables. Unlike every other method, this does not create them."""
        return run(self._driver, inspecting.has_tables(self._context))

    def has_only_langgraph_data(self) -> bool:
        """Return whether LangGraph's own saver has checkpoints in this database and this saver has none.

        `threadmark_langgraph.migrate` moves them.
        """
        return run(self._driver, inspecting.has_only_langgraph_data(self._context))

    def list_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Return references to all checkpoints, newest first, unreadable ones included. Creates no tables."""
        return run(self._driver, inspecting.list_checkpoint_refs(self._context))

    def orphan_writes(self) -> Sequence[CheckpointRef]:
        """Return references to the missing checkpoints of pending writes. Creates no tables."""
        return run(self._driver, inspecting.orphan_writes(self._context))

    def reencrypt(
        self, thread_id: str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Encrypt everything stored, or one thread, with the newest key. Returns how many rows were encrypted again.

        With `plain="seal"`, rows that were stored without a keyring are encrypted as well; otherwise they are refused.
        """
        return run(self._driver, copying.reencrypt(self._context, thread_id, plain, progress))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def averify(
        self,
        thread_id: str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> Verified:
        """Like `verify`, for asyncio."""
        verified = inspecting.verify(self._context, thread_id, decode=decode, repair=repair, progress=progress)
        return await arun(self._driver, verified)

    async def astats(self, thread_id: str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Like `stats`, for asyncio."""
        return await arun(self._driver, counting.stats(self._context, thread_id, progress))

    async def ahas_tables(self) -> bool:
        """Like `has_tables`, for asyncio."""
        return await arun(self._driver, inspecting.has_tables(self._context))

    async def ahas_only_langgraph_data(self) -> bool:
        """Like `has_only_langgraph_data`, for asyncio."""
        return await arun(self._driver, inspecting.has_only_langgraph_data(self._context))

    async def alist_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Like `list_checkpoint_refs`, for asyncio."""
        return await arun(self._driver, inspecting.list_checkpoint_refs(self._context))

    async def aorphan_writes(self) -> Sequence[CheckpointRef]:
        """Like `orphan_writes`, for asyncio."""
        return await arun(self._driver, inspecting.orphan_writes(self._context))

    async def areencrypt(
        self, thread_id: str | None = None, *, plain: PlainRows = "refuse", progress: OnProgress | None = None
    ) -> int:
        """Like `reencrypt`, for asyncio."""
        return await arun(self._driver, copying.reencrypt(self._context, thread_id, plain, progress))

    # The end of what scripts/write_twins.py wrote.


class PartMethods:
    """What a saver reads without reading the whole state."""

    _driver: Driver
    _context: SaverContext

    def without_classes(self) -> Self:
        """Return a saver on the same connections that shows objects by name and fields, as `threadmark.Shown`.

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

    def messages(
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
        page = parts.messages(self._context, thread, given_count(limit, "limit"), parts.given_before(before), channel)
        return run(self._driver, page)

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def aextract(self, thread: Config | str, path: str, default: Any = None) -> Any:
        """Like `extract`, for asyncio."""
        return await arun(self._driver, parts.extract(self._context, thread, path, default))

    async def amessages(
        self, thread: Config | str, *, limit: int = 20, before: str | int | None = None, channel: str = "messages"
    ) -> MessagePage:
        """Like `messages`, for asyncio."""
        page = parts.messages(self._context, thread, given_count(limit, "limit"), parts.given_before(before), channel)
        return await arun(self._driver, page)

    # The end of what scripts/write_twins.py wrote.
