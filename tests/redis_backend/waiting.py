"""To wait for what another process or thread does, and to say what did not come."""

import time
from collections.abc import Callable


def wait_until(has_come: Callable[[], bool], what: str, *, within: float = 60) -> None:
    """Look again and again; fail with these words after very long."""
    until = time.monotonic() + within
    while not has_come():
        assert time.monotonic() < until, what
        time.sleep(0.005)
