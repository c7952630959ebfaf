"""Waiting for an event in another process, thread or server, and naming the one that did not come."""

import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which something has failed, on the slowest machine."""

_LONGEST_PAUSE = 0.01


def wait_until(has_come: Callable[[], object], what: str, *, within: float = PATIENCE) -> None:
    """Look again and again; fail with these words after very long."""
    until = time.monotonic() + within
    pause = 0.0005
    while not has_come():
        assert time.monotonic() < until, what
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
