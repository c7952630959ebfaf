"""All drivers of this process. Before one opens a file, others with the same path check whether theirs was replaced."""

import os
import threading
from typing import Protocol
from weakref import WeakSet

from threadmark.backends import reset_after_fork


class LooksAgain(Protocol):
    """A driver that may have a file open."""

    @property
    def path(self) -> str:
        """The path of the file."""

    def look_again(self) -> None:
        """Switch to the file at the path if it was replaced, before another driver opens it next to the old log."""


class Drivers:
    """A registry of the drivers that are alive."""

    def __init__(self) -> None:
        self._all: WeakSet[LooksAgain] = WeakSet()
        self._changing = threading.RLock()  # a signal handler may make a saver while another one is added
        reset_after_fork(self)

    def _reset_after_fork(self) -> None:
        """In the child of a fork, replace the lock: a thread that does not exist there may hold it."""
        self._changing = threading.RLock()

    def add(self, driver: LooksAgain) -> None:
        """Register a driver until it is garbage-collected."""
        with self._changing:
            self._all.add(driver)

    def beside(self, driver: LooksAgain) -> list[LooksAgain]:
        """Return the other drivers with the same path, symbolic links followed."""
        with self._changing:
            others = [other for other in self._all if other is not driver]
        path = os.path.realpath(driver.path) if others else ""
        return [other for other in others if os.path.realpath(other.path) == path]
