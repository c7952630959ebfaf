"""Renewal of a lease during its block: the schedule, the deadline, and the thread that sends the renewals.

A failed renewal is not a lost lease yet: it is tried again until the deadline, which counts from the time at which the
last successful renewal was sent. In the database the lease lives at least as long, because its clock starts on arrival.
"""

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import NamedTuple
from weakref import WeakMethod

from threadmark.errors import ClosedError, ThreadNotFoundError
from threadmark.program import Driver, Operation, run
from threadmark.runtime.logs import log

_PARTS = 3
"""A renewal is sent after this fraction of the time to live, which leaves time to fail and try again."""

_AGAIN = 12
"""After a failure the next renewal is sent after this fraction."""


class Schedule:
    """When the next renewal of a lease is due, and when the lease counts as lost. Times are monotonic."""

    def __init__(self, ttl: float, sent: float) -> None:
        self._ttl = ttl
        self._due = self._deadline = 0.0
        self.renewed(sent)

    def renewed(self, sent: float) -> None:
        """Note that a renewal that was sent at this time succeeded."""
        self._due, self._deadline = sent + self._ttl / _PARTS, max(self._deadline, sent + self._ttl)

    def failed(self) -> None:
        """Note that a renewal failed. The next one is due soon."""
        self._due = time.monotonic() + self._ttl / _AGAIN

    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return time.monotonic() >= self._deadline

    def pause(self, *, waits: bool) -> float:
        """Return the seconds until the next renewal, or until an earlier deadline, or if a renewal is on its way."""
        until = self._deadline if waits else min(self._due, self._deadline)
        return max(0.0, until - time.monotonic())


class Renewed(NamedTuple):
    """The result of a renewal: whether the lease was still the last one, or an error."""

    sent: float
    outcome: bool | Exception


class Renewing:
    """The part of a renewal that the thread and the task share."""

    def __init__(self, driver: Driver, ttl: float, sent: float, operation: Callable[[], Operation[bool]]) -> None:
        self.driver = driver
        self.operation = operation
        self.schedule = Schedule(ttl, sent)

    def goes_on(self, renewed: Renewed) -> bool:
        """Take a renewal into account. Returns whether the lease still needs renewing."""
        sent, outcome = renewed
        if isinstance(outcome, (ClosedError, ThreadNotFoundError)):  # so would every further one
            return False
        if isinstance(outcome, Exception):
            log.write(
                logging.WARNING,
                "%s: a lease could not be renewed (%s); this is tried again until its time is over",
                str(self.driver),
                type(outcome).__name__,
            )
            self.schedule.failed()
            return True
        if outcome:
            self.schedule.renewed(sent)
        return outcome


class RenewalThread:
    """A daemon thread that renews a lease until it is stopped, or the lease is lost or no longer referenced.

    A separate thread sends each renewal, so that one that hangs in a pool cannot hold up the deadline. Messages to
    this thread go through a queue written in C, because the main thread may be interrupted at any instruction.
    """

    def __init__(self, renewing: Renewing, lose: Callable[[], None]) -> None:
        self._renewing = renewing
        self._news: SimpleQueue[Renewed | None] = SimpleQueue()
        news = self._news
        self._lose = WeakMethod(lose, lambda _: news.put(None))  # of a lease that no one releases any more

    def start(self) -> None:
        """Begin to renew."""
        threading.Thread(target=self._work, name="threadmark-lease", daemon=True).start()

    def stop(self) -> None:
        """Stop renewing. A renewal that is on its way is left alone."""
        self._news.put(None)

    async def astop(self) -> None:
        """Like `stop`, for asyncio."""
        self.stop()

    def _work(self) -> None:
        schedule, waits = self._renewing.schedule, False
        while True:
            try:
                news = self._news.get(timeout=schedule.pause(waits=waits))
            except Empty:
                if schedule.is_over():
                    break
                if self._lose() is None:  # an interrupt has kept the news of it from us
                    return
                waits = True
                self._send()
                continue
            waits = False
            if news is None:
                return
            if not self._renewing.goes_on(news):
                break
        lose = self._lose()
        if lose is not None:
            lose()

    def _send(self) -> None:
        sent = time.monotonic()
        try:
            threading.Thread(target=self._renew, args=(sent,), name="threadmark-renewal", daemon=True).start()
        except RuntimeError as error:  # no more threads, for now or because the interpreter ends
            self._news.put(Renewed(sent, error))

    def _renew(self, sent: float) -> None:
        try:
            outcome: bool | Exception = run(self._renewing.driver, self._renewing.operation())
        except Exception as error:  # noqa: BLE001 - whatever it is, the lease is kept as long as it lives
            outcome = error
        self._news.put(Renewed(sent, outcome))
