"""A process that forks, and a process that ends.

A fork copies the memory of a process, but only the thread that forks. In the child, a lock that another thread held is
never released, and data that another thread was changing stays half changed. So the child starts again with new locks,
threads and connections.

A program that ends without closing its saver, as many do, must leave nothing half done and print no warning. `atexit`
calls the functions here after all threads have ended that a program waits for, so their last writes are stored; a hook
of `threading` would be called before that. Later requests of daemon threads are refused.
"""

import atexit
import os
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class ResetsAfterFork(Protocol):
    """An object with locks, connections or threads."""

    def _reset_after_fork(self) -> None:
        """Make new locks, and leave connections to the parent. Called in the child of a fork, which has one thread."""


_all: WeakSet[ResetsAfterFork] = WeakSet()


def reset_after_fork(thing: ResetsAfterFork) -> None:
    """Call the object's `_reset_after_fork` in every child of a fork, as long as the object lives."""
    _all.add(thing)


def _reset_all_after_fork() -> None:
    for thing in list(_all):
        thing._reset_after_fork()  # noqa: SLF001 - users are not to call it


if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(after_in_child=_reset_all_after_fork)


class Closes(Protocol):
    """An object with connections or files."""

    def close(self) -> None:
        """Close them. It may be called again."""


class _Open:
    """The objects of this process that are to be closed, as long as they live."""

    def __init__(self) -> None:
        self._reset_after_fork()
        reset_after_fork(self)

    def _reset_after_fork(self) -> None:
        """Forget them in the child of a fork: they are the parent's."""
        self._all: WeakSet[Closes] = WeakSet()
        self._first: WeakSet[Closes] = WeakSet()
        """Those that need others of them until they are closed."""

    def add(self, thing: Closes) -> None:
        self._all.add(thing)

    def add_first(self, thing: Closes) -> None:
        self._first.add(thing)
        # The last one registered is called first, and by now the hook is registered that ends all `Workers`.
        atexit.unregister(self.close_first)
        atexit.register(self.close_first)

    def discard(self, thing: Closes) -> None:
        self._all.discard(thing)
        self._first.discard(thing)

    def close(self) -> None:
        _close(self._all)

    def close_first(self) -> None:
        _close(self._first)


def _close(things: WeakSet[Closes]) -> None:
    with suppress(KeyError):  # raised when none is left; daemon threads may add some
        while True:
            thing = things.pop()
            with suppress(Exception):  # everything acknowledged is stored, and the others must be closed as well
                thing.close()


_open = _Open()
atexit.register(_open.close)


def close_at_exit(thing: Closes) -> None:
    """Close the object when the interpreter ends, if it lives until then. The child of a fork forgets it."""
    _open.add(thing)


def close_before_others(thing: Closes) -> None:
    """Like `close_at_exit`, for an object that uses others, and `Workers`, which end then, too. It begins no thread."""
    _open.add_first(thing)


def was_closed(thing: Closes) -> None:
    """Leave the object alone at exit."""
    _open.discard(thing)
