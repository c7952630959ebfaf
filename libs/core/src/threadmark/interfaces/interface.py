"""The base class of the interfaces, which holds their saver, and the check for values that JSON can carry."""

from collections.abc import Iterable
from math import isfinite
from typing import Any, TypeVar

from threadmark.errors import ConfigError, SerializationError, short_repr
from threadmark.program import Operation, arun, run
from threadmark.saver import Saver, SaverProtocol
from threadmark.saver.kit import SaverContext

T = TypeVar("T")


class Interface:
    """An interface over a saver. It has nothing to close; close the saver.

    Each method is an operation on the saver's context; `_run` and `_arun` drive it.
    """

    def __init__(self, saver: SaverProtocol) -> None:
        self._saver = checked_saver(saver)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._saver!r}>"

    @property
    def _context(self) -> SaverContext:
        """The context for operations."""
        return self._saver._context  # noqa: SLF001 - see below

    def _run(self, operation: Operation[T]) -> T:
        """Drive an operation on the caller's thread."""
        return run(self._saver._driver, operation)  # noqa: SLF001 - it runs operations as the saver itself does

    async def _arun(self, operation: Operation[T]) -> T:
        """Like `_run`, for asyncio."""
        return await arun(self._saver._driver, operation)  # noqa: SLF001 - see above


def checked_saver(candidate: object) -> Saver:
    """Return the argument if it is a saver, or raise ConfigError."""
    if isinstance(candidate, Saver):
        return candidate
    checkpointer = isinstance(getattr(candidate, "saver", None), Saver)
    hint = "give its `.saver`" if checkpointer else "threadmark.open(url) returns one"
    raise ConfigError(f"expected a threadmark.Saver, got {type(candidate).__name__}: {hint}")


_DEEPEST = 200
"""The deepest nesting. Python's own JSON encoder and decoder stop at a depth that depends on their caller."""

_LONGEST_LOCATION = 200


def json_ready(value: Any, location: str, levels: int = _DEEPEST) -> Any:
    """Return a copy of a value that JSON gives back equal, type for type.

    Raises SerializationError with the location of the first part that would change, such as a tuple.
    """
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind in (str, int, float):
        if problem := _changes(value):
            raise _refusal(problem, location)
        return value
    if kind not in (dict, list):
        raise _refusal(f"JSON has no {kind.__name__}, and would give back something else: convert it before", location)
    if levels == 0:
        raise _refusal(f"it is nested deeper than {_DEEPEST} levels, or contains itself", location)
    if kind is list:
        return [json_ready(item, f"{location}[{index}]", levels - 1) for index, item in enumerate(value)]
    return {key: json_ready(item, location + step, levels - 1) for key, step, item in _items(value, location)}


def _items(value: dict[Any, Any], location: str) -> Iterable[tuple[str, str, Any]]:
    """Return the items of a dictionary, each with the step that leads to it."""
    for key, item in value.items():
        if type(key) is not str:
            raise _refusal(f"JSON has no key {short_repr(key)}: keys must be text", location)
        if problem := _changes(key):
            raise _refusal(f"the key {short_repr(key)}: {problem}", location)
        yield key, f".{key}" if key.isidentifier() else f"[{key!r}]", item


def _changes(value: str | float) -> str | None:
    """Return why JSON would change a scalar."""
    if isinstance(value, float) and not isfinite(value):
        return f"JSON has no {value}"
    try:
        if isinstance(value, int):
            int.__repr__(value)
        elif isinstance(value, str):
            value.encode()
    except UnicodeEncodeError:
        return "it has a lone surrogate, which UTF-8 does not carry"
    except ValueError:
        return "an int of so many digits is not converted to text"
    return None


def _refusal(problem: str, location: str) -> SerializationError:
    cut = location if len(location) <= _LONGEST_LOCATION else f"{location[:_LONGEST_LOCATION]}..."
    return SerializationError(problem, cut)
