"""Starting again in a forked process: locks, threads and connections that the child cannot use.

A fork copies the memory of a process, but only the thread that forks. In the child nobody releases a lock that another
thread held, and what another thread was changing stays as it was at that moment.
"""

import os
from typing import Protocol
from weakref import WeakSet


class BeginsAnew(Protocol):
    """An object with locks, connections or threads."""

    def begin_anew(self) -> None:
        """Make new locks, and leave connections to the parent. Called in the child of a fork, which has one thread."""


_all: WeakSet[BeginsAnew] = WeakSet()


def begin_anew_after_fork(thing: BeginsAnew) -> None:
    """Call the object's `begin_anew` in every child of a fork, as long as the object lives."""
    _all.add(thing)


def _begin_all_anew() -> None:
    for thing in list(_all):
        thing.begin_anew()


if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(after_in_child=_begin_all_anew)
