"""The reports and arguments of a replicated saver."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

SideName = Literal["primary", "secondary"]
"""The two databases, in the order in which you gave them. Either can be the active one, which takes the writes."""

ReplicationMode = Literal["sync", "async"]
"""Whether a write is acknowledged when both databases have it, or as soon as the active one has."""

OnSecondaryFailure = Literal["raise", "continue"]
"""The result of a write in mode "sync" that only the active database has: an error, or an acknowledgement."""

Failover = Literal["manual", "automatic"]
"""The ways to move the writes to the other database when the active one is away: `promote()`, or the saver itself."""


class SideStatus(NamedTuple):
    """The state of one of the two databases."""

    name: SideName
    database: str
    """Its address, without a password."""
    active: bool
    """Whether it takes the writes."""
    healthy: bool
    term: int | None
    """Its term, None if it could not be asked."""
    waiting: int | None
    """The number of its changes that the other one lacks."""
    lag: float | None
    """The seconds for which the oldest of them has been waiting."""
    last_error: str | None
    last_seen: datetime | None
    """The time of its last answer."""


class ReconcileReport(NamedTuple):
    """The threads that `reconcile` compared and the rows that it copied, or would copy with `dry_run`."""

    threads: int
    """The number of threads that were compared."""
    different: int
    """The number of threads that differed."""
    checkpoints: int
    writes: int
    segments: int
    size_bytes: int
    removed: int
    """Checkpoints that were removed because the other side had removed them."""
    deleted: Sequence[str]
    """Threads that were deleted because the other side had deleted them."""
    branched: Sequence[str]
    """Threads in which both sides had written: the writes of each side are a branch now."""
    only_there: Sequence[str]
    """Threads that only the target of the copying has, and the other side never had. They were left alone."""
    rows_read: int
    seconds: float
    dry_run: bool
    after: str
    """It compared the threads after this one; "" stands for all of them."""
    complete: bool
    """Whether all threads were compared, by this `reconcile` or by those that it continued with `after`."""
    items: int = 0
    """Items of a store that were copied. All are compared, also with `after`."""
    items_only_there: int = 0
    """Items that only the target of the copying has. They were left alone."""


class ReplicationStatus(NamedTuple):
    """The state of a pair of databases."""

    term: int
    active: SideName
    mode: ReplicationMode
    primary: SideStatus
    secondary: SideStatus
    reads_from: SideName
    complete: bool
    """Whether the side that is not active has ever had everything. A new side has, after a complete `reconcile`."""
    branched: Sequence[str]
    """The threads in which both sides wrote while they could not see each other, as far as this saver merged them."""
    last_reconcile: ReconcileReport | None
    last_error: str | None
