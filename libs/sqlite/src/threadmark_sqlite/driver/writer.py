"""Group commit: transactions that wait to be written share a commit, and are answered after it.

If a transaction in a group fails, the group is rolled back and run again in halves, down to the one that fails alone.
So a failure does not affect the others, and the usual case pays nothing for that.

Blocking callers write on their own threads (`callers`): handing over to another thread and waiting for it takes two
changes of threads, which cost as much as the statements. The writer's thread serves event loops, which must not be
blocked, and the main thread, which an interrupt could stop half-way.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

from threadmark.backends import Failed, StoreError, Transaction, close_at_exit, may_be_interrupted
from threadmark.bounded_sqlite import reset_steps
from threadmark_sqlite.driver.callers import Callers, Lead
from threadmark_sqlite.driver.connection import (
    Settings,
    connect,
    empty_log,
    give_space_back,
    meant,
    to_threadmark_error,
    try_to_empty_log,
)
from threadmark_sqlite.driver.forking import Pausing
from threadmark_sqlite.driver.jobs import Job, Jobs, answer, lacked_room
from threadmark_sqlite.driver.log import log
from threadmark_sqlite.driver.playing import committed, end_transaction, expect_own_form, played
from threadmark_sqlite.driver.waiting import begin_later, busy_timeout, is_busy, shorten_waits
from threadmark_sqlite.driver.watch import ReplacedError, Watch
from threadmark_sqlite.sql import connections

_RECLAIMS = attrgetter("reclaims_space")
_LONGEST_EMPTYING = 0.1
"""Seconds that the log waits for readers after a removal: others cannot write then, and a later commit tries again."""

Joining = Callable[[], Sequence[Transaction[Any]]]
"""Returns the transactions of callers that have come since. They share the commit."""

Led = tuple[Any, Sequence[tuple[Job, Any]], Sequence[Job]]
"""The result of a leader: its own outcome, those of others, and the transactions that are left to do."""


class Writer:
    """The connection that writes, opened at first use, and the thread that runs queued transactions.

    `spare` returns a connection that readers can do without, if there is one; it is used in place of a new one.
    """

    def __init__(self, settings: Settings, watch: Watch, spare: Callable[[], sqlite3.Connection | None]) -> None:
        self._jobs = Jobs()
        self._callers = Callers()
        self.turn = threading.Lock()
        """Held by the thread that uses the connection."""
        self._settings = settings
        self._slow = settings.slow
        self._watch = watch
        self._spare = spare
        self._connection: sqlite3.Connection | None = None
        self._timeout = self._round = settings.timeout
        """Seconds to wait for the lock: altogether, and within SQLite before it is asked again."""
        self._serving = threading.Lock()
        """Held by the thread that serves."""
        self._thread: threading.Thread | None = None
        self._abandoned: Pausing | None = None
        self._log_is_due = False
        """Whether the log may still have removed data, because a reader kept it from being emptied."""

    def run(self, transaction: Transaction[Any]) -> Any:
        """Run a transaction. Returns its result when it is committed."""
        if may_be_interrupted() or not self._jobs.idle:
            self._let_serve()
            return self._jobs.submit(transaction).result()
        others: list[Job] = []
        if (waiting := self._callers.enter(transaction)) is not None:
            outcome = waiting.result()
            if not isinstance(outcome, Lead):
                return outcome
            self._callers.lead()
            others = outcome
        unfinished: Sequence[Job] = others
        try:
            lead = self._lead if others else self._lead_alone
            outcome, answers, unfinished = lead(transaction, others)
        finally:
            if next_ones := self._callers.leave(unfinished):
                next_ones.pop(0).waiting.set_result(Lead(next_ones))
        if answers:
            answer(answers)
        if isinstance(outcome, Failed):
            raise outcome.error
        return outcome

    def submit(self, transaction: Transaction[Any]) -> asyncio.Future[Any]:
        """Queue a transaction for a task of the running event loop. Returns the future of its result."""
        self._let_serve()
        return self._jobs.asubmit(transaction)

    def close(self) -> None:
        """Finish submitted transactions, then stop. Must not run in a thread that an interrupt may strike."""
        self._callers.close()
        self._jobs.close()
        with self._serving:  # until the thread has ended, if there is one
            self._work()
        if self._thread is not None:
            self._thread.join()
        self._close_connection()

    def abandon(self, pausing: Pausing) -> None:
        """Stop when all submitted transactions are done. Then the thread, if there is one, closes the connection.

        This does not wait. Exit and a fork do, for which `pausing` is kept.
        """
        self._abandoned = pausing
        close_at_exit(self)
        self._jobs.close()
        if not self._serving.locked():
            self._close_connection()

    def rest(self) -> None:
        """Close the connection until the next transaction. The caller has the turn."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._watch.close(connection)

    def leave(self, spare: Callable[[], sqlite3.Connection | None]) -> None:
        """Close the connection to a file that was replaced. Uses a spare connection if the writer has none."""
        with self.turn:
            self._watch.leave(lambda: self._connection or spare())
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _close_connection(self) -> None:
        with self.turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(ReplacedError, StoreError, sqlite3.Error):
                    self._watch.expect_untouched(connection)
                    # The last connection to be closed empties the log. That may be yours, which may never be closed.
                    empty_log(connection)
                self._watch.close(connection)

    def _lead_alone(self, transaction: Transaction[Any], others: list[Job]) -> Led:
        """Like `_lead`, if no caller waits yet: usually none will."""
        outcomes: list[Any] = []
        stored = False
        try:
            with self.turn:
                connection, looks = self._connection, self._watch.looks
                if connection is None or connection.in_transaction or looks is None or not looks.is_untouched():
                    connection = self._ready()
                begun = time.monotonic()
                try:
                    join = partial(self._join, connection, others, outcomes)
                    outcome = committed(connection, transaction, self._callers.waiting, join)
                    stored = True
                finally:
                    is_slow = time.monotonic() - begun >= self._slow
                    if others or is_slow or transaction.reclaims_space or self._log_is_due:
                        transactions = [transaction, *[job.transaction for job in others]]
                        self._finish(connection, transactions, begun, [outcome, *outcomes] if stored else [])
                    elif looks is None or not looks.is_kept():
                        self._watch.expect_kept()
        except BaseException as error:
            if not stored and (others or self._may_ask_again(error)):
                return self._lead(transaction, others)  # waits for the lock, and finds out which transaction fails
            if others:
                outcome, *outcomes = [Failed(meant(error, self._settings)) for _ in (transaction, *others)]
            elif isinstance(error, sqlite3.Error):
                raise to_threadmark_error(error, self._settings) from error
            else:
                raise
        return outcome, list(zip(others, outcomes, strict=True)) if others else (), ()

    def _join(self, connection: sqlite3.Connection, others: list[Job], outcomes: list[Any]) -> None:
        """Run the transactions of callers that have come since, until there are none."""
        while joining := self._callers.join(others):
            outcomes += [played(connection, transaction.begin()) for transaction in joining]

    def _lead(self, transaction: Transaction[Any], others: list[Job]) -> Led:
        """Commit for the caller on this thread, for others, and for those that come before the commit.

        Returns the outcome of the caller's own transaction, the others that are done with their outcomes, and those for
        which this thread's stack had no room: another thread has to run them.
        """
        transactions = [transaction, *[job.transaction for job in others]]
        with self.turn:
            outcome, *outcomes = self._outcomes(transactions, partial(self._callers.join, others))
        pairs = list(zip(others, outcomes, strict=True))
        return (
            outcome,
            [pair for pair in pairs if not lacked_room(pair[1])],
            [job for job, each in pairs if lacked_room(each)],
        )

    def _let_serve(self) -> None:
        """Start the thread if it does not run.

        An interrupt may hide that it was started. A second thread ends at once.
        """
        if not self._serving.locked():
            threading.Thread(target=self._serve, name="threadmark-sqlite-writer", daemon=True).start()

    def _serve(self) -> None:
        if self._serving.acquire(blocking=False):
            try:
                self._thread = threading.current_thread()
                self._work()
                if self._abandoned is not None:
                    self._close_connection()
            finally:
                self._serving.release()

    def _work(self) -> None:
        while jobs := self._jobs.next_batch():
            batch = [job for job in jobs if not job.waiting.cancelled()]
            if batch:
                with self.turn:
                    outcomes = self._outcomes([job.transaction for job in batch])
                answer(zip(batch, outcomes, strict=True))

    def _outcomes(self, transactions: list[Transaction[Any]], joining: Joining | None = None) -> list[Any]:
        """Run transactions, and add those that join them. Returns the outcome of each, in their order."""
        try:
            connection, begun = self._ready(), time.monotonic()
            outcomes = self._together(connection, transactions, joining)
            self._finish(connection, transactions, begun, outcomes)
        except BaseException as error:  # noqa: BLE001 - the waiting caller must get it
            return [Failed(meant(error, self._settings))] * len(transactions)
        return outcomes

    def _ready(self) -> sqlite3.Connection:
        """Return the connection, on the file that is at the path, with no transaction open."""
        if self._connection is None:
            self._connection = self._spare() or self._watch.open(
                lambda expect_same: connect(self._settings, expect_same)
            )
            self._round = shorten_waits(self._connection, self._timeout)
        connection = self._connection
        if connection.in_transaction:
            end_transaction(connection)
        self._watch.expect_untouched(connection)
        return connection

    def _finish(
        self, connection: sqlite3.Connection, transactions: list[Transaction[Any]], begun: float, outcomes: list[Any]
    ) -> None:
        """After a commit, or after it failed: raise if the data was not stored in files that others find."""
        if any(map(_RECLAIMS, transactions)) and not all(isinstance(outcome, Failed) for outcome in outcomes):
            connection.execute(busy_timeout(min(self._timeout, _LONGEST_EMPTYING)))
            self._log_is_due = not give_space_back(connection)
            connection.execute(busy_timeout(self._round))
        elif self._log_is_due:
            self._log_is_due = not try_to_empty_log(connection)
            connection.execute(busy_timeout(self._round))
        if (seconds := time.monotonic() - begun) >= self._slow:
            log.note_slow(self._settings, seconds, transactions[0], len(transactions) - 1)
        self._watch.expect_kept()

    def _together(
        self, connection: sqlite3.Connection, transactions: list[Transaction[Any]], joining: Joining | None = None
    ) -> list[Any]:
        """Run transactions in one commit, and add those that join them before it. Returns the outcomes.

        If one fails, the others are committed without it.
        """
        try:
            try:
                connection.execute(connections.BEGIN_WRITE)
            except sqlite3.OperationalError as error:
                if not self._may_ask_again(error):
                    raise
                begin_later(connection, self._timeout - self._round)
        except sqlite3.Error as error:  # another connection has the lock, and all have waited long enough
            return [Failed(meant(error, self._settings)) for _ in transactions]
        try:
            reset_steps(connection)
            expect_own_form(connection)
            outcomes = [played(connection, transaction.begin()) for transaction in transactions]
            while joining and (more := joining()):
                transactions += more
                outcomes += [played(connection, transaction.begin()) for transaction in more]
            connection.execute(connections.COMMIT)
        except BaseException as error:  # noqa: BLE001 - the waiting caller must get it
            end_transaction(connection)
            if len(transactions) == 1:
                return [Failed(meant(error, self._settings))]
            self._note_halving(error, len(transactions))
        else:
            return outcomes
        middle = len(transactions) // 2
        first = self._together(connection, transactions[:middle])
        return first + self._together(connection, transactions[middle:])

    def _may_ask_again(self, error: BaseException) -> bool:
        """Return whether the lock was refused, and SQLite has only waited for a part of the timeout."""
        return self._round < self._timeout and is_busy(error)

    def _note_halving(self, error: BaseException, count: int) -> None:
        log.note(
            logging.DEBUG,
            "%s: a commit of %d transactions failed (%s): it is done again in halves",
            str(self._settings),
            count,
            type(error).__name__,  # its text may quote stored data
        )
