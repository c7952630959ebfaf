"""Loggers that cannot harm an operation.

Each package has one under its name; docs/reference/watching.md lists their messages. A handler may raise, wait, or need
a lock that one of our callers holds. So its errors are printed, as `logging` does, and not passed on. If a lock or a
connection is held, or other callers wait, a line is only noted, and the caller writes it at the end.
"""

import logging
import math
import time
import traceback
from collections import deque
from typing import Any, NamedTuple

from threadmark.errors import ConfigError, short_repr
from threadmark.program import Transaction
from threadmark.runtime.processes import reset_after_fork

_MOST_NOTED = 1000
"""Lines that wait to be written. If a handler is slower than we are, the oldest are dropped."""


class _Line(NamedTuple):
    level: int
    message: str
    arguments: tuple[object, ...]


class Log:
    """The logger of one package. Arguments must be numbers or text: a handler may show their repr."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self.noted: deque[_Line] = deque(maxlen=_MOST_NOTED)
        """Lines for `flush` to write. Mostly there are none, which a caller can see without a call."""
        reset_after_fork(self)

    def write(self, level: int, message: str, *arguments: object) -> None:
        """Write a line now. Call it only while you hold no lock and no connection."""
        try:
            self._logger.log(level, message, *arguments)
        except Exception:  # noqa: BLE001 - of a handler or filter, which an operation must not fail for
            if logging.raiseExceptions:
                traceback.print_exc()

    def note(self, level: int, message: str, *arguments: object) -> None:
        """Have a line written by the next `flush`."""
        self.noted.append(_Line(level, message, arguments))

    def flush(self) -> None:
        """Write the lines noted by this or another thread."""
        while self.noted:
            try:
                level, message, arguments = self.noted.popleft()
            except IndexError:  # another thread was quicker
                return
            self.write(level, message, *arguments)

    def note_slow(self, place: object, seconds: float, transaction: Transaction[Any], others: int = 0) -> None:
        """Note that a transaction took long, alone or in one commit with others."""
        inner = transaction
        while inner.args and isinstance(wrapped := getattr(inner.args[0], "__self__", None), Transaction):
            inner = wrapped  # `transaction` runs another one through a program, as those of two savers in a row
        program: Any = getattr(inner.program, "func", inner.program)
        name = getattr(program, "__qualname__", type(program).__name__).replace(".<locals>", "")
        more = f", and {others} more in the same commit" if others else ""
        self.note(
            logging.WARNING,
            "%s: a transaction that %s (%s%s) took %.3f s, waiting for locks included",
            str(place),
            "writes" if transaction.writes else "reads",
            name,
            more,
            seconds,
        )

    def note_migration(self, place: object, found: int, current: int, begun: float) -> None:
        """Note that the tables were brought to the current format, from format `found` (0: there were none)."""
        seconds = time.monotonic() - begun
        if found == 0:
            self.note(logging.INFO, "%s: made the tables of format %d in %.3f s", str(place), current, seconds)
        elif found < current:
            self.note(logging.INFO, "%s: migrated from format %d to %d in %.3f s", str(place), found, current, seconds)

    def _reset_after_fork(self) -> None:
        """Drop the lines in the child of a fork: the parent writes them."""
        self.noted.clear()


log = Log("threadmark")
"""The logger of this package."""


def slow_after(slow: float | None) -> float:
    """Return the seconds from which a transaction is slow, infinity for None. Raises ConfigError for anything else."""
    if slow is None:
        return math.inf
    if isinstance(slow, bool) or not isinstance(slow, (int, float)) or not slow >= 0:
        raise ConfigError(f"slow must be a number of seconds from 0 on, or None for no warning, not {short_repr(slow)}")
    return slow
