"""Taking turns: of the callers of one process that have written to the same thread, one copies for all that wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """The callers that wait for a thread to be copied, for each thread and term."""

    def __init__(self) -> None:
        self._waiters: dict[tuple[str, int], Waiters] = {}
        self._changing = threading.Lock()

    @contextmanager
    def join(self, thread_id: str, term: int) -> Iterator["Waiters"]:
        """Count as one of those that wait for a thread, for as long as the block runs."""
        with self._changing:
            waiters = self._waiters.setdefault((thread_id, term), Waiters())
            waiters.count += 1
        try:
            yield waiters
        finally:
            with self._changing:
                waiters.count -= 1
                if not waiters.count:
                    del self._waiters[thread_id, term]


class Waiters:
    """The callers that wait for one thread to be copied. One at a time has the turn to copy."""

    def __init__(self) -> None:
        self.count = 0
        self.copied_to = 0
        """The position up to which one of them has copied the thread to the other database, 0 for none."""
        self._turn = threading.Lock()

    def take_turn(self) -> bool:
        """Take the turn if nobody has it. Returns whether it was taken. It never waits."""
        return self._turn.acquire(blocking=False)

    def end_turn(self) -> None:
        """Let the next one have the turn."""
        self._turn.release()
