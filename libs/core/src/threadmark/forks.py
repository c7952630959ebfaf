"""What has to begin anew in a forked process.

A fork copies the memory of a process, but of its threads only the one that forks. A lock that another one held is
given back by nobody in the child, and what another one was changing stays as it was at that moment.
"""

import os
from typing import Protocol
from weakref import WeakSet


class BeginsAnew(Protocol):
    """Something that has locks, or connections and threads."""

    def begin_anew(self) -> None:
        """In the child of a fork, where no other thread is: make locks anew, leave to the parent what is its own."""


_all: WeakSet[BeginsAnew] = WeakSet()


def begin_anew_after_fork(thing: BeginsAnew) -> None:
    """Let it begin anew in every child of a fork, for as long as it lives."""
    _all.add(thing)


def _begin_all_anew() -> None:
    for thing in list(_all):
        thing.begin_anew()


if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(after_in_child=_begin_all_anew)
