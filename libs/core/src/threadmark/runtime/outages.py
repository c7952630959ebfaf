"""An outage of a database in the log: one warning when attempts begin to fail, and one when it is over.

While a server is away each caller tries again and again. A line for each attempt would be thousands, and say no more.
"""

import logging
import threading
import time

from threadmark.runtime.logs import Log
from threadmark.runtime.processes import reset_after_fork


class Outage:
    """Counts the failed attempts of all callers of one driver.

    The outage begins with the first failed attempt. It is over when an attempt succeeds that began after the last
    failure: one that began before may have been answered before the server went away.
    """

    def __init__(self, log: Log, place: object) -> None:
        self._log = log
        self._place = place
        self.is_on = False
        """Whether attempts have failed since the last one that ended an outage. Read it before you call `succeeded`."""
        self.failures = 0
        """All failed attempts until now. Take it at the beginning of an attempt, and pass it to `succeeded`."""
        self._attempts = 0
        self._callers = 0
        self._since = 0.0
        self._reset_after_fork()
        reset_after_fork(self)

    def failed(self, event: str, then: str, *, is_first: bool, holds_lock: bool = False) -> None:
        """Count an attempt that failed. The first one of an outage is a warning, the others are DEBUG lines.

        Args:
            event: The event.
            then: The consequence.
            is_first: Whether it is the caller's first attempt.
            holds_lock: Whether the caller holds a lock or a connection, so that the line is written later.
        """
        with self._changing:
            begins = not self.is_on
            if begins:
                self.is_on, self._attempts, self._callers, self._since = True, 0, 0, time.monotonic()
            self.failures += 1
            self._attempts += 1
            self._callers += is_first
        write = self._log.note if holds_lock else self._log.write
        if not holds_lock and self._log.noted:  # the first line of the outage may be among them
            self._log.flush()
        write(logging.WARNING if begins else logging.DEBUG, "%s: %s; %s", str(self._place), event, then)

    def succeeded(self, failures: int) -> None:
        """Note that an attempt succeeded, at the beginning of which there were so many failures.

        If more than one attempt had failed, the end of the outage is a warning. A single one, such as a connection that
        had been closed long ago, is INFO.
        """
        with self._changing:
            if not self.is_on or failures != self.failures:
                return
            self.is_on = False
            attempts, callers, seconds = self._attempts, self._callers, time.monotonic() - self._since
        self._log.note(
            logging.WARNING if attempts > 1 else logging.INFO,
            "%s: works again after %.1f s; failed attempts: %d, callers: %d",
            str(self._place),
            seconds,
            attempts,
            callers,
        )

    def _reset_after_fork(self) -> None:
        """Replace the lock in the child of a fork: a thread of the parent may hold it, and never gives it back."""
        self._changing = threading.Lock()
