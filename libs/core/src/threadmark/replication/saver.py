"""`ReplicatedSaver`: a saver over two databases, and `replicated`, which makes one."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Unpack, get_args

from threadmark.errors import ConfigError, shown
from threadmark.model import OnProgress
from threadmark.replication.driver import PairDriver
from threadmark.replication.model import (
    Failover,
    OnSecondaryFailure,
    Reconciled,
    ReplicationMode,
    ReplicationStatus,
    SideName,
)
from threadmark.replication.pair import Pair, Settings
from threadmark.replication.steps import Side
from threadmark.saver import Saver, SaverOptions
from threadmark.saver.kit import check_seconds
from threadmark.saver.read_from import ReadFromSaver
from threadmark.store.deferred import deferred_store, is_deferred
from threadmark.store.replica import ReplicaStore
from threadmark.urls import open as open_url
from threadmark.urls import parameters_in


class ReplicatedSaver(ReadFromSaver):
    """A saver over two databases, each of which can take over from the other.

    Made by `threadmark.replicated`. Every method is that of any saver; the others are about the pair.
    """

    def __init__(self, driver: PairDriver, **options: Unpack[SaverOptions]) -> None:
        super().__init__(deferred_store(*(side.store for side in driver.pair.sides)), driver, **options)
        self._pair = driver

    def status(self) -> ReplicationStatus:
        """Ask both databases how they are. One that is away is shown as it was last seen."""
        return self._pair.play(self._whole_pair.status())

    def reconcile(
        self, *, both_ways: bool = False, dry_run: bool = False, after: str = "", progress: OnProgress | None = None
    ) -> Reconciled:
        """Compare the databases thread by thread, and copy what the one that is not active lacks.

        It can be stopped at any time, by an error that `progress` raises, say, and continued with `after`.

        Args:
            both_ways: Copy to the active one, too, what only the other one has.
            dry_run: Copy nothing, and say what would be.
            after: Where to continue one that was stopped: the `thread_id` of its last progress.
            progress: Is called with a `threadmark.Progress` after each page of threads.
        """
        return self._pair.play(
            self._whole_pair.reconcile(both_ways=both_ways, dry_run=dry_run, after=after, progress=progress)
        )

    def promote(self, side: SideName | None = None, *, force: bool = False) -> ReplicationStatus:
        """Have the other side, or the one that is named, take the writes from now on.

        While both can be reached, they are compared first (`reconcile`), and writes wait for a moment, until the new
        side has everything. Where the active side is away, the other one takes over if it is known to have everything.
        With `force` it does so in any case: what it lacks is merged later, as branches where both sides wrote.
        """
        return self._pair.play(self._whole_pair.promote(side, force=force))

    def drain(self, within: float = 30.0) -> int:
        """Wait until everything is copied, for up to `within` seconds. Returns how many changes are still waiting."""
        return self._pair.play(self._whole_pair.drain(within))

    @property
    def _whole_pair(self) -> PairDriver:
        """The driver, for what concerns all threads. Raises ConfigError in the view of one owner."""
        self._context.expect_no_view()
        return self._pair

    # Written by scripts/write_twins.py from the methods above: change those, and run it.

    async def astatus(self) -> ReplicationStatus:
        """Like `status`, for asyncio."""
        return await self._pair.aplay(self._whole_pair.status())

    async def areconcile(
        self, *, both_ways: bool = False, dry_run: bool = False, after: str = "", progress: OnProgress | None = None
    ) -> Reconciled:
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

    # The end of what scripts/write_twins.py wrote.


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
        deadline: How many seconds a database may take for one transaction before it counts as away; None for no
            limit, with which callers wait for a database that hangs.
        health_interval: How many seconds pass between two checks of both databases.
        failback_delay: With automatic failover, for how long the primary must have been healthy, and caught up, before
            it is made active again; None leaves that to `promote("primary")`.
        max_failover_attempts: How often the saver tries to promote by itself before it waits for somebody to do so.
        drain_timeout: For how many seconds `close` waits for the copying. What is left then is logged, and is copied by
            whoever opens the pair next.
        **options: Those of every saver. What is not given here is taken from `primary`, if that is a saver.
    """
    # It imports asyncio, which programs without a pair need not load.
    from threadmark.replication.saver import checked_settings, make

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


_CHOICES: Mapping[str, object] = {
    "mode": ReplicationMode,
    "on_secondary_failure": OnSecondaryFailure,
    "failover": Failover,
}
_SECONDS = ("deadline", "health_interval", "drain_timeout")
_COUNTS = ("max_lag", "max_failover_attempts")
_MOST_SECONDS = 86_400
"""A day. Much longer times overflow where a thread waits."""

_URL = "replicated:?primary=URL&secondary=URL&mode=async"


def checked_settings(**given: Any) -> Settings:
    """Return what `replicated` was asked for. Raises ConfigError for what cannot be."""
    for name, kind in _CHOICES.items():
        if not isinstance(given[name], str) or given[name] not in get_args(kind):
            known = " or ".join(map(repr, get_args(kind)))
            raise ConfigError(f"{name} must be {known}, not {shown(given[name])}")
    for name in _SECONDS:
        if (name, given[name]) != ("deadline", None):
            _check_duration(given[name], name)
    for name in _COUNTS:
        count = given[name]
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigError(f"{name} must be a number from 1 on, not {shown(count)}")
    delay = given["failback_delay"]
    if delay is not None:
        if not isinstance(delay, timedelta) or delay <= timedelta(0):
            raise ConfigError(f"failback_delay must be a positive datetime.timedelta or None, not {shown(delay)}")
        if given["failover"] != "automatic":
            raise ConfigError("failback_delay needs failover='automatic': otherwise promote() moves the writes back")
        given["failback_delay"] = delay.total_seconds()
    return Settings(**given)


def _check_duration(seconds: Any, name: str) -> None:
    check_seconds(seconds, name)
    if not 0 < seconds <= _MOST_SECONDS:
        raise ConfigError(f"{name} must be more than 0 and at most {_MOST_SECONDS:,} seconds, not {shown(seconds)}")


def make(
    kind: type[ReplicatedSaver], primary: object, secondary: object, settings: Settings, options: SaverOptions
) -> ReplicatedSaver:
    """Return a saver over two databases. What was opened here is closed if it cannot be made."""
    savers: list[Saver] = []
    try:
        for name, given in (("primary", primary), ("secondary", secondary)):
            savers.append(_saver(name, given))
        first, second = savers
        if isinstance(primary, Saver) and isinstance(secondary, Saver) and "keyring" not in options:
            _expect_one_keyring(first, second)
        merged: SaverOptions = {**first._options, **options}  # noqa: SLF001 - the sides are ours from now on
        pair = Pair(_side("primary", first), _side("secondary", second), settings)
        pair.check_sides()
        return kind(PairDriver(pair), **merged)
    except BaseException:
        for saver, given in zip(savers, (primary, secondary), strict=False):
            if saver is not given:
                saver.close()
        raise


def from_url(url: str, **options: Any) -> ReplicatedSaver:
    """Return the saver for `replicated:?primary=URL&secondary=URL&mode=async`. The two URLs are percent-encoded."""
    optional = (*_CHOICES, *_SECONDS, *_COUNTS, "failback_delay")
    given = parameters_in(url, _URL, needed=("primary", "secondary"), optional=optional)
    return replicated(**{**_parsed(given), **options})


def _parsed(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a URL as arguments of `replicated`."""
    parsed: dict[str, Any] = dict(given)
    for name, text in given.items():
        try:
            if name in _COUNTS:
                parsed[name] = int(text)
            elif name == "failback_delay":
                parsed[name] = timedelta(seconds=float(text))
            elif name in _SECONDS:
                parsed[name] = None if (name, text) == ("deadline", "none") else float(text)
        except (ValueError, OverflowError):
            raise ConfigError(f"{name} must be a number, not {shown(text)}") from None
    return parsed


def _saver(name: str, given: object) -> Saver:
    """The saver of a side. Raises ConfigError for one that cannot be replicated."""
    opened = open_url(given) if isinstance(given, str) else given
    if not isinstance(opened, Saver):
        raise ConfigError(
            f"{name} must be a URL or a threadmark saver, not a {type(opened).__name__}: of a LangGraph checkpointer, "
            "give its .saver, and wrap what this returns"
        )
    store = opened._store  # noqa: SLF001 - the sides are ours from now on
    if is_deferred(store):
        raise ConfigError(
            f"{name} is itself made of others ({type(opened).__name__}): replicate the savers beneath it, and put the "
            "cache in front of the replicated one"
        )
    if not isinstance(store, ReplicaStore):
        raise ConfigError(f"{name}: the backend of {type(opened).__name__} has no operations for replication")
    if opened._context.threads.owner is not None:  # noqa: SLF001 - see above
        raise ConfigError(f"{name} has the threads of one owner only: give the saver that it is a view of")
    return opened


def _side(name: SideName, saver: Saver) -> Side:
    store = saver._store  # noqa: SLF001 - the sides are ours from now on
    assert isinstance(store, ReplicaStore)  # noqa: S101 - `_saver` has seen to it
    return Side(name, store, saver._driver)  # noqa: SLF001 - see above


def _expect_one_keyring(first: Saver, second: Saver) -> None:
    one, other = first._context.keyring, second._context.keyring  # noqa: SLF001 - the sides are ours from now on
    both = (one, other)
    same = one is other or len({each and (each.digest_key, repr(each)) for each in both}) == 1
    if not same:
        raise ConfigError(
            "primary and secondary have different keyrings, but both hold the same sealed rows: give the same Keyring "
            "to both savers, or keyring= to replicated()"
        )
