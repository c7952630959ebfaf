"""`ReplicatedSaver`: a saver over two databases, and `replicated`, which makes one."""

from datetime import timedelta
from typing import Any, Unpack

from threadmark.model import OnProgress
from threadmark.replication.model import (
    Failover,
    OnSecondaryFailure,
    Reconciled,
    ReplicationMode,
    ReplicationStatus,
    SideName,
)
from threadmark.saver import Saver, SaverOptions


class ReplicatedSaver(Saver):
    """A saver over two databases, each of which can take over from the other.

    Made by `threadmark.replicated`. Every method is that of any saver; the others are about the pair.
    """

    def status(self) -> ReplicationStatus:
        """Ask both databases how they are. One that does not answer in time is shown as it was last seen."""
        raise NotImplementedError

    async def astatus(self) -> ReplicationStatus:
        """Like `status`, for asyncio."""
        raise NotImplementedError

    def reconcile(
        self, *, both_ways: bool = False, dry_run: bool = False, after: str = "", progress: OnProgress | None = None
    ) -> Reconciled:
        """Compare the databases thread by thread, and copy what the one that is not active lacks.

        See `replication.reconciling.reconcile`. It can be stopped at any time (by what `progress` raises, say), and
        goes on where `after` says.
        """
        raise NotImplementedError

    async def areconcile(
        self, *, both_ways: bool = False, dry_run: bool = False, after: str = "", progress: OnProgress | None = None
    ) -> Reconciled:
        """Like `reconcile`, for asyncio."""
        raise NotImplementedError

    def promote(self, side: SideName | None = None, *, force: bool = False) -> ReplicationStatus:
        """Have the other side, or the one that is named, take the writes from now on.

        While both can be reached, writes wait until it has everything (a verified catch-up), then the term is raised
        in both. Where the active side is away, the term is raised on the other one alone if `force` says that what it
        does not have yet may become branches later; a pair in mode "sync" whose status knows of nothing missing needs
        no `force`.
        """
        raise NotImplementedError

    async def apromote(self, side: SideName | None = None, *, force: bool = False) -> ReplicationStatus:
        """Like `promote`, for asyncio."""
        raise NotImplementedError

    def drain(self, within: float = 30.0) -> int:
        """Wait until everything is copied, for up to `within` seconds. Returns how many changes are still waiting."""
        raise NotImplementedError

    async def adrain(self, within: float = 30.0) -> int:
        """Like `drain`, for asyncio."""
        raise NotImplementedError


def replicated(
    primary: Saver | str,
    secondary: Saver | str,
    *,
    mode: ReplicationMode = "sync",
    on_secondary_failure: OnSecondaryFailure = "raise",
    failover: Failover = "manual",
    max_lag: int = 10_000,
    deadline: float = 10.0,
    health_interval: float = 1.0,
    failback_delay: timedelta | None = None,
    max_failover_attempts: int = 3,
    drain_timeout: float = 10.0,
    **options: Unpack[SaverOptions],
) -> ReplicatedSaver:
    """Return a saver that keeps everything in two databases, of whatever kinds.

    `with threadmark.replicated("postgresql://a/agents", "postgresql://b/agents", mode="async") as saver: ...`

    Args:
        primary: The database that takes the writes at first: a URL, or a saver, which is closed together with this one.
        secondary: The other one.
        mode: "sync" acknowledges a write when both have it, "async" as soon as the active one has it.
        on_secondary_failure: In mode "sync", what becomes of a write that only the active one has: "raise" a
            ReplicationError, or "continue": it is acknowledged, logged, and copied later.
        failover: "manual": while the active one is away, reads come from the other one, marked so, and writes raise an
            error, until `promote()`. "automatic": this saver raises the term on the other one and goes on there.
        max_lag: In mode "async", how many changes may be waiting before puts wait for the copying.
        deadline: How many seconds a database may take for one transaction before it counts as away.
        health_interval: How many seconds between two looks at both.
        failback_delay: With automatic failover, for how long the primary must have been healthy, and caught up, before
            it is made active again; None leaves that to `promote("primary")`.
        max_failover_attempts: How often the saver tries to promote by itself before it waits for somebody to do so.
        drain_timeout: For how many seconds `close` waits for the copying. What is left then is logged, and is copied by
            whoever opens the pair next.
        **options: Those of every saver. Of a saver that was given, its own are taken where these say nothing.
    """
    raise NotImplementedError


def from_url(url: str, **options: Any) -> ReplicatedSaver:
    """The saver for `replicated:?primary=URL&secondary=URL&mode=async`. The two URLs are percent-encoded."""
    raise NotImplementedError
