"""Taking turns: of those in one process who have written to the same thread, one copies for all who wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Who copies which thread."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], Line] = {}
        self._changing = threading.Lock()

    @contextmanager
    def line(self, thread_id: str, term: int) -> Iterator["Line"]:
        """Stand in line for a thread, under a term. A line is there as long as anybody stands in it."""
        with self._changing:
            line = self._lines.setdefault((thread_id, term), Line())
            line.length += 1
        try:
            yield line
        finally:
            with self._changing:
                line.length -= 1
                if not line.length:
                    del self._lines[thread_id, term]


class Line:
    """Those who wait for a thread to be copied."""

    def __init__(self) -> None:
        self.length = 0
        self.come = 0
        """The position up to which somebody of this line has brought the thread to the other database, 0 for none."""
        self._turn = threading.Lock()

    def take(self) -> bool:
        """Take the turn, if nobody has it. Returns whether that is so. It never waits."""
        return self._turn.acquire(blocking=False)

    def give_up(self) -> None:
        """Let the next one have the turn."""
        self._turn.release()
