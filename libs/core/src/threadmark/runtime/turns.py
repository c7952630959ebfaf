"""Turns on data in this process: of one call at a time, or of a block of several calls."""

import threading

_LONGEST_WAIT = 0.05
"""Seconds between two looks of those who wait, who are not always notified."""


class Turn:
    """The turn of one call at a time, or of one block, on data that all callers share.

    A call takes the lock, and then calls `wait`. Both are written where they are needed: an `__enter__` in Python could
    be interrupted between its two steps. A block is the holder and has no lock, for the same reason.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._free = threading.Condition(self.lock)
        self.holder: object | None = None
        """Stands for the block that has the turn. It must not keep the block alive."""

    def wait(self) -> None:
        """Wait until no block has the turn. The caller has the lock."""
        while self.holder is not None:
            self._free.wait(_LONGEST_WAIT)

    def give_back(self, holder: object) -> None:
        """End the turn of a block, if it still has it.

        This waits for no lock: the garbage collector may call it, in a thread that has the lock.
        """
        if self.holder is holder:
            self.holder = None
            if self.lock.acquire(blocking=False):
                self._free.notify_all()
                self.lock.release()

    async def until_free(self) -> None:
        """Wait until no block has the turn: for tasks, which must not wait for a lock."""
        import asyncio  # programs without it need not load it

        while self.holder is not None:  # noqa: ASYNC110 - any thread may end it, and cannot wake a task
            await asyncio.sleep(0.002)
