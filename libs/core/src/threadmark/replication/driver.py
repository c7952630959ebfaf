"""`PairDriver`: runs a saver's transactions on a pair, for both APIs, and reports the state of the pair."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, get_args
from weakref import finalize, ref

from threadmark.errors import ClosedError, ConfigError, ReplicationError, ThreadmarkError, short_repr
from threadmark.model import OnProgress, UpgradeReport
from threadmark.program import Transaction, relay
from threadmark.replication.background import Background
from threadmark.replication.health import checked_first, watched
from threadmark.replication.model import ReconcileReport, ReplicationStatus, SideName, SideStatus
from threadmark.replication.pair import Pair
from threadmark.replication.playing import Player
from threadmark.replication.promoting import count_waiting, drain, promote, reconcile_pair, unless_moved
from threadmark.replication.steps import PairFlow, Side, on
from threadmark.replication.terms import agree, read_replica
from threadmark.replication.transactions import run_transaction
from threadmark.runtime.logs import log
from threadmark.runtime.processes import close_before_others, reset_after_fork, was_closed
from threadmark.runtime.workers import Workers
from threadmark.saver.kit import check_flag, check_progress, check_seconds, upgrade
from threadmark.store.contract import now


def status(pair: Pair) -> PairFlow[ReplicationStatus]:
    """Ask both sides how they are. For one that is known to be away, return its last state."""
    if pair.roles is None:
        yield from agree(pair)
    for side in pair.sides:
        try:
            pair.health[side].term = (yield from read_replica(side)).term
            yield from count_waiting(pair, side)
        except ReplicationError:
            continue  # it is away
        except ThreadmarkError as error:
            pair.health[side].last_error = pair.last_error = f"{side}: {error}"
    return _status(pair)


def _status(pair: Pair) -> ReplicationStatus:
    known = pair.known
    reads_from = known.active if pair.is_well(known.active) else pair.standby
    return ReplicationStatus(
        known.term,
        known.active.name,
        pair.settings.mode,
        _side_status(pair, pair.sides[0]),
        _side_status(pair, pair.sides[1]),
        reads_from.name,
        known.complete,
        tuple(pair.branched),
        pair.last_reconcile,
        pair.last_error,
    )


def _side_status(pair: Pair, side: Side) -> SideStatus:
    health = pair.health[side]
    lag = None if health.waiting is None else max(0.0, (now() - health.oldest) / 1e6) if health.waiting else 0.0
    return SideStatus(
        side.name,
        str(side.driver),
        side is pair.known.active,
        health.well,
        health.term,
        health.waiting,
        lag,
        health.last_error,
        health.last_seen,
    )


T = TypeVar("T")


class PairDriver:
    """The driver of all savers over one pair."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._player = Player(pair.sides, pair.settings.deadline)
        self._background = Background(pair, self._player)
        pair.wake = self._background.wake
        finalize(self, self._background.end).atexit = False  # the thread does not keep this object alive
        reset_after_fork(self)
        self._at_exit = _AtExit(self)
        close_before_others(self._at_exit)

    def __str__(self) -> str:
        return f"a pair of {self.pair.sides[0].driver} and {self.pair.sides[1].driver}"

    def run(self, transaction: Transaction[T]) -> T:
        """Run the program in one transaction and return its result."""
        return self.play(watched(self.pair, run_transaction(self.pair, transaction)))

    async def arun(self, transaction: Transaction[T]) -> T:
        """Like `run`, for asyncio."""
        return await self.aplay(watched(self.pair, run_transaction(self.pair, transaction)))

    def play(self, flow: PairFlow[T]) -> T:
        """Play a flow on the two sides."""
        self._begin()
        return self._player.play(flow)

    async def aplay(self, flow: PairFlow[T]) -> T:
        """Like `play`, for asyncio."""
        self._begin()
        return await self._player.aplay(flow)

    def status(self) -> PairFlow[ReplicationStatus]:
        """How both are doing."""
        return watched(self.pair, status(self.pair))

    def upgrade(self, *, dry_run: bool) -> PairFlow[UpgradeReport]:
        """Upgrade both, one after the other."""
        check_flag(dry_run, "dry_run")
        one, other = self.pair.sides
        first = yield from relay(upgrade(one.store, dry_run=dry_run), partial(on, one))
        second = yield from relay(upgrade(other.store, dry_run=dry_run), partial(on, other))
        return min(first, second)

    def reconcile(
        self, *, both_ways: bool, dry_run: bool, after: str, progress: OnProgress | None
    ) -> PairFlow[ReconcileReport]:
        """Compare both, and copy the missing rows."""
        check_flag(both_ways, "both_ways")
        check_flag(dry_run, "dry_run")
        check_progress(progress)
        if not isinstance(after, str):
            raise ConfigError(
                f"after must be the id of a thread, or '' to begin with the first, not {short_repr(after)}"
            )
        comparison = reconcile_pair(self.pair, both_ways=both_ways, dry_run=dry_run, after=after, progress=progress)
        return checked_first(self.pair, unless_moved(self.pair, comparison))

    def promote(self, name: SideName | None, *, force: bool) -> PairFlow[ReplicationStatus]:
        """Move the writes."""
        check_flag(force, "force")
        if name is not None and name not in get_args(SideName):
            raise ConfigError(f"a side is 'primary' or 'secondary', not {short_repr(name)}")
        promotion = self._promote(name and self.pair.side(name), force=force)
        return checked_first(self.pair, unless_moved(self.pair, promotion))

    def drain(self, within: float) -> PairFlow[int]:
        """Copy the waiting changes."""
        check_seconds(within, "within")
        return checked_first(self.pair, unless_moved(self.pair, drain(self.pair, within)))

    def close(self) -> None:
        """Copy the waiting changes, for a while, and close both sides. It raises nothing."""
        if not self.finish():
            return
        for side in self.pair.sides:
            closing = Workers(1, "threadmark-close")
            closing.submit(partial(_quietly, side.driver.close)).wait(self._patience)
            closing.end()
        self._player.end()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        if not await asyncio.to_thread(self.finish):
            return
        for side in self.pair.sides:
            closing = asyncio.ensure_future(side.driver.aclose())
            await asyncio.wait([closing], timeout=self._patience)
            if not closing.done() or closing.exception() is not None:
                closing.cancel()
        self._player.end()

    def finish(self) -> bool:
        """Take no more calls, and copy the waiting changes, for a while. Returns whether this is the first time."""
        if self.pair.closed:
            return False
        self.pair.closed = True
        was_closed(self._at_exit)
        try:
            left = self._background.finish(self.pair.settings.drain_timeout, self._patience)
        except Exception as error:  # noqa: BLE001 - the next process that opens the pair copies the rest
            what = f"without knowing what is left to be copied ({error})"
        else:
            what = f"with {left:,} changes that are not copied yet" if left else ""
        if what:
            then = "they are copied when the pair is opened next"
            log.write(logging.WARNING, "%s was closed %s: %s", str(self), what, then)
        return True

    def _reset_after_fork(self) -> None:
        """In the child of a fork, which does not have the thread."""
        self._background._reset_after_fork()  # noqa: SLF001 - it is ours

    def _promote(self, side: Side | None, *, force: bool) -> PairFlow[ReplicationStatus]:
        yield from promote(self.pair, side, force=force)
        return (yield from status(self.pair))

    @property
    def _patience(self) -> float:
        """How many seconds to wait for one side to close."""
        return self.pair.settings.deadline or self.pair.settings.drain_timeout

    def _begin(self) -> None:
        if self.pair.closed:
            raise ClosedError
        self._background.begin()


def _quietly(close: Callable[[], Any]) -> None:
    with suppress(Exception):
        close()


class _AtExit:
    """Copies the waiting changes when the interpreter ends. The two sides' own savers close themselves then."""

    def __init__(self, driver: PairDriver) -> None:
        self._driver = ref(driver)

    def close(self) -> None:
        """Copy the waiting changes."""
        driver = self._driver()
        if driver is not None:
            driver.finish()
