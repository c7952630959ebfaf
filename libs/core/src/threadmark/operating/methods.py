"""The methods of a saver for whoever operates a database, in both APIs. The logic is in the modules beside this one."""

from collections.abc import Sequence

from threadmark.model import CheckpointRef, OnProgress
from threadmark.operating import counting, inspecting
from threadmark.operating.model import Stats, VerifyReport
from threadmark.program import Driver, arun, run
from threadmark.saver.kit import SaverContext


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
    ) -> VerifyReport:
        """Read everything stored, or everything of one thread, and report what is damaged or orphaned.

        It compares bytes with what was written and needs none of the application's classes. With `decode=True` it also
        decodes every value, and reports in `unreadable` what this program's serializer cannot decode.
        `VerifyReport.threads` is 0 if there is no thread of this id. It costs a get of every checkpoint, from a cold
        cache: each row is read twice and each value is joined and hashed, in transactions of 16 checkpoints that block
        nobody. With `repair=True` and no `thread_id` the backend first makes anew what it can make from its rows: on
        Redis the index of threads, elsewhere there is nothing of the kind. No damaged row is touched.
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

    def list_orphan_writes(self) -> Sequence[CheckpointRef]:
        """Return references to the missing checkpoints of pending writes. Creates no tables."""
        return run(self._driver, inspecting.list_orphan_writes(self._context))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def averify(
        self,
        thread_id: str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> VerifyReport:
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

    async def alist_orphan_writes(self) -> Sequence[CheckpointRef]:
        """Like `list_orphan_writes`, for asyncio."""
        return await arun(self._driver, inspecting.list_orphan_writes(self._context))

    # The end of what scripts/write_twins.py wrote.
