"""The blocking callers that write on their own threads: one of them at a time, for all who wait with it.

Whoever comes when nobody leads leads. Those who come before it commits share its commit. Those who come while it
commits wait; then the first of them leads, and commits for all of them. So a lone caller needs no other thread, those
who come together share a commit, and nobody is woken before there is an answer, except for the one who leads next.
"""

import threading
from collections.abc import Sequence
from typing import Any

from threadmark.errors import ClosedError, StoreError
from threadmark.program import Transaction
from threadmark.runtime.workers import Answer
from threadmark_sqlite.driver.jobs import BATCH, Job


class Lead(list[Job]):
    """Tells a caller to commit its own transaction, and with it those of the others in this list."""

    __slots__ = ()


class Callers:
    """Who leads, and who waits. The main thread does neither: an interrupt could stop it half-way.

    A leader may have recursed as far as its stack goes. It can let the next one lead all the same: `leave`, and to set
    the answer that is a `Lead`, call no deeper than `enter`.
    """

    def __init__(self) -> None:
        self._changing = threading.RLock()  # a finalizer may come in the middle of it
        """Held to change who waits. A lone caller, whom nobody waits for, does without."""
        self.waiting: list[Job] = []
        """Those who have come while somebody leads, in their order."""
        self._led = threading.Lock()
        """Held from when somebody leads until nobody waits any more."""
        self._leader: int | None = None
        """The thread that leads."""
        self._closed = False

    def enter(self, transaction: Transaction[Any]) -> Answer | None:
        """Come with a transaction. Returns None to whoever leads, or where to wait, for the result or for a `Lead`."""
        if not self._led.acquire(False):
            return self._wait(transaction)
        self._leader = threading.get_ident()
        if not self._closed:
            return None
        if next_ones := self.leave():
            next_ones.pop(0).waiting.set_result(Lead(next_ones))
        raise ClosedError

    def lead(self) -> None:
        """Note that this thread leads: it was told so."""
        self._leader = threading.get_ident()

    def join(self, others: list[Job]) -> Sequence[Transaction[Any]]:
        """Let those who wait share the commit that is about to be made. Returns their transactions; mostly none."""
        if not self.waiting:
            return ()
        with self._changing:
            joining = self.waiting[: BATCH - 1 - len(others)]
            others += joining
            del self.waiting[: len(joining)]
        return [job.transaction for job in joining]

    def leave(self, unfinished: Sequence[Job] = ()) -> list[Job] | None:
        """Lead no more. Returns those who are next, the first of whom must be told to lead; mostly nobody.

        The unfinished are ahead of those who came after them.
        """
        self._leader = None
        if not self.waiting and not unfinished:
            self._led.release()
            # Whoever comes meanwhile waits first and looks then whether somebody still leads: so one sees the other.
            if not self.waiting or not self._led.acquire(False):
                return None
        with self._changing:
            if unfinished:
                self.waiting[:0] = unfinished
            next_ones = self.waiting[:BATCH]
            del self.waiting[:BATCH]
            if not next_ones:
                self._led.release()
            return next_ones

    def close(self) -> None:
        """Let nobody come any more, and wait for those who have. It may be called again."""
        with self._changing:
            self._closed = True
        self._led.acquire()
        while next_ones := self.leave():  # somebody left just now, who found that another one led: this one
            next_ones.pop(0).waiting.set_result(Lead(next_ones))
            self._led.acquire()

    def _wait(self, transaction: Transaction[Any]) -> Answer | None:
        """Come while somebody leads. Returns where to wait, or None if that one has left meanwhile."""
        waiting = Answer()
        job = Job(transaction, waiting)
        with self._changing:
            if self._closed:
                raise ClosedError
            if self._leader == threading.get_ident():
                raise StoreError(_NESTED)
            self.waiting.append(job)
            if self._led.acquire(False):
                self._leader = threading.get_ident()
                self.waiting.pop()
                return None
            return waiting


_NESTED = (
    "a saver was asked to store something from within a transaction of its own, on the same thread, and would wait for "
    "itself: a finalizer (__del__), a callback of weakref or gc and a trace function must leave that to another thread"
)
