"""For how long an operation is tried again where its server is away, and how long it waits between two attempts."""

import random
import time

_FIRST_WAIT, _LONGEST_WAIT = 0.02, 2.0


class Attempts:
    """The attempts at one operation. Each wait is longer than the one before, and all end after `timeout` seconds."""

    def __init__(self, timeout: float) -> None:
        self._until = time.monotonic() + timeout
        self._wait = 0.0

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self._until - time.monotonic(), 0.0)

    def _longer_wait(self) -> float:
        """Return the seconds to wait this time, which are never more than are left."""
        wait = min(self._wait * random.uniform(0.5, 1.0), self.left)  # noqa: S311 - spreads callers, hides nothing
        # The first attempt that fails may just have met a connection that was closed long ago.
        self._wait = min(max(2 * self._wait, _FIRST_WAIT), _LONGEST_WAIT)
        return wait
