"""Exceptions: class, arguments, attributes, notes, cause and context, but not the traceback, which is the process's.

No code of the class runs: its builtin base makes the object, whose fields are then set from stored data. A class
whose objects no builtin can make is refused at put.
"""

import builtins
import operator
import types
from collections.abc import Callable
from functools import partial
from itertools import chain, combinations
from typing import Any, TypeAlias

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.attributes import Attributes, checked_state
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, StoredClass
from threadmark.serde.refusals import refusal

# The object that lacked the attribute is not part of the error.
_NOT_STORED = frozenset({(AttributeError, "obj")})
_OS_PROPERTIES = ("errno", "strerror", "filename", "filename2")

# Fields that are numbers: setting one would run the `__index__` of any other object.
_NUMBERS = frozenset({"characters_written", "start", "end"})

# The interpreter's own descriptors, because a class may have properties under these names, or a `__setattr__`. The
# cause comes before `__suppress_context__`, which setting the cause changes.
_ARGS: Any = vars(BaseException)["args"]
_CAUSES: tuple[Any, ...] = tuple(
    vars(BaseException)[name] for name in ("__cause__", "__context__", "__suppress_context__")
)
_MESSAGE: Any = vars(BaseExceptionGroup)["message"]
_EXCEPTIONS: Any = vars(BaseExceptionGroup)["exceptions"]
_DEFAULT_INDEX = 1
_IN_C = (types.MemberDescriptorType, types.GetSetDescriptorType)

_Fields: TypeAlias = Callable[[Any, list[Any]], dict[str, Any]]
"""Takes an exception and its arguments, returns the fields that the arguments do not tell."""

_Maker: TypeAlias = Callable[[list[Any], dict[str, Any]], BaseException]
"""Takes arguments and fields, returns a new exception."""

PARTS = ["args", "fields", "attributes", "__cause__", "__context__", "__suppress_context__"]
"""The names of a stored exception's items in the locations of errors."""


class Exceptions(Family):
    """Every exception, groups included."""

    code = "X"
    title = "an exception"

    def accepts(self, cls: type) -> bool:
        """Whether the class is an exception."""
        return issubclass(cls, BaseException)

    def check(self, cls: type) -> None:
        """Make an instance in the same way as the reader: some classes made in C or Rust do not allow it."""
        try:
            _maker(cls)(["", [Exception()]] if _is_group(cls) else [], {})
        except TypeError as error:
            raise refusal(
                cls,
                "its instances can only be made by running the class; store its text, or register it: "
                f'threadmark.serde.register({cls.__name__}, "a-name", encode, decode)',
            ) from error

    def writer(self, define: Definer) -> Deconstruct:
        """Write arguments, the builtin's fields, attributes, cause, context, and whether the context is suppressed."""
        cls = define.cls
        shape, read = define.shape(), Attributes(cls, _builtin(cls)).read_storable
        fields = _group_fields if _is_group(cls) else _fields(cls)

        def deconstruct(error: BaseException) -> list[Any]:
            args = list(_ARGS.__get__(error))
            items = [shape, args, fields(error, args), read(error)]
            cause, context, suppressed = (each.__get__(error) for each in _CAUSES)
            if cause is not None or context is not None or suppressed:
                items += [cause, context, suppressed]
            return items

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Make the exception by the builtin's `__new__`, and set its fields by the interpreter's descriptors."""
        cls = stored.cls
        new, write = _maker(cls), Attributes(cls, _builtin(cls)).write

        def reconstruct(items: list[Any]) -> BaseException:
            args, own, state, *causes = items
            if type(args) is not list or len(causes) not in (0, len(_CAUSES)):
                raise CorruptDataError("a stored exception is not valid")
            error = new(args, checked_state(own))
            _ARGS.__set__(error, tuple(args))
            write(error, checked_state(state))
            for descriptor, value in zip(_CAUSES, causes, strict=False):
                descriptor.__set__(error, value)
            return error

        return reconstruct


def _is_group(cls: type) -> bool:
    return issubclass(cls, BaseExceptionGroup)


def _maker(cls: type) -> _Maker:
    return partial(_new_group, cls) if _is_group(cls) else _new_of(cls)


def _new_of(cls: type) -> _Maker:
    builtin, members = _builtin(cls), _members(cls)

    def new(_: list[Any], own: dict[str, Any]) -> BaseException:
        if unknown := own.keys() - members.keys():
            raise CorruptDataError(
                f"a stored {builtin.__name__} has a field that it does not have here: {min(unknown)}"
            )
        error: BaseException = builtin.__new__(cls)
        if issubclass(builtin, StopIteration):
            # The interpreter reads the value when a generator ends, and would crash if it was never set.
            own = {"value": None, **own}
        for name, value in own.items():
            if name in _NUMBERS and type(value) is not int:
                raise CorruptDataError(f"the {name} of a stored exception is not a number")
            members[name].__set__(error, value)
        return error

    return new


def _new_group(cls: Any, args: list[Any], own: dict[str, Any]) -> BaseException:
    message, found = (own["message"], own["exceptions"]) if own else (args[0], _DEFAULT_INDEX)
    exceptions: Any = args[found] if type(found) is int else found
    if type(exceptions) not in (list, tuple):
        raise CorruptDataError("the exceptions of a stored group are not a list of them")
    error: BaseException = BaseExceptionGroup.__new__(cls, message, exceptions)
    return error


def _fields(cls: type) -> _Fields:
    members = _members(cls)
    if not members:
        return lambda *_: {}

    def fields(error: BaseException, _: list[Any]) -> dict[str, Any]:
        values = {name: _field(member, error) for name, member in members.items()}
        found = {name: value for name, value in values.items() if value is not None}
        return found if _OS_PROPERTIES[0] not in members else found | _unset_properties(cls, error, found)

    return fields


def _unset_properties(cls: type, error: BaseException, found: dict[str, Any]) -> dict[str, None]:
    """Return the fields of an OSError that were set to None. Only its text tells them from unset fields."""
    text = OSError.__str__(error)
    if "None" not in text:
        return {}
    args, new, unset = _ARGS.__get__(error), _new_of(cls), [name for name in _OS_PROPERTIES if name not in found]
    for names in chain.from_iterable(combinations(unset, count) for count in range(len(unset) + 1)):
        nones = dict.fromkeys(names)
        made = new([], found | nones)
        _ARGS.__set__(made, args)
        if OSError.__str__(made) == text:
            return nones
    raise SerializationError(f"this {cls.__qualname__} cannot be stored: its text would be another")


def _group_fields(error: Any, args: list[Any]) -> dict[str, Any]:
    """Return a group's message and exceptions, if its class's `__new__` gave the builtin other arguments than its own.

    Usually the exceptions are one of the arguments all the same. Then its index stands for them, so that groups in
    groups are not written twice at each level.
    """
    message, exceptions = _MESSAGE.__get__(error), _EXCEPTIONS.__get__(error)
    index = next((index for index, argument in enumerate(args) if _are(argument, exceptions)), None)
    if index == _DEFAULT_INDEX and args[0] is message:
        return {}
    return {"message": message, "exceptions": exceptions if index is None else index}


def _are(argument: Any, exceptions: tuple[BaseException, ...]) -> bool:
    return (
        type(argument) in (list, tuple)
        and len(argument) == len(exceptions)
        and all(map(operator.is_, argument, exceptions))
    )


def _members(cls: type) -> dict[str, Any]:
    """Return the descriptors of the builtin base's fields besides `args` and `__dict__`, as this Python has them."""
    owners = _builtin(cls).__mro__
    return {
        name: member
        for owner in reversed(owners[: owners.index(BaseException)])
        for name, member in vars(owner).items()
        if isinstance(member, _IN_C) and (owner, name) not in _NOT_STORED
    }


def _builtin(cls: Any) -> Any:
    """Return the builtin that a class's instances are laid out by. It is not always the first of several bases."""
    while vars(builtins).get(cls.__name__) is not cls:
        cls = cls.__base__
    return cls


def _field(member: Any, error: BaseException) -> Any:
    """Return a field's value, or None if it was never set."""
    try:
        return member.__get__(error)
    except (AttributeError, TypeError):
        return None


FAMILY = Exceptions()
