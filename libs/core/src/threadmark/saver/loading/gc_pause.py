"""The garbage collector rests while a large value is decoded.

A decoded value is thousands of new objects, none of them garbage yet. CPython counts what is made, though: every few
hundred objects it looks through the young ones for cycles, and from time to time through everything that the process
has imported. Of a listing of LangChain messages that was three quarters of the time.
"""

import gc
import os
from collections.abc import Callable
from typing import Any

_resting = False  # whether it is one of us who switched the collector off


def with_gc_paused(make: Callable[[Any], Any], given: Any) -> Any:
    """`make(given)`, and only then the next collection.

    Whoever finds the collector switched off leaves it so, the user's own choice as well as another thread's rest: who
    began the rest ends it, so that threads that decode all the time cannot keep it off.
    """
    global _resting  # noqa: PLW0603 - the collector is the process's, too
    if not gc.isenabled():
        return make(given)
    try:
        _resting = True
        gc.disable()
        return make(given)
    finally:
        _resting = False  # first, because a signal's handler may raise as soon as a call has returned
        gc.enable()


def _end_rest() -> None:
    """In the child of a fork, where the thread that began the rest is not there to end it."""
    if _resting:
        gc.enable()


if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(after_in_child=_end_rest)
