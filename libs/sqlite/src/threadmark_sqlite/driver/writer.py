"""Group commit: one thread writes for all callers, and as many of them as wait share a commit.

Each operation runs in a savepoint of its own, so that one that fails leaves its neighbours alone; everybody is
answered after the commit that holds their rows, not before.
"""

import sqlite3
import threading
from functools import partial
from typing import Any

from threadmark.errors import ThreadmarkError
from threadmark.program import Transaction, play
from threadmark_sqlite import sql
from threadmark_sqlite.driver.connection import Settings, connect, execute, transact, translated
from threadmark_sqlite.driver.jobs import Failed, Job, Jobs, answer


class _BatchLostError(Exception):
    """SQLite ended the whole transaction because of one operation's error."""


class Writer:
    """The thread that writes. It opens its own connection, and closes it when told to stop."""

    def __init__(self, settings: Settings) -> None:
        self.jobs = Jobs()
        self.turn = threading.Lock()
        """Held while the thread is in SQLite."""
        self._settings = settings
        self._thread = threading.Thread(target=self._work, name="threadmark-sqlite-writer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        self.jobs.close()
        self._thread.join()

    def _work(self) -> None:
        connection: sqlite3.Connection | None = None
        while jobs := self.jobs.next_batch():
            batch = [job for job in jobs if job.begin()]
            if not batch:
                continue
            try:
                with self.turn:
                    connection = connection or connect(self._settings)
                    outcomes = self._served(connection, batch)
            except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
                outcomes = [Failed(error)] * len(batch)
            answer(zip(batch, outcomes, strict=True))
        if connection is not None:
            connection.close()

    def _served(self, connection: sqlite3.Connection, batch: list[Job]) -> list[Any]:
        """What came of each job of a batch."""
        outcomes = self._together(connection, batch) if len(batch) > 1 else None
        if outcomes is None:
            outcomes = [self._alone(connection, job.transaction) for job in batch]
        if any(job.transaction.frees for job in batch):
            self._give_space_back(connection)
        return outcomes

    def _together(self, connection: sqlite3.Connection, batch: list[Job]) -> list[Any] | None:
        """The outcomes of a batch that shares one commit; None where it could not and nothing was stored."""
        try:
            connection.execute(sql.BEGIN_WRITE)
            outcomes = [self._in_savepoint(connection, job.transaction) for job in batch]
            connection.execute(sql.COMMIT)
        except (sqlite3.Error, _BatchLostError):
            if connection.in_transaction:
                connection.execute(sql.ROLLBACK)
            return None
        return outcomes

    def _in_savepoint(self, connection: sqlite3.Connection, transaction: Transaction) -> Any:
        connection.execute(sql.SAVEPOINT)
        try:
            result = play(transaction.program(), partial(execute, connection))
        except BaseException as error:
            if not connection.in_transaction:
                raise _BatchLostError from error
            connection.execute(sql.ROLLBACK_TO)
            result = Failed(self._meant(error))
        connection.execute(sql.RELEASE)
        return result

    def _alone(self, connection: sqlite3.Connection, transaction: Transaction) -> Any:
        try:
            return transact(connection, transaction)
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it
            return Failed(self._meant(error))

    def _meant(self, error: BaseException) -> BaseException:
        if not isinstance(error, sqlite3.Error):
            return error
        meaning: ThreadmarkError = translated(error, self._settings)
        meaning.__cause__ = error
        return meaning

    def _give_space_back(self, connection: sqlite3.Connection) -> None:
        """A favour to the disk: where a reader or another process is in the way, the next removal does it."""
        try:
            # As a script, because `execute` stops after the first page: that step returns no row to go on for.
            connection.executescript(sql.GIVE_SPACE_BACK)
            connection.execute(sql.EMPTY_LOG).fetchall()
        except sqlite3.OperationalError:
            if connection.in_transaction:
                connection.execute(sql.ROLLBACK)
