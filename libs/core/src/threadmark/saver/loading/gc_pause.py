"""Pausing the garbage collector while a large value is decoded, for savers that were opened with `pause_gc=True`.

A decoded value is thousands of new objects, none of them garbage yet. CPython counts new objects, though: after every
few hundred it looks through the young ones for cycles, and from time to time through everything that the process has
imported. For a list of LangChain messages that is up to three quarters of the time.
"""

import gc
import os
from collections.abc import Callable
from typing import Any

_paused = False
"""Whether it was `with_gc_paused` that switched the collector off."""


def with_gc_paused(make: Callable[[Any], Any], given: Any) -> Any:
    """Call `make(given)` without a collection meanwhile. Returns its result.

    A collector that is off already stays off, whether the user's program switched it off or another thread's pause:
    whoever began a pause ends it, so that threads that decode all the time cannot keep the collector off.
    """
    global _paused  # noqa: PLW0603 - the collector is the process's, too
    if not gc.isenabled():
        return make(given)
    try:
        _paused = True
        gc.disable()
        return make(given)
    finally:
        _paused = False  # first, because a signal's handler may raise as soon as a call has returned
        gc.enable()


def _end_pause() -> None:
    """End a pause in the child of a fork, where the thread that began it does not exist."""
    if _paused:
        gc.enable()


if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(after_in_child=_end_pause)
