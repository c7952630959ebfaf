"""Explaining why values of a class cannot be stored, and the alternatives."""

import io
import types
from collections.abc import AsyncIterator, Awaitable, Iterator

from threadmark.errors import SerializationError
from threadmark.serde.attributes import maker


def refusal(cls: type, reason: str | None = None) -> SerializationError:
    """Return the error for a class that cannot be stored. The reason is found from the class if you pass none."""
    why = reason or _reason(cls)
    return SerializationError(f"a value of type {cls.__module__}.{cls.__qualname__} cannot be stored: {why}")


def _reason(cls: type) -> str:
    if cls.__module__ in _OF_THIS_PROCESS:
        return "locks and threads belong to this process"
    for bases, reason in _REASONS:
        if issubclass(cls, bases):
            return reason
    made_by = maker(cls)
    advice = "make the class a dataclass, or register it"
    if made_by is not object:
        advice = f"only {made_by.__qualname__} itself can make one; store its content as other data, or register it"
    return (
        f"it is not a kind of value that the serializer knows; {advice}: "
        f'threadmark.serde.register({cls.__name__}, "a-name", encode, decode)'
    )


_OF_THIS_PROCESS = frozenset({"_thread", "threading", "asyncio.locks", "multiprocessing.synchronize"})
_REASONS: tuple[tuple[tuple[type, ...], str], ...] = (
    (
        (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.WrapperDescriptorType),
        "functions are code, not data; store a name and look the function up",
    ),
    ((type,), "classes are code, not data; store a name and look the class up"),
    ((types.ModuleType,), "modules are code, not data"),
    ((memoryview,), "it is a window on another object; store bytes(view)"),
    ((io.IOBase,), "an open file belongs to this process; store its path or its content"),
    (
        (Iterator, AsyncIterator, Awaitable),
        "an iterator or awaitable that has not run to its end cannot be stored; store its results, as a list",
    ),
)
