"""The thread that renews the claims of long calls, one for the process.

A call may take longer than a claim lives without a renewal, and its own thread is busy with it. Each claim is renewed
a few times while it would live; most calls end before the first.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from threadmark.runtime.logs import log
from threadmark.runtime.processes import reset_after_fork

_IDLE = 3600.0
"""The longest wait: one of centuries, as timedelta.max would ask for, is more than a lock can count."""


class Renewed:
    """A claim that is renewed."""

    __slots__ = ("due", "every", "renew")

    def __init__(self, every: float, renew: Callable[[], bool]) -> None:
        self.every = every
        self.renew = renew
        self.due = time.monotonic() + every


class Renewals:
    """The claims that are renewed, and the thread that does so. It begins with the first of them."""

    def __init__(self) -> None:
        self._reset_after_fork()
        reset_after_fork(self)

    def _reset_after_fork(self) -> None:
        """In the child of a fork: the calls go on in the parent."""
        self._changed = threading.Condition()
        self._all: set[Renewed] = set()
        self._wakes = 0.0
        self._thread: threading.Thread | None = None

    @contextmanager
    def renewing(self, every: float, renew: Callable[[], bool]) -> Iterator[None]:
        """Call `renew` now and then during the block, until it returns False."""
        renewed = Renewed(every, renew)
        with self._changed:
            self._all.add(renewed)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="threadmark-effects", daemon=True)
                self._thread.start()
            elif renewed.due < self._wakes:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._all.discard(renewed)

    def _work(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                due = [renewed for renewed in self._all if renewed.due <= now]
                if not due:
                    self._wakes = min((renewed.due for renewed in self._all), default=now + _IDLE)
                    self._changed.wait(min(self._wakes - now, _IDLE))
                    continue
            for renewed in due:
                if not still_there(renewed.renew):
                    with self._changed:
                        self._all.discard(renewed)
                renewed.due = time.monotonic() + renewed.every


def still_there(renew: Callable[[], bool]) -> bool:
    """Renew a claim. A failure is logged, and tried again at the next time."""
    try:
        return renew()
    except Exception as error:  # noqa: BLE001 - whatever it is, the call goes on, and its claim with it
        failed(error)
        return True


def failed(error: Exception) -> None:
    """Log that a renewal failed."""
    log.write(
        logging.WARNING,
        "the claim of an effect could not be renewed (%s); this is tried again while its call runs",
        type(error).__name__,
    )


renewals = Renewals()
