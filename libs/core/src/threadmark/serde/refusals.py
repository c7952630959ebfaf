"""Why values of some classes cannot be stored, in words that say what to do instead."""

import io
import types
from collections.abc import AsyncIterator, Awaitable, Iterator

from threadmark.errors import SerializationError


def refusal(cls: type) -> SerializationError:
    """The error for a class that no kind or family stores."""
    return SerializationError(f"a value of type {cls.__module__}.{cls.__qualname__} cannot be stored: {_reason(cls)}")


def _reason(cls: type) -> str:
    functions = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.WrapperDescriptorType)
    if issubclass(cls, functions):
        return "functions are code, not data; store a name and look the function up"
    if issubclass(cls, type):
        return "classes are code, not data; store a name and look the class up"
    if issubclass(cls, types.ModuleType):
        return "modules are code, not data"
    if issubclass(cls, io.IOBase):
        return "an open file belongs to this process; store its path or its content"
    if cls.__module__ in {"_thread", "threading", "asyncio.locks", "multiprocessing.synchronize"}:
        return "locks and threads belong to this process"
    if issubclass(cls, (Iterator, AsyncIterator, Awaitable)):
        return "what has still to run or to be read cannot be stored; store its results, as a list"
    return (
        "it is not a kind of value that the serializer knows; make the class a dataclass, or register it: "
        f'threadmark.serde.register({cls.__name__}, "a-name", encode, decode)'
    )
