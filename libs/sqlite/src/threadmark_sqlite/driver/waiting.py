"""Waiting for the lock that lets one connection write.

SQLite has no queue for it. It sleeps ever longer between two attempts, up to a tenth of a second: against a connection
that stores without a pause it may find the lock taken for seconds. So the connection that writes has SQLite wait for
only a few milliseconds, and then asks again until the saver's timeout is over. If the lock is free, none of this runs:
the first BEGIN succeeds (docs/decisions/0009-sqlite-writing.md).
"""

import sqlite3
import time

from threadmark_sqlite.sql import connections

_ROUND = 0.003
"""Seconds that SQLite waits before it is asked again. It tries at once, after one millisecond, and after two more."""

_PAUSE = 0.001
"""Seconds between two rounds: a SQLite that was built to sleep for whole seconds only does not sleep in a round."""


def busy_timeout(seconds: float) -> str:
    """Return the statement that makes SQLite wait that long for a lock from then on."""
    return connections.BUSY_TIMEOUT.format(milliseconds=round(seconds * 1000))


def shorten_waits(connection: sqlite3.Connection, timeout: float) -> float:
    """Make SQLite wait for one round. Returns how many seconds that is.

    A file without a write-ahead log, such as a copy made by VACUUM INTO, keeps the whole timeout: there a commit also
    waits for readers, and keeps new ones out while it does.
    """
    ((mode,),) = connection.execute(connections.LOG_MODE).fetchall()
    seconds = min(_ROUND, timeout) if mode == "wal" else timeout
    connection.execute(busy_timeout(seconds))
    return seconds


def is_busy(error: BaseException) -> bool:
    """Whether SQLite refused a lock that another connection holds."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return isinstance(error, sqlite3.OperationalError) and code & 0xFF == sqlite3.SQLITE_BUSY


def begin_later(connection: sqlite3.Connection, seconds: float) -> None:
    """Begin a transaction that writes as soon as the lock is free. Raises SQLite's error when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        time.sleep(_PAUSE)
        try:
            connection.execute(connections.BEGIN_WRITE)
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        else:
            return
