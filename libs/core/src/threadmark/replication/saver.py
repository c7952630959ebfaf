"""`ReplicatedSaver`: a saver over two databases, and `replicated`, the function that makes one."""

from typing import TYPE_CHECKING, Unpack

from threadmark.around.deferred import deferred_store
from threadmark.around.read_from import ReadFromSaver
from threadmark.model import Duration, OnProgress, UpgradeReport
from threadmark.replication.model import (
    Failover,
    OnSecondaryFailure,
    ReconcileReport,
    ReplicationMode,
    ReplicationStatus,
    SideName,
)
from threadmark.saver import Saver, SaverOptions

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


def replicated(
    primary: Saver | str,
    secondary: Saver | str,
    *,
    mode: ReplicationMode = "sync",
    on_secondary_failure: OnSecondaryFailure = "raise",
    failover: Failover = "manual",
    max_lag: int = 10_000,
    deadline: float | None = 10.0,
    health_interval: float = 1.0,
    failback_delay: Duration | None = None,
    max_failover_attempts: int = 3,
    drain_timeout: float = 10.0,
    **options: Unpack[SaverOptions],
) -> ReplicatedSaver:
    """Return a saver that keeps everything in two databases, which may be of different kinds.

    `with threadmark.replicated("postgresql://a/agents", "postgresql://b/agents", mode="async") as saver: ...`

    Args:
        primary: The database that takes the writes at first: a URL, or a saver, which is closed together with this one.
        secondary: The other database.
        mode: "sync" acknowledges a write when both have it, "async" as soon as the active one has it.
        on_secondary_failure: In mode "sync", how to handle a write that only the active one has: "raise" raises a
            ReplicationError; "continue" acknowledges it, logs it, and copies it later.
        failover: "manual": while the active one is away, reads come from the other one, marked so, and writes raise an
            error, until you call `promote()`. "automatic": this saver raises the term on the other one and goes on
            there.
        max_lag: In mode "async", the number of changes that may wait before puts wait for the copying.
        deadline: The seconds that a database may take for one transaction before it counts as away; None for no limit,
            with which callers wait for a database that hangs.
        health_interval: The seconds between two checks of both databases.
        failback_delay: With automatic failover, how long the primary must have been healthy and caught up before it is
            made active again; None leaves that to `promote("primary")`.
        max_failover_attempts: How often the saver tries to promote by itself before it leaves that to you.
        drain_timeout: The seconds that `close` waits for the copying. Remaining changes are logged, and copied when the
            pair is opened next.
        **options: The options of every saver. Those that you leave out are taken from `primary`, if that is a saver.
    """
    # It imports asyncio, which programs without a pair need not load.
    from threadmark.replication.making import checked_settings, make

    settings = checked_settings(
        mode=mode,
        on_secondary_failure=on_secondary_failure,
        failover=failover,
        max_lag=max_lag,
        deadline=deadline,
        health_interval=health_interval,
        failback_delay=failback_delay,
        max_failover_attempts=max_failover_attempts,
        drain_timeout=drain_timeout,
    )
    return make(ReplicatedSaver, primary, secondary, settings, options)
