"""What the command's exit codes mean, which errors lead to which, and what is said about each."""

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
"""Something is wrong with what was looked at: damage, differences that were asked for, a fault."""
USAGE = 2
"""The command line is wrong."""
MISSING = 3
"""What was named is not there: a thread, a checkpoint, a path."""
REFUSED = 4
"""It was not done: the thread is busy or has changed, or the answer was no."""
FAILED = 5
"""The database failed, cannot be reached, or is not one that can be read."""
INTERRUPTED = 130
"""Ctrl-C. What was begun was rolled back."""
CLOSED = 141
"""Whoever read the output has closed it, as `head` does."""


class NotThereError(ThreadmarkError, LookupError):
    """What the command line names is not there."""


class RefusedError(ThreadmarkError):
    """What was asked for is not done, because somebody said no or must say yes first."""


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
