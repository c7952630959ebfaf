"""Every error a saver raises, under one base class.

A message says what happened, to which key, and what to do about it. Errors about a value know its location: the
layer that meets one adds what it knows (`error.at('channel "state"')`), so that the user reads the whole path.
"""

from typing import Self


class ThreadmarkError(Exception):
    """Base of every error that Threadmark raises on purpose."""


class ConfigError(ThreadmarkError, ValueError):
    """Invalid arguments: a missing thread_id, a negative limit, an unknown URL scheme."""


class MissingDependencyError(ThreadmarkError, ImportError):
    """A package that this needs is not installed. The message has the command that installs it."""


class LocatedError(ThreadmarkError):
    """An error about a stored or given value, which knows the way to it."""

    def __init__(self, problem: str, location: str = "") -> None:
        super().__init__(f"{location}: {problem}" if location else problem)
        self.problem = problem
        self.location = location

    def at(self, outer: str) -> Self:
        """Return the same error with one more step in front of its location. Raise it from its `origin`."""
        return type(self)(self.problem, f"{outer} -> {self.location}" if self.location else outer)

    @property
    def origin(self) -> BaseException:
        """The error that caused this one, such as one of the user's serializer, or this error itself."""
        return self.__cause__ or self


class located:  # noqa: N801 - reads as a statement: `with located("channel 'x'"):`
    """A block whose located errors get one more step in front of their location."""

    __slots__ = ("_location",)

    def __init__(self, location: str) -> None:
        self._location = location

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LocatedError):
            raise error.at(self._location) from error.origin


def shown(value: object) -> str:
    """A caller's value for a message: cut where it is long, only its type where it cannot be shown."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr of the user's may raise anything, and one of a long int does
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


_LONGEST_SHOWN = 100


class SerializationError(LocatedError):
    """A value cannot be stored so that it comes back the same. Nothing was stored."""


class ForbiddenTypeError(LocatedError):
    """This saver may not store or load a value's class. The message has the line of code that allows it."""


class CorruptDataError(LocatedError):
    """Stored bytes are not what was written. The message names thread, namespace, checkpoint and channel."""


class SchemaError(ThreadmarkError):
    """The database holds a format that this release does not read, or not a Threadmark database at all."""


class StoreError(ThreadmarkError):
    """The database failed (locked, full, unreachable). The driver's own error is the cause."""


class TransientStoreError(StoreError):
    """The database failed in a way that passes, and the saver has tried again in vain: the same call may succeed."""


class ReplicationError(TransientStoreError):
    """One of two replicated databases failed. The message says which, and whether the other one has the write."""


class ThreadDeletedError(ThreadmarkError):
    """The thread was deleted with the checkpoint that this continues. Nothing was stored, so it stays deleted."""


class ThreadNotFoundError(ThreadmarkError, LookupError):
    """There is no such thread here, or it belongs to another owner. Nothing was stored."""


class CheckpointNotFoundError(ThreadmarkError, LookupError):
    """There is no such checkpoint."""


class ThreadBusyError(ThreadmarkError):
    """Somebody else holds a lease of the thread. Nothing was stored; wait, or take the lease over."""


class LeaseLostError(ThreadmarkError):
    """The lease is over, and the thread may be somebody else's. Nothing was stored, nor will be under this lease."""


class ConflictError(ThreadmarkError):
    """A parent is no longer the newest, an id is taken, or others need a checkpoint. Nothing was done; read again."""


class ClosedError(ThreadmarkError):
    """The saver was closed, or belongs to another process. Open a new one."""

    def __init__(self, message: str = "this saver was closed; open a new one") -> None:
        super().__init__(message)
