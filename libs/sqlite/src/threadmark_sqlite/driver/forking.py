"""Makes a fork wait until no thread is in a call of SQLite, and closes the connections before it.

SQLite keeps the locks of its connections in this process's memory, and the child of a fork inherits that memory, but no
lock of the system. It would wait for locks that no thread releases, or read and write without any, and then the last
process to close the file deletes the log under the child. So nothing is open when the process forks.
"""

import os
import threading
from typing import Protocol
from weakref import WeakSet

from threadmark.backends import INSIDE, Answer


class Pausing(Protocol):
    """An object that works in SQLite on several threads."""

    def pause(self, *, in_block: bool) -> None:
        """Wait until no call of SQLite is running, let none begin, and close the connections.

        `in_block` says that the thread that forks is in the block of a transaction, which cannot end.
        """

    def resume(self) -> None:
        """Undo `pause`. Called by the thread that paused."""


_all: WeakSet[Pausing] = WeakSet()
_changing = threading.Lock()
_forking = threading.local()


def pause_for_forks(working: Pausing) -> None:
    """Pause `working` whenever this process forks, until it is garbage-collected. Has no effect in the child."""
    with _changing:
        _all.add(working)


class _Pause:
    """A pause around a fork, on its own thread, because an interrupt could stop the main thread half-way."""

    def __init__(self) -> None:
        self._begun, self._over, self._ended = Answer(), Answer(), Answer()
        self._in_block = bool(INSIDE.get())

    def begin(self) -> None:
        threading.Thread(target=self._last, name="threadmark-sqlite-fork", daemon=True).start()
        self._begun.wait()

    def end(self) -> None:
        self._over.set_result(None)
        if self._begun.done():  # otherwise the thread finds that the pause is over, if it ever starts
            self._ended.wait()

    def _last(self) -> None:
        with _changing:
            for working in _all:
                working.pause(in_block=self._in_block)
            self._begun.set_result(None)
            self._over.wait()
            for working in _all:
                working.resume()
        self._ended.set_result(None)


def _before() -> None:
    if _all:
        _forking.pause = _Pause()
        _forking.pause.begin()


def _after_in_parent() -> None:
    if (pause := _forking.__dict__.pop("pause", None)) is not None:
        pause.end()


def _after_in_child() -> None:
    global _all, _changing
    _all, _changing = WeakSet(), threading.Lock()
    _forking.__dict__.clear()


if hasattr(os, "register_at_fork"):  # some systems have no fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
