"""The meaning of an error of the database: whether to try again, for how long, and which error to raise.

Every transaction of a saver may be run twice, because rows are named by their content or their key. So a transaction
whose connection was lost is tried again even if its commit may have been carried out. If the answer to a COMMIT of its
own was lost, the server is asked first (`conversation.LostCommit`), so that the result is right, too.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import psycopg
from psycopg import errors

from threadmark.backends import (
    Attempts,
    ConfigError,
    Outage,
    SchemaError,
    StoreError,
    ThreadmarkError,
    TransientStoreError,
)
from threadmark_postgres.driver.log import log
from threadmark_postgres.driver.settings import Settings
from threadmark_postgres.functions import SWITCHED

# By SQLSTATE, or its class. All others are errors at once, such as a full disk (53100), a missing right or your own
# timeout: the next attempt would meet them again.
_PASSING = (
    "08",  # no connection
    "23505",  # another client stored the same checkpoint at that moment: the next attempt sees it
    "25006",  # a standby, perhaps one that was just the primary
    "25P03",  # the session was idle in a transaction for too long
    "26000",  # a prepared statement that the server does not know: a new connection, or another one behind a pooler
    "40",  # the victim of a deadlock, or of a conflict between transactions
    "42P05",  # a prepared statement that the server knows already, as 26000
    "53300",  # no connection left
    "55P03",  # a lock did not come in time
    "57P01",  # the server stops, or an administrator ended the session
    "57P02",  # the server crashed
    "57P03",  # the server starts, stops or recovers
    "57P05",  # the session was idle for too long
)

# 0A000 means that the server cannot do something. Two of its functions use it for failures that pass: a prepared plan
# that no longer fits, and a writing transaction on a standby. Their texts are in the server's language.
_PASSING_IN = ("RevalidateCachedQuery", "call_bool_check_hook")

# Citus reports a node that was killed while another one waits for it in English, as an internal error (XX000).
_NODE_ENDED = "postmaster was shut down, exiting"

# Other connections will meet the same error: all sessions end, or this server has become a standby.
_FOR_ALL = ("57P01", "57P02", "57P03", "25006")

# Refusals to connect have no code, only a text. If the server's language is another one, retries are in vain.
_HOPELESS = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "no password supplied",
    "the pool '",  # of the user: not open, or closed
)

# A server that says that it will soon take connections: it starts, or is full. Even a saver that never had a connection
# waits for it, as when an application and its server are started together.
_SOON = ("the database system is", "too many clients", "too many connections", "connection slots")
_NOT_SOON = "shutting down"


class Retries(Attempts):
    """The retries of one operation, which began at the moment `begun` of the monotonic clock.

    A saver that never had a connection does not wait, because a wrong address looks like a server that is away.
    """

    def __init__(self, settings: Settings, begun: float, outage: Outage) -> None:
        super().__init__(settings.timeout - (time.monotonic() - begun))
        self._settings = settings
        self._outage = outage
        self._is_first = True

    def next_wait(self, error: psycopg.Error, *, reached: bool) -> float:
        """Return the seconds to wait before the next attempt, and log it. Raises the error that ends the attempts.

        `reached` says whether the saver ever had a connection. Call it with no connection and no lock held.
        """
        check_worth_waiting(error, self._settings, reached=reached)
        if self.left <= 0:
            raise TransientStoreError(
                f"{self._settings} could not be used for {self._settings.timeout:g} s: {_words(error)}"
            ) from error
        wait = self._longer_wait()
        then = f"trying again in {wait:.2f} s, and for {self.left:.0f} s at most"
        self._outage.failed(what_happened(error), then, is_first=self._is_first)
        self._is_first = False
        return wait


def check_worth_waiting(error: psycopg.Error, settings: Settings, *, reached: bool) -> None:
    """Raise the error's meaning unless the failure is worth waiting for."""
    if not passes(error):
        raise to_threadmark_error(error, settings) from error
    if not reached and not _soon_passes(error):
        cause = _words(error).rstrip("?.")  # libpq asks whether the server is running
        raise TransientStoreError(
            f"{settings} could not be reached: {cause}. This saver never had a connection, so it does not wait "
            "for the server: see that it runs at this address"
        ) from error


def _soon_passes(error: psycopg.Error) -> bool:
    text = str(error)
    return any(words in text for words in _SOON) and _NOT_SOON not in text


def passes(error: psycopg.Error) -> bool:
    """Return whether the same transaction may succeed on another connection, now or soon."""
    if is_switched(error):
        return True
    if error.sqlstate is not None:
        is_passing = error.sqlstate == "0A000" and error.diag.source_function in _PASSING_IN
        return error.sqlstate.startswith(_PASSING) or is_passing or error.diag.message_primary == _NODE_ENDED
    # A bare DatabaseError is libpq's own: an answer that breaks off, as when PgBouncer loses its server in the middle.
    if isinstance(error, psycopg.OperationalError) or type(error) is psycopg.DatabaseError:
        return not any(words in str(error) for words in _HOPELESS)
    return isinstance(error, psycopg.InterfaceError) and "closed" in str(error)


def is_switched(error: psycopg.Error) -> bool:
    """Return whether the database was switched to another format since this saver read which it has."""
    return error.diag.sqlstate == SWITCHED


def note_failed_batch(error: psycopg.Error, settings: Settings, outage: Outage) -> None:
    """Log later that a shared statement failed. Its changes are then stored one by one."""
    if passes(error):
        outage.failed(what_happened(error), "trying again", is_first=True, holds_lock=True)
    code = error.sqlstate or type(error).__name__  # its text may quote data that was to be stored
    log.note(logging.DEBUG, "%s: a batch failed (%s): its changes are stored one by one", str(settings), code)


def what_happened(error: psycopg.Error) -> str:
    """Describe a passing error for the log, with advice if there is some. Quotes no stored data."""
    if is_switched(error):
        return "the database was switched to another format"
    if error.sqlstate is None:
        return f"no connection, or it was lost ({_words(error)})"
    event = _EVENTS.get(error.sqlstate, "the server refused a transaction")
    advice = _ADVICE.get(error.sqlstate)
    # The other parts of the message quote keys and rows.
    primary = error.diag.message_primary or type(error).__name__
    return f"{event} ({error.sqlstate}: {primary}{f'; {advice}' if advice else ''})"


_EVENTS = {
    "25006": "the server takes no writes, as a standby or after a failover",
    "57P01": "the server ended the session",
    "57P02": "the server ended the session",
    "57P03": "the server starts, stops or recovers",
}
_RIGHTS = (
    "USAGE on the schema, SELECT, INSERT, UPDATE and DELETE on its tables, and EXECUTE on its functions, which every "
    "role has unless it is revoked"
)
"""A saver's role needs these."""

_ADVICE = {
    "53300": "give a smaller pool_size, or the server a larger max_connections",
    "26000": "behind a pooler in transaction mode, give prepare=False",
    "42P05": "behind a pooler in transaction mode, give prepare=False",
}


def is_for_all(error: psycopg.Error) -> bool:
    """Return whether other idle connections are probably broken as well."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError)
    return error.sqlstate in _FOR_ALL


def to_threadmark_error(error: psycopg.Error, settings: Settings) -> ThreadmarkError:
    """Return the Threadmark error for an error of the database."""
    if isinstance(error, errors.UntranslatableCharacter):
        return StoreError(
            f"{settings}: {_words(error)}; use a database with the encoding UTF8, which holds any text, "
            "and no other client_encoding"
        )
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(f"{settings}: {_words(error)}. Grant the role {_RIGHTS}")
    if isinstance(error, errors.UndefinedFunction | errors.UndefinedTable | errors.InvalidSchemaName):
        return StoreError(
            f"{settings}: {_words(error)}. Something was dropped since Threadmark set it up, or was not restored: "
            "setup() of the saver makes all tables of an empty schema, and functions that are missing"
        )
    if isinstance(error, errors.QueryCanceled):
        return TransientStoreError(f"{settings}: {_words(error)}; the statement_timeout may be too short")
    return StoreError(f"{settings}: {_words(error)}")


def raise_encoding_error(error: UnicodeEncodeError) -> NoReturn:
    """Raise the ConfigError for a connection that you passed whose encoding cannot express a text."""
    if error.encoding == "utf-8":
        raise error
    raise ConfigError(
        f"the client_encoding of the connection given has no {error.object[error.start]!r} ({error}): "
        "open it with client_encoding='UTF8'"
    ) from error


@contextmanager
def explaining_migration(settings: Settings, script: str) -> Iterator[None]:
    """A block that creates or changes tables. If the role may not, the error names the script to run instead.

    Raises SchemaError if an object of another application has one of our names.
    """
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{settings}: {_words(error)}. Let a role that may make tables run the script that {script} returns, "
            f"and grant this one {_RIGHTS}"
        ) from error
    except _TAKEN as error:
        raise SchemaError(
            f"{settings}: {_words(error)}. It belongs to another application, or is left of tables that were removed: "
            "choose another schema, or remove it"
        ) from error


_TAKEN = errors.DuplicateObject, errors.DuplicateTable, errors.InvalidFunctionDefinition, errors.WrongObjectType
"""An object has a name that a migration gives: a type, a relation, a function with another result, a procedure."""


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
