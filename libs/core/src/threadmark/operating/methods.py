"""The saver's methods for operators of a database, in both APIs. The modules of this package have the logic."""

from collections.abc import Sequence

from threadmark.model import CheckpointRef, Config, OnProgress, UpgradeReport
from threadmark.operating import counting, inspecting
from threadmark.operating.model import Stats, VerifyReport
from threadmark.program import Driver, arun, run
from threadmark.saver.kit import SaverContext, check_flag, upgrade
from threadmark.store.contract import Store


class OperatingMethods:
    """The methods of a saver that report the state of a database: damage, sizes, contents."""

    _driver: Driver
    _store: Store
    _context: SaverContext

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Let every process write in the newest format that this release knows. Returns a report.

        Run it when no process of an earlier release is left: such a process is refused from then on, before it stores
        anything, and there is no way back but a backup. Until then all releases write in the earlier format, so you can
        go back without loss (docs/how-to/upgrade.md). On Redis it takes 15 seconds, until every process has noticed.
        With `dry_run` nothing is changed.
        """
        check_flag(dry_run, "dry_run")
        self._context.expect_unbound("upgrade")
        if not dry_run:
            self._context.expect_no_view()
        return run(self._driver, upgrade(self._store, dry_run=dry_run))

    def verify(
        self,
        thread_id: Config | str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> VerifyReport:
        """Read all rows, or all rows of one thread, and report damage and orphans.

        This compares bytes with the digests that were stored with them, and needs no class of the application. With
        `decode=True` it also decodes every value, and lists in `unreadable` the values that this program's serializer
        cannot decode. `VerifyReport.threads` is 0 if no thread has this id.

        It costs as much as a get of every checkpoint from a cold cache: each row is read twice, and each value is
        joined and hashed. Transactions of 16 checkpoints keep it from blocking others. With `repair=True` and no
        `thread_id`, the backend first rebuilds all that it can from its rows: the index of threads on Redis, nothing on
        other backends. Damaged rows are never touched.
        """
        verified = inspecting.verify(self._context, thread_id, decode=decode, repair=repair, progress=progress)
        return run(self._driver, verified)

    def stats(self, thread_id: Config | str | None = None, *, progress: OnProgress | None = None) -> Stats:
        """Return how much is stored, and how much it would be if every value were stored whole.

        With `thread_id`, the figures are those of one thread; `Stats.threads` is 0 if it does not exist. Damaged data
        is reported in `problems`, with the figures of the rest.
        """
        return run(self._driver, counting.stats(self._context, thread_id, progress))

    def has_tables(self) -> bool:
        """Return whether the database has its tables. Creates none."""
        return run(self._driver, inspecting.has_tables(self._context))

    def has_only_langgraph_data(self) -> bool:
        """Return whether this database has checkpoints of LangGraph's own saver and none of this saver.

        `threadmark_langgraph.migrate` moves them.
        """
        return run(self._driver, inspecting.has_only_langgraph_data(self._context))

    def list_checkpoint_refs(self) -> Sequence[CheckpointRef]:
        """Return references to all checkpoints, newest first, including unreadable ones. Creates no tables."""
        return run(self._driver, inspecting.list_checkpoint_refs(self._context))

    def list_orphan_writes(self) -> Sequence[CheckpointRef]:
        """Return references to the missing checkpoints of pending writes. Creates no tables."""
        return run(self._driver, inspecting.list_orphan_writes(self._context))

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def aupgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Like `upgrade`, for asyncio."""
        check_flag(dry_run, "dry_run")
        self._context.expect_unbound("upgrade")
        if not dry_run:
            self._context.expect_no_view()
        return await arun(self._driver, upgrade(self._store, dry_run=dry_run))

    async def averify(
        self,
        thread_id: Config | str | None = None,
        *,
        decode: bool = False,
        repair: bool = False,
        progress: OnProgress | None = None,
    ) -> VerifyReport:
        """Like `verify`, for asyncio."""
        verified = inspecting.verify(self._context, thread_id, decode=decode, repair=repair, progress=progress)
        return await arun(self._driver, verified)

    async def astats(self, thread_id: Config | str | None = None, *, progress: OnProgress | None = None) -> Stats:
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

    # The end of the part that scripts/write_twins.py wrote.
