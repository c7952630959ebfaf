"""Group commit for blocking callers that write on their own threads: one leads, and the others share its commit.

A caller leads if no other one does. Callers that come before the leader commits share its commit. Callers that come
during the commit wait; then the first of them leads and commits for all of them. So a lone caller needs no second
thread, concurrent callers share a commit, and a caller is only woken when there is an answer, or when it leads next.
"""

import threading
from collections.abc import Sequence
from typing import Any

from threadmark.backends import Answer, ClosedError, StoreError, Transaction
from threadmark_sqlite.driver.jobs import BATCH, Job


class Lead(list[Job]):
    """Tells a caller to commit its own transaction together with those of the other callers in this list."""

    __slots__ = ()


class Callers:
    """The caller that leads, and those that wait. The main thread does neither: an interrupt could stop it half-way.

    A leader may have used up its stack. It can hand on the lead all the same: `leave`, and setting the answer that is a
    `Lead`, call no deeper than `enter`.
    """

    def __init__(self) -> None:
        self._changing = threading.RLock()  # a finalizer may run in the middle of a method
        """Held to change the list of waiting callers. A lone caller does without."""
        self.waiting: list[Job] = []
        """Callers that came while another one led, in their order."""
        self._led = threading.Lock()
        """Held from when a caller leads until no caller waits."""
        self._leader: int | None = None
        """The thread that leads."""
        self._closed = False

    def enter(self, transaction: Transaction[Any]) -> Answer | None:
        """Enter with a transaction. Returns None to a leader, or the place to wait, for the result or for a `Lead`."""
        if not self._led.acquire(False):
            return self._wait(transaction)
        self._leader = threading.get_ident()
        if not self._closed:
            return None
        if next_ones := self.leave():
            next_ones.pop(0).waiting.set_result(Lead(next_ones))
        raise ClosedError

    def lead(self) -> None:
        """Note that this thread leads now, after it got a `Lead`."""
        self._leader = threading.get_ident()

    def join(self, others: list[Job]) -> Sequence[Transaction[Any]]:
        """Let callers that wait share the commit that is about to be made. Returns their transactions; mostly none."""
        if not self.waiting:
            return ()
        with self._changing:
            joining = self.waiting[: BATCH - 1 - len(others)]
            others += joining
            del self.waiting[: len(joining)]
        return [job.transaction for job in joining]

    def leave(self, unfinished: Sequence[Job] = ()) -> list[Job] | None:
        """End the lead. Returns the next callers, of which the first must get a `Lead`; mostly none.

        Unfinished transactions come before later ones.
        """
        self._leader = None
        if not self.waiting and not unfinished:
            self._led.release()
            # A newcomer first queues and then checks for a leader; the leader first gives up the lead and then checks
            # the queue. So at least one of them sees the other.
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
        """Refuse new callers, and wait for those that have entered. You may call it again."""
        with self._changing:
            self._closed = True
        self._led.acquire()
        while next_ones := self.leave():  # these queued while this call had the lead
            next_ones.pop(0).waiting.set_result(Lead(next_ones))
            self._led.acquire()

    def _wait(self, transaction: Transaction[Any]) -> Answer | None:
        """Queue while another caller leads. Returns the place to wait, or None if that leader has left."""
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
