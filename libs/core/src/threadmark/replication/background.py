"""The one thread of a pair in a process: it checks both databases, copies waiting changes, and fails over if allowed.

It is a daemon, begun when the pair is first used, ended by `close`, and begun again in a forked child.
"""

import logging
import queue
import threading
from contextlib import suppress
from time import monotonic, sleep
from typing import Protocol

from threadmark.errors import ClosedError, ReplicationError
from threadmark.replication.health import check_side, watched
from threadmark.replication.pair import Pair, SideAwayError
from threadmark.replication.playing import play_flow
from threadmark.replication.promoting import copy_waiting, count_waiting, drain, fail_over, promote
from threadmark.replication.steps import PairFlow, Side
from threadmark.replication.terms import follow, spread_term
from threadmark.runtime.logs import log
from threadmark.store.contract import now

_CHECKS_LEFT_TO_CALLER = 5
"""For how many checks of both sides a change of mode "sync" is left to the caller that made it."""

_GATHERING = 0.01
"""Seconds for which changes gather before they are copied: to copy each by itself would slow down the writers."""


class Plays(Protocol):
    """Runs flows for blocking callers."""

    def play(self, flow: PairFlow[None]) -> None:
        """Run a flow."""


class Background:
    """The thread, and how it is woken."""

    def __init__(self, pair: Pair, player: Plays) -> None:
        self._pair = pair
        self._player = player
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._wakeups: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._woken = False
        self._drain_within: float | None = None
        self._left: int | Exception = ReplicationError("a database did not answer in time")

    def begin(self) -> None:
        """Begin, if it has not begun."""
        if self._thread is None and not self._stopped:
            # Two callers may begin a thread each. Both threads do the same, and one does not disturb the other.
            self._thread = threading.Thread(target=self._run, name="threadmark-replication", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Have it look for something to copy at once."""
        if not self._woken:
            self._woken = True
            self._wakeups.put(None)

    def end(self) -> None:
        """Let it end, after the transaction that it is in."""
        self._stopped = True
        self._wakeups.put(None)

    def finish(self, within: float, patience: float) -> int:
        """End it after a last copy of waiting changes, for `within` seconds at most. Returns how many changes are left.

        It gets `patience` seconds more to finish its last transaction. Raises ReplicationError if that number is
        unknown by then.
        """
        thread, self._thread = self._thread, None
        self._drain_within = within
        self.end()
        if thread is None or thread is threading.current_thread():
            return 0  # the pair was never used
        thread.join(within + patience)
        if isinstance(self._left, int):
            return self._left
        raise self._left

    def _reset_after_fork(self) -> None:
        """In the child of a fork, which does not have the thread."""
        self._thread, self._woken = None, False
        self._wakeups = queue.SimpleQueue()

    def _run(self) -> None:
        looked = -self._pair.settings.health_interval
        while not self._stopped:
            self._woken = False
            looks = monotonic() >= looked + self._pair.settings.health_interval
            if looks:
                looked = monotonic()
            try:
                self._player.play(self._round(looks=looks))
            except ClosedError:
                break
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round may succeed
                self._note(error)
            with suppress(queue.Empty):
                self._wakeups.get(timeout=max(0.0, looked + self._pair.settings.health_interval - monotonic()))
                if not self._stopped:
                    sleep(min(_GATHERING, self._pair.settings.health_interval))
        if self._drain_within is not None:
            self._drain(self._drain_within)

    def _drain(self, within: float) -> None:
        """Copy the waiting changes. The interpreter may be about to end, so this starts no other thread."""
        pair = self._pair
        try:
            self._left = play_flow(watched(pair, drain(pair, within))) if pair.roles is not None else 0
        except Exception as error:  # noqa: BLE001 - raised in the caller that waits for it
            self._left = error

    def _round(self, *, looks: bool) -> PairFlow[None]:
        pair = self._pair
        if pair.roles is None:  # the first user of the pair finds out which side takes the writes
            return
        if looks:
            yield from check_both(pair)
        if pair.both_well:
            yield from watched(pair, self._copy_all())
            if looks:
                yield from watched(pair, fail_back(pair))

    def _copy_all(self) -> PairFlow[None]:
        """Copy the changes that wait on the side that was active before, then those on the active side."""
        pair = self._pair
        active, standby = pair.known.active, pair.standby
        for source, target in ((standby, active), (active, standby)):
            while (yield from count_waiting(pair, source)) and not self._stopped:
                if self._is_underway(source) or not (yield from copy_waiting(pair, source, target)):
                    break

    def _is_underway(self, source: Side) -> bool:
        """Whether the callers that made the waiting changes may still copy them, as they do in mode "sync"."""
        settings = self._pair.settings
        age = (now() - self._pair.health[source].oldest) / 1e6
        return settings.mode == "sync" and age < _CHECKS_LEFT_TO_CALLER * settings.health_interval

    def _note(self, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        if text != self._pair.last_error:
            log.write(logging.WARNING, "replication: %s", text)
        self._pair.last_error = text


def check_both(pair: Pair) -> PairFlow[None]:
    """Ask both sides how they are, and who takes the writes. Moves the writes if the saver may do so."""
    found = {}
    for side in pair.sides:
        found[side] = yield from check_side(pair, side)
    if any(each is not None and each.term > pair.known.term for each in found.values()):
        yield from watched(pair, follow(pair))
    for side, replica in found.items():
        if replica is not None and replica.term < pair.known.term:
            yield from watched(pair, spread_term(pair, side, replica))
    active = pair.known.active
    if not pair.is_well(active) and pair.settings.failover == "automatic" and pair.is_well(pair.standby):
        away = SideAwayError(active, pair.health[active].last_error)
        yield from watched(pair, fail_over(pair, away))


def fail_back(pair: Pair) -> PairFlow[None]:
    """Have the primary take the writes again, if it has been well for long enough."""
    settings, (primary, secondary) = pair.settings, pair.sides
    if settings.failover != "automatic" or settings.failback_delay is None or pair.known.active is not secondary:
        return
    if monotonic() - pair.health[primary].well_since < settings.failback_delay:
        return
    yield from promote(pair, primary, force=False)
