"""Turns of two operations on one database, one transaction at a time, in the order of a script."""

import threading
from collections.abc import Generator, Sequence
from typing import Any

from threadmark.program import Driver, Transaction
from threadmark_conformance.driver_wrapper import DriverWrapper


class Turns:
    """Lets two operations take turns, one transaction at a time, in the order of a script.

    A turn is decided when every running operation waits for one, so that a script always gives the same order. `made`
    records each decision, and whether there was a choice.
    """

    def __init__(self, script: Sequence[int]) -> None:
        self.made: list[tuple[int, bool]] = []
        self._script = script
        self._going = {0, 1}
        self._waiting: set[int] = set()
        self._chosen: int | None = None
        self._lock = threading.Lock()

    def wait_for(self, who: int) -> None:
        """Ask for a turn."""
        with self._lock:
            self._waiting.add(who)
            self._choose()

    def has(self, who: int) -> bool:
        """Return whether it is this operation's turn."""
        return self._chosen == who

    def give_back(self) -> None:
        """End the turn: the transaction is over."""
        with self._lock:
            self._chosen = None

    def leave(self, who: int) -> None:
        """Leave: the operation is over."""
        with self._lock:
            self._going.discard(who)
            self._choose()

    def _choose(self) -> None:
        if self._chosen is None and self._going and self._waiting == self._going:
            position = len(self.made)
            scripted = self._script[position] if position < len(self._script) else min(self._going)
            who = scripted if scripted in self._going else min(self._going)
            self.made.append((who, len(self._going) > 1))
            self._waiting.discard(who)
            self._chosen = who


class Patient(DriverWrapper):
    """A driver that waits for its turn before every transaction, after a call of `take_turns`."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._turns: Turns | None = None
        self._who = 0

    def take_turns(self, turns: Turns, who: int) -> None:
        """Wait for turns from now on."""
        self._turns, self._who = turns, who

    def _wrap(self, transaction: Transaction[Any]) -> Generator[Transaction[Any] | None, Any, Any]:
        if self._turns is None:
            return (yield transaction)
        self._turns.wait_for(self._who)
        while not self._turns.has(self._who):
            yield None
        try:
            return (yield transaction)
        finally:
            self._turns.give_back()
