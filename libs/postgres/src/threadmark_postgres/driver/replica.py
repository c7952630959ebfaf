"""Reading from a standby that is at most a given number of seconds behind, or from the primary if none is.

A standby cannot tell how far it is behind: its clock is another one, and a standby that was cut off gets no news. So
the driver asks the primary now and then for its position in the log, and notes when it asked. A standby that has
replayed up to the primary's position at some moment shows everything that had been committed by then.
"""

import logging
import time
from collections import deque
from typing import Any, NamedTuple

from threadmark.backends import ConfigError, Program, Transaction
from threadmark_postgres.driver import aio, blocking
from threadmark_postgres.driver.conversation import LostCommit
from threadmark_postgres.driver.driver import PostgresDriver
from threadmark_postgres.driver.log import log
from threadmark_postgres.driver.settings import Settings
from threadmark_postgres.migrations import Found
from threadmark_postgres.sql import connections
from threadmark_postgres.steps import Query, Rows, execute

_MARKS = 4
"""How often the primary is asked for its position within the time that a standby may be behind."""

_LOOK_AGAIN = 30.0
"""Seconds after which a connection to the primary, made because there was no standby, is closed and opened again."""


class ReplicaDriver:
    """Runs reading transactions on a standby that is at most `max_staleness` seconds behind, or on the primary.

    With None any standby is read, and the primary is not asked.
    """

    def __init__(self, settings: Settings, max_staleness: float | None) -> None:
        self.primary = PostgresDriver(settings.aimed_at("read-write"))
        self._marks = _Marks(max_staleness) if max_staleness is not None else None
        self._standby = _StandbyDriver(settings.aimed_at("prefer-standby"), self._marks)
        self._was_behind = False

    def __str__(self) -> str:
        return f"{self._standby}, from a replica"

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run the program in one transaction and return its result."""
        if self._marks is not None and self._marks.is_due():
            asked = time.monotonic()
            self._marks.add(asked, self.primary.run(_POSITION))
        try:
            result = self._standby.run(transaction)
        except _BehindError:
            self._note_whether_behind(behind=True)
            return self.primary.run(transaction)
        self._note_whether_behind(behind=False)
        return result

    async def arun(self, transaction: Transaction[Any]) -> Any:
        """Like `run`, for asyncio."""
        if self._marks is not None and self._marks.is_due():
            asked = time.monotonic()
            self._marks.add(asked, await self.primary.arun(_POSITION))
        try:
            result = await self._standby.arun(transaction)
        except _BehindError:
            self._note_whether_behind(behind=True)
            return await self.primary.arun(transaction)
        self._note_whether_behind(behind=False)
        return result

    def close(self) -> None:
        """Close every connection."""
        self._standby.close()
        self.primary.close()

    async def aclose(self) -> None:
        """Like `close`, for asyncio."""
        self.close()

    def _note_whether_behind(self, *, behind: bool) -> None:
        if behind == self._was_behind:
            return
        self._was_behind = behind
        if behind:
            log.write(logging.WARNING, "%s: the standby is too far behind; reading from the primary", str(self))
        else:
            log.write(logging.INFO, "%s: the standby has caught up; reading from it", str(self))


class _BehindError(Exception):
    """The standby may be further behind than it is allowed to be."""


_ANY = 0
"""No timeline has this number."""


class _Mark(NamedTuple):
    """The primary's position in the log, at the moment `asked` or later."""

    asked: float
    position: int
    timeline: int


class _Marks:
    """The last marks. A standby must have reached one that is younger than the allowed delay."""

    def __init__(self, max_staleness: float) -> None:
        self._longest = max_staleness
        self._marks: deque[_Mark] = deque(maxlen=2 * _MARKS)
        self._due = -1.0

    def is_due(self) -> bool:
        """Return whether the caller must ask for another mark. Callers that come while it asks need not."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + self._longest / _MARKS
        return True

    def add(self, asked: float, place: tuple[int, int] | None) -> None:
        """Note the primary's position and timeline. Without tables it has none (None), and no standby lacks any."""
        self._marks.append(_Mark(asked, *(place or (0, _ANY))))

    def reached(self, position: int | None, timeline: int | None) -> bool:
        """Return whether a standby at this position shows all that was committed before the allowed delay."""
        oldest = time.monotonic() - self._longest
        young = [mark for mark in tuple(self._marks) if mark.asked >= oldest and mark.timeline in (timeline, _ANY)]
        return position is not None and any(mark.position <= position for mark in young)


class _StandbyDriver(PostgresDriver):
    """Asks for the server's position before each transaction, and compares it with the marks, if there are any."""

    def __init__(self, settings: Settings, marks: _Marks | None) -> None:
        super().__init__(settings)
        self._marks = marks
        self._asking = Query(connections.IS_STANDBY if marks is None else connections.POSITION)
        self._looked = time.monotonic()

    # The question is a separate transaction before the one that reads, whose snapshot is therefore younger.

    def _transact(
        self, connection: blocking.Connection, transaction: Transaction[Any], lost: LostCommit | None = None
    ) -> Any:
        answers = blocking.answers(connection, [self._asking], prepare=self._settings.prepare)
        stays = self._is_to_stay(*answers)
        result = super()._transact(connection, transaction, lost)
        if not stays:
            self._source().forget_idle(0)
            connection.close()
        return result

    async def _atransact(
        self, connection: aio.Connection, transaction: Transaction[Any], lost: LostCommit | None = None
    ) -> Any:
        answers = await aio.answers(connection, [self._asking], prepare=self._settings.prepare)
        stays = self._is_to_stay(*answers)
        result = await super()._atransact(connection, transaction, lost)
        if not stays:
            await self._source_of_loop().forget_idle(0)
            await connection.close()
        return result

    def _note_ready(self, found: Found) -> None:
        if found.distribute is not None:
            raise ConfigError(
                f"{self} is distributed over nodes, and each node has its own log: read_from='replica' is for one "
                "server and its standbys"
            )
        super()._note_ready(found)

    def _is_to_stay(self, rows: Rows) -> bool:
        """Return whether to keep the connection: one to a primary is closed now and then, as a standby may be back.

        Raises _BehindError if the server is too far behind.
        """
        ((in_recovery, *place),) = rows
        if self._marks is not None and not self._marks.reached(*place):
            raise _BehindError
        if in_recovery or time.monotonic() < self._looked + _LOOK_AGAIN:
            return True
        self._looked = time.monotonic()
        return False


def _position() -> Program[tuple[int, int]]:
    ((_, position, timeline),) = yield from execute(connections.POSITION, likely_last=True)
    return position, timeline


_POSITION = Transaction(_position, creates_tables=False)
