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
from threadmark.workers import Answer
from threadmark_sqlite.driver.jobs import BATCH, Job


class Lead(list[Job]):
    """Tells a caller to commit its own transaction, and with it those of the others in this list."""


class Callers:
    """Who leads, and who waits. The main thread does neither: an interrupt could stop it half-way.

    A leader may have recursed as far as its stack goes. It can let the next one lead all the same: `leave`, and to set
    the answer that is a `Lead`, call no deeper than `enter`.
    """

    def __init__(self) -> None:
        self._changing = threading.RLock()  # a finalizer may come in the middle of it
        self._waiting: list[Job] = []
        self._led = threading.Lock()
        """Held from when somebody leads until nobody waits any more."""
        self._leader: int | None = None
        """The thread that leads."""
        self._closed = False

    def enter(self, transaction: Transaction[Any]) -> Lead | Answer:
        """Come with a transaction. Returns a `Lead`, or where to wait, for the result or for a `Lead`."""
        thread = threading.get_ident()
        with self._changing:
            if self._closed:
                raise ClosedError
            if self._led.acquire(blocking=False):
                self._leader = thread
                return Lead()
            if self._leader == thread:
                raise StoreError(_NESTED)
            waiting = Answer()
            self._waiting.append(Job(transaction, waiting))
            return waiting

    def lead(self) -> None:
        """Note that this thread leads: it was told so."""
        self._leader = threading.get_ident()

    def join(self, others: Lead) -> Sequence[Transaction[Any]]:
        """Let those who wait share the commit that is about to be made. Returns their transactions; mostly none."""
        if not self._waiting:
            return ()
        with self._changing:
            joining = self._waiting[: BATCH - 1 - len(others)]
            others += joining
            del self._waiting[: len(joining)]
        return [job.transaction for job in joining]

    def leave(self, unfinished: Sequence[Job] = ()) -> list[Job]:
        """Lead no more. Returns those who are next, the first of whom must be told to lead; mostly nobody.

        The unfinished are ahead of those who came after them.
        """
        with self._changing:
            self._leader = None
            if unfinished:
                self._waiting[:0] = unfinished
            next_ones = self._waiting[:BATCH]
            if next_ones:
                del self._waiting[:BATCH]
            else:
                self._led.release()
            return next_ones

    def close(self) -> None:
        """Let nobody come any more, and wait for those who have. It may be called again."""
        with self._changing:
            self._closed = True
        with self._led:
            pass


_NESTED = (
    "a saver was asked to store something from within a transaction of its own, on the same thread, and would wait for "
    "itself: a finalizer (__del__), a callback of weakref or gc and a trace function must leave that to another thread"
)
