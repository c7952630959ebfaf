"""The meaning of the command's exit codes, the errors that lead to them, and the messages."""

from threadmark import (
    CheckpointNotFoundError,
    ClosedError,
    ConfigError,
    ConflictError,
    CorruptDataError,
    ForbiddenTypeError,
    LeaseLostError,
    MissingDependencyError,
    SchemaError,
    SerializationError,
    StoreError,
    ThreadBusyError,
    ThreadDeletedError,
    ThreadmarkError,
    ThreadNotFoundError,
)

DONE = 0
WRONG = 1
"""The result is bad: damage, differences that you asked for, a fault."""
USAGE = 2
"""The command line is wrong."""
MISSING = 3
"""Something you named is not there: a thread, a checkpoint, a path."""
REFUSED = 4
"""It was not done: the thread is busy or has changed, or the answer was no."""
FAILED = 5
"""The database failed, cannot be reached, or is not one that can be read."""
INTERRUPTED = 130
"""Ctrl-C. The open transaction was rolled back."""
CLOSED = 141
"""The reader of the output has closed it, as `head` does."""


class NotThereError(ThreadmarkError, LookupError):
    """Something that the command line names is not there."""


class RefusedError(ThreadmarkError):
    """The request is not carried out: a person said no, or must say yes first."""


class DatabaseError(ThreadmarkError):
    """The database is not there, or is none of ours."""


class OutputClosedError(Exception):
    """The reader of the output has closed it, so nothing more is written."""


_CODES: tuple[tuple[type[ThreadmarkError], int], ...] = (
    (NotThereError, MISSING),
    (ThreadNotFoundError, MISSING),
    (CheckpointNotFoundError, MISSING),
    (RefusedError, REFUSED),
    (ThreadBusyError, REFUSED),
    (ThreadDeletedError, REFUSED),
    (ConflictError, REFUSED),
    (LeaseLostError, REFUSED),
    (ConfigError, USAGE),
    (MissingDependencyError, USAGE),
    (CorruptDataError, WRONG),
    (ForbiddenTypeError, WRONG),
    (SerializationError, WRONG),
    (DatabaseError, FAILED),
    (StoreError, FAILED),
    (SchemaError, FAILED),
    (ClosedError, FAILED),
)


def code_of(error: ThreadmarkError) -> int:
    """The exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)
