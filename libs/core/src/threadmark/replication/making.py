"""Making a replicated saver: of two savers or URLs, or of one URL that names both."""

from typing import Any, Unpack

from threadmark.model import Duration
from threadmark.replication.model import Failover, OnSecondaryFailure, ReplicationMode
from threadmark.replication.saver import ReplicatedSaver
from threadmark.saver import Saver, SaverOptions
from threadmark.saver.kit import option_in_url
from threadmark.urls import parameters_in

_URL = "replicated:?primary=URL&secondary=URL&mode=async"


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
    from threadmark.replication.assembling import checked_settings, make

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
    return make(primary, secondary, settings, options)


def open_url(url: str, **options: Any) -> ReplicatedSaver:
    """Return the saver for `replicated:?primary=URL&secondary=URL&mode=async`. The two URLs are percent-encoded."""
    from threadmark.replication.assembling import KINDS

    written = parameters_in(url, _URL, needed=("primary", "secondary"), optional=KINDS)
    arguments = {name: option_in_url(name, text, KINDS.get(name, str)) for name, text in written.items()}
    return replicated(**{**arguments, **options})
