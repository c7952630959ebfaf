"""All errors of a saver, under one base class.

A message says what happened, to which key, and what you can do about it. An error about a value also has its location:
each layer that it passes adds its part (`error.at('channel "state"')`), so that you read the whole path.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class ThreadmarkError(Exception):
    """Base class of every error that Threadmark raises on purpose."""


class ConfigError(ThreadmarkError, ValueError):
    """Invalid arguments, such as a missing thread_id, a negative limit or an unknown URL scheme."""


class MissingDependencyError(ThreadmarkError, ImportError):
    """A package is missing that this feature needs. The message has the command that installs it."""


@contextmanager
def importing(needed: str) -> Iterator[None]:
    """A block that imports an optional package. `needed` says how to install it, and may contain "{missing}"."""
    try:
        yield
    except MissingDependencyError:  # it says what to install
        raise
    except ImportError as missing:
        raise MissingDependencyError(needed.format(missing=missing), name=missing.name) from missing


class LocatedError(ThreadmarkError):
    """An error about a value, with the location of the value."""

    def __init__(self, problem: str, location: str = "") -> None:
        super().__init__(f"{location}: {problem}" if location else problem)
        self.problem = problem
        self.location = location

    def at(self, outer: str) -> Self:
        """Return the same error with one more step in front of its location. Raise it from its `origin`."""
        return type(self)(self.problem, f"{outer} -> {self.location}" if self.location else outer)

    @property
    def origin(self) -> BaseException:
        """The cause of this error, such as an error of your own serializer, or this error itself."""
        return self.__cause__ or self


class located:  # noqa: N801 - reads as a statement: `with located("channel 'x'"):`
    """A block that adds one more step in front of the location of located errors."""

    __slots__ = ("_location",)

    def __init__(self, location: str) -> None:
        self._location = location

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LocatedError):
            raise error.at(self._location) from error.origin


def short_repr(value: object) -> str:
    """Return a caller's value for a message: shortened if it is long, only its type if its `repr` fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a repr of the user's may raise anything, and one of a long int does
        return f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST_REPR else f"{text[:_LONGEST_REPR]}..."


_LONGEST_REPR = 100


class SerializationError(LocatedError):
    """A value cannot be stored so that it comes back the same. Nothing was stored."""


class ForbiddenTypeError(LocatedError):
    """This saver may not store or load the class of a value. The message has the line of code that allows it."""


class CorruptDataError(LocatedError):
    """Stored bytes are not the bytes that were written. The message names thread, namespace, checkpoint, channel."""


class SchemaError(ThreadmarkError):
    """The database has a format that this release does not read, or is not a Threadmark database at all."""


class StoreError(ThreadmarkError):
    """The database failed (locked, full, unreachable). The cause is the error of the driver."""


class TransientStoreError(StoreError):
    """The database failed temporarily, and all attempts of the saver failed. The same call may succeed later."""


class ReplicationError(TransientStoreError):
    """One of two replicated databases failed. The message says which, and whether the other one has the write."""


class ThreadDeletedError(ThreadmarkError):
    """The thread was deleted, with the checkpoint that this one continues. Nothing was stored, so it stays deleted."""


class ThreadNotFoundError(ThreadmarkError, LookupError):
    """The thread does not exist, or belongs to another owner. Nothing was stored."""


class CheckpointNotFoundError(ThreadmarkError, LookupError):
    """The checkpoint does not exist."""


class ThreadBusyError(ThreadmarkError):
    """Another holder has a lease of the thread. Nothing was stored; wait, or take the lease over."""


class LeaseLostError(ThreadmarkError):
    """The lease is over, and another holder may have the thread. Nothing was stored, nor will be under this lease."""


class ConflictError(ThreadmarkError):
    """A parent is no longer the newest, an id is taken, or others need a checkpoint. Nothing was done; read again."""


class EffectError(ThreadmarkError):
    """Base class of the errors about effects, the calls that are made once (docs/how-to/effects.md)."""


class EffectUnknownError(EffectError):
    """A call was begun, and it cannot be known whether it happened. Nothing was called again; settle the effect."""


class EffectLostError(EffectError):
    """A call has ended after its claim was taken over or settled. Its result was refused, and nothing was stored."""


class EffectFailedError(EffectError):
    """The effect was settled as failed, or its exception cannot be made here. The message has the reason."""


class ClosedError(ThreadmarkError):
    """The saver was closed, or belongs to another process. Open a new one."""

    def __init__(self, message: str = "this saver was closed; open a new one") -> None:
        super().__init__(message)
