"""A fork waits until no thread of this process is at work on a file of this package.

A child made in the middle of a transaction would have its half of it, and would undo it in the file, without any lock,
when it drops the connection.
"""

import os
import threading
from contextlib import suppress


class _Turn:
    """Whoever works on a file has the turn; whoever forks takes it meanwhile."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def before_fork(self) -> None:
        self.lock.acquire()

    def after_in_parent(self) -> None:
        with suppress(RuntimeError):  # an interrupt may have ended the wait for it
            self.lock.release()

    def after_in_child(self) -> None:
        self.lock = threading.RLock()


turn = _Turn()

if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(
        before=turn.before_fork, after_in_parent=turn.after_in_parent, after_in_child=turn.after_in_child
    )
