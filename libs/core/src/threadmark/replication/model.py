"""The shapes that callers of a replicated saver see."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

SideName = Literal["primary", "secondary"]
"""The two databases, as they were given. Which of them takes the writes is another matter: that one is active."""

ReplicationMode = Literal["sync", "async"]
"""Whether a write is acknowledged when both databases have it, or as soon as the active one has."""

OnSecondaryFailure = Literal["raise", "continue"]
"""What becomes of a write in mode "sync" that only the active database has: an error, or an acknowledgement."""

Failover = Literal["manual", "automatic"]
"""Who moves the writes to the other database when the active one is away: `promote()`, or the saver itself."""


class SideStatus(NamedTuple):
    """One of the two databases."""

    name: SideName
    database: str
    """Which one, without a password."""
    active: bool
    """Whether it takes the writes."""
    healthy: bool
    term: int | None
    """The term that it holds, None where it could not be asked."""
    waiting: int | None
    """How many changes of it the other one lacks."""
    lag: float | None
    """For how many seconds the oldest of them has been waiting."""
    last_error: str | None
    last_seen: datetime | None
    """When it last answered."""


class ReconcileReport(NamedTuple):
    """What `reconcile` compared and copied, or with `dry_run` would copy."""

    threads: int
    """How many were compared."""
    different: int
    """How many differed."""
    checkpoints: int
    writes: int
    segments: int
    size_bytes: int
    removed: int
    """Checkpoints that were removed because the other side had removed them."""
    deleted: Sequence[str]
    """Threads that were deleted because the other side had deleted them."""
    branched: Sequence[str]
    """Threads in which both sides had written: what each wrote is a branch now."""
    only_there: Sequence[str]
    """Threads that only the side that was copied to has, and that the other one never had: they were left alone."""
    rows_read: int
    seconds: float
    dry_run: bool
    after: str
    """It compared the threads after this one; "" stands for all of them."""
    complete: bool
    """Whether all threads were compared: by this one, and by those that it continued where it was given `after`."""


class ReplicationStatus(NamedTuple):
    """How a pair of databases is doing."""

    term: int
    active: SideName
    mode: ReplicationMode
    primary: SideStatus
    secondary: SideStatus
    reads_from: SideName
    complete: bool
    """Whether the side that is not active has ever had everything: a new one has, once `reconcile` has gone through."""
    branched: Sequence[str]
    """The threads in which both sides wrote while they could not see each other, as far as this saver merged them."""
    last_reconcile: ReconcileReport | None
    last_error: str | None
