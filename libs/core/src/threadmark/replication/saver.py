"""`ReplicatedSaver`: a saver over two databases. `threadmark.replicated` makes one."""

from typing import TYPE_CHECKING, Unpack

from threadmark.around.deferred import deferred_store
from threadmark.around.read_from import ReadFromSaver
from threadmark.model import OnProgress, UpgradeReport
from threadmark.replication.model import ReconcileReport, ReplicationStatus, SideName
from threadmark.saver import SaverOptions

if TYPE_CHECKING:
    from threadmark.replication.driver import PairDriver


class ReplicatedSaver(ReadFromSaver):
    """A saver over two databases, each of which can take over from the other.

    `threadmark.replicated` makes it. It has every method of a saver, and methods for the pair of databases.
    """

    _no_transactions = "it keeps two databases, which no transaction spans: take one of a saver on one database"

    def __init__(self, driver: "PairDriver", **options: Unpack[SaverOptions]) -> None:
        super().__init__(deferred_store(*(side.store for side in driver.pair.sides)), driver, **options)
        self._pair = driver

    def status(self) -> ReplicationStatus:
        """Return the state of both databases. A database that cannot be reached is shown as it was last seen."""
        return self._pair.play(self._whole_pair.status())

    def reconcile(
        self, *, both_ways: bool = False, dry_run: bool = False, after: str = "", progress: OnProgress | None = None
    ) -> ReconcileReport:
        """Compare the databases thread by thread, and copy the missing rows to the inactive one. Returns a report.

        You can stop it at any time, for example by an error that `progress` raises, and continue it with `after`.

        Args:
            both_ways: Also copy data that only the other database has to the active one.
            dry_run: Copy nothing; return the report of what would be copied.
            after: The place to continue a stopped one: the `thread_id` of its last progress.
            progress: A function that is called with a `threadmark.types.Progress` after each page of threads.
        """
        return self._pair.play(
            self._whole_pair.reconcile(both_ways=both_ways, dry_run=dry_run, after=after, progress=progress)
        )

    def promote(self, side: SideName | None = None, *, force: bool = False) -> ReplicationStatus:
        """Move the writes to the other side, or to the side that you name.

        If both can be reached, they are compared first (`reconcile`), and writes wait for a moment until the new side
        has everything. If the active side is away, the other one takes over if it is known to have everything. With
        `force` it takes over in any case: data that it lacks is merged later, as branches if both sides wrote.
        """
        return self._pair.play(self._whole_pair.promote(side, force=force))

    def drain(self, within: float = 30.0) -> int:
        """Wait until everything is copied, for up to `within` seconds. Returns the number of changes still waiting."""
        return self._pair.play(self._whole_pair.drain(within))

    def upgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Upgrade both databases, one after the other. Returns the report on the one that is behind.

        Both must be reachable. While they are written in different formats, this release copies between them.
        """
        return self._pair.play(self._whole_pair.upgrade(dry_run=dry_run))

    @property
    def _whole_pair(self) -> "PairDriver":
        """The driver, for methods that concern all threads. Raises ConfigError in the view of one owner."""
        self._context.expect_no_view()
        return self._pair

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def astatus(self) -> ReplicationStatus:
        """Like `status`, for asyncio."""
        return await self._pair.aplay(self._whole_pair.status())

    async def areconcile(
        self, *, both_ways: bool = False, dry_run: bool = False, after: str = "", progress: OnProgress | None = None
    ) -> ReconcileReport:
        """Like `reconcile`, for asyncio."""
        return await self._pair.aplay(
            self._whole_pair.reconcile(both_ways=both_ways, dry_run=dry_run, after=after, progress=progress)
        )

    async def apromote(self, side: SideName | None = None, *, force: bool = False) -> ReplicationStatus:
        """Like `promote`, for asyncio."""
        return await self._pair.aplay(self._whole_pair.promote(side, force=force))

    async def adrain(self, within: float = 30.0) -> int:
        """Like `drain`, for asyncio."""
        return await self._pair.aplay(self._whole_pair.drain(within))

    async def aupgrade(self, *, dry_run: bool = False) -> UpgradeReport:
        """Like `upgrade`, for asyncio."""
        return await self._pair.aplay(self._whole_pair.upgrade(dry_run=dry_run))

    # The end of the part that scripts/write_twins.py wrote.
