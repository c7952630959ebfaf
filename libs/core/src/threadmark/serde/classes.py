"""Finding classes by the names in stored data, and the policy that says which may be stored and loaded.

A name in the data is looked up and compared, and nothing runs for it: no import (unless the user allowed the class), no
module `__getattr__`, no descriptor, no subscription. The object found must be a class that has this very name.

No name of the language leads to a class that was defined inside a function, or replaced. A store that ends with the
process can keep its instances under a name that this process makes up; the class lives as long as the program, or a
serializer that has stored one of its objects, holds it.
"""

import importlib
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from operator import getitem
from threading import Lock
from types import GenericAlias, NoneType, UnionType
from typing import Any, Union, get_args, get_origin
from weakref import WeakKeyDictionary, WeakValueDictionary

from threadmark.errors import ConfigError, CorruptDataError, ForbiddenTypeError, SerializationError, short_repr
from threadmark.serde.lookup import check_inert, found_under, is_class
from threadmark.serde.registry import Registry

MARK = "#"
"""Stands in such a name before its number, and in no other one."""

_names: WeakKeyDictionary[type, str] = WeakKeyDictionary()
_classes: WeakValueDictionary[str, type] = WeakValueDictionary()
_numbers = count(1)
_lock = Lock()


def local_name(cls: type, name: str) -> str:
    """Return the name of such a class, which begins with its canonical one."""
    with _lock:
        if cls not in _names:
            _names[cls] = f"{name}{MARK}{next(_numbers)}"
            _classes[_names[cls]] = cls
        return _names[cls]


def local_class(name: str) -> type | None:
    """Return the class of such a name, None if the program no longer holds it."""
    return _classes.get(name)


LONGEST_NAME = 1000

# The parts of type arguments that are not classes. `typing.List[int]` and `list[int]` make different models.
_SINGLE: dict[str, Any] = {"None": None, "NoneType": NoneType, "...": ...}
_BUILTIN_GENERICS = (dict, frozenset, list, set, tuple, Iterable, Mapping, Sequence)
_TYPING_GENERICS = ("Dict", "FrozenSet", "List", "Set", "Tuple", "Iterable", "Mapping", "Sequence", "Union")
_EITHER = "types:UnionType"


def _either(classes: tuple[Any, ...]) -> Any:
    """Return the union that `first | second` makes, without running a metaclass."""
    made, *others = classes
    for other in others:
        made = type.__or__(made, other) if isinstance(made, type) else made | other
    return made


_GENERICS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    **{f"{each.__module__}:{each.__name__}": partial(GenericAlias, each) for each in _BUILTIN_GENERICS},
    **{f"typing:{name}": partial(getitem, getattr(typing, name)) for name in _TYPING_GENERICS},
    _EITHER: _either,
}


class Classes:
    """The policy, which is the same when a value is stored and when it is loaded.

    Without `allow`, every class of a known family may be stored, and loaded once the program itself has imported its
    module. With `allow`, only builtin kinds, registered classes and the listed classes may be: an entry is a class,
    "module:Class" or "module:*". `import_anything` lets stored names import modules, which runs code that the data
    chose. `keeps_local` also finds classes to which no name leads, as long as this process lives.
    """

    def __init__(
        self,
        registry: Registry,
        allow: Iterable[type | str] | None = None,
        *,
        import_anything: bool = False,
        keeps_local: bool = False,
    ) -> None:
        self._registry = registry
        self._import_anything = import_anything
        self._keeps_local = keeps_local
        self._allow = None if allow is None else frozenset(map(_entry, allow))
        self._models: dict[str, type] = {}  # the parametrized models found last, by name

    def name_of(self, cls: type) -> str:
        """Return the name to store `cls` under. Raises if the same policy would not find it again."""
        check_inert(cls)
        name = canonical_name(cls)
        self._check_allowed(name, cls)
        if self._found(name, cls) is not cls:
            if self._keeps_local:
                return local_name(cls, name)
            raise SerializationError(
                f"{name} cannot be stored: the class is not found under its own name (it was defined "
                "inside a function, or replaced since); define it at the top level of a module. Only a saver in memory "
                "keeps such a class, because it ends with the process"
            )
        return name

    def _found(self, name: str, cls: type) -> object:
        """Return the class to which the name of a class leads today, None if it leads to none."""
        if "[" not in name:
            return found_under(name)
        self._check_arguments(cls)
        with suppress(ForbiddenTypeError, CorruptDataError):
            return self._parametrized(name)
        return None

    def _check_arguments(self, cls: type) -> None:
        """Check that the policy allows the type arguments of a generic model."""
        generic = vars(cls).get("__pydantic_generic_metadata__")
        for each in _classes_in(generic["args"] if generic else ()):
            self._check_allowed(canonical_name(each), each)
            self._check_arguments(each)

    def find(self, name: str) -> type:
        """Return the class that stored data calls `name`."""
        if registered := self._registry.of_name(name):
            return registered.cls
        if len(name) > LONGEST_NAME or ":" not in name:
            raise CorruptDataError("a stored class name is not valid")
        if self._keeps_local and MARK in name:
            return self._local(name)
        if "[" in name:
            return self._parametrized(name)
        self._check_allowed(name, None)
        module = name.partition(":")[0]
        if module not in sys.modules:
            self._import(module, name)
        found = found_under(name)
        if is_class(found):
            check_inert(found)
            if canonical_name(found) == name:
                return found
        raise ForbiddenTypeError(
            f"{name} was stored, but there is no such class now; if it was moved or renamed, "
            f'say so: threadmark.serde.register(TheClass, aliases=["{name}"])'
        )

    def leads_to(self, name: str, cls: type) -> bool:
        """Whether a name of stored data still leads to a class that it led to."""
        found = local_class(name) if self._keeps_local and MARK in name else found_under(name)
        return found is cls

    def _local(self, name: str) -> type:
        self._check_allowed(name.partition(MARK)[0], None)
        found = local_class(name)
        if found is None:
            raise ForbiddenTypeError(
                f"{name} was stored, and the program no longer holds the class: it was defined inside a function"
            )
        check_inert(found)
        return found

    def _check_allowed(self, name: str, cls: type | None) -> None:
        if self._allow is None or self._import_anything:
            return
        origin = name.partition("[")[0]
        module = origin.partition(":")[0]
        if module == "builtins" or origin in self._allow or f"{module}:*" in self._allow:
            return
        registered = self._registry.of_name(name) if cls is None else self._registry.of_class(cls)
        if registered is None:
            raise ForbiddenTypeError(f'{origin} is not allowed here; to allow it: Serde(allow=[..., "{origin}"])')

    def _import(self, module: str, name: str) -> None:
        listed = self._allow is not None
        if not listed and not self._import_anything:
            raise ForbiddenTypeError(
                f"{name} was stored, but the program has not imported {module}; import it before loading, "
                f'or let the serializer do it: Serde(allow=[..., "{name}"])'
            )
        try:
            importlib.import_module(module)
        except Exception as error:
            raise ForbiddenTypeError(f"{name} was stored, but importing {module} failed: {error}") from error

    def _parametrized(self, name: str) -> type:
        """Return the generic pydantic model `origin[arguments]`.

        Making one runs code of the origin and of the arguments (`__class_getitem__`, `__init_subclass__`, whatever
        builds a schema). So the program itself must have made it already, unless the user allows all of these classes.
        """
        origin_name, arguments = _split_arguments(name)
        origin: Any = self.find(origin_name)
        metadata = vars(origin).get("__pydantic_generic_metadata__")
        if type(metadata) is not dict or len(metadata["parameters"]) != len(arguments):
            raise CorruptDataError(f"{origin_name} does not take the stored type arguments")
        known = self._models.get(name)
        if known is not None and self._is_made_of(known, origin, name):
            return known
        for made in type.__subclasses__(origin):
            if self._is_made_of(made, origin, name):
                self._models[name] = made
                return made
        if self._allow is None and not self._import_anything:
            raise ForbiddenTypeError(
                f"{name} was stored, but the program has not made this model yet, and stored data makes none; "
                f'write it out in a module, or list what it is made of: Serde(allow=[..., "{origin_name}"])'
            )
        found: type = origin[tuple(map(self._argument, arguments))]
        return found

    def _is_made_of(self, made: type, origin: type, name: str) -> bool:
        """Whether a model has this name, and its arguments are the classes that are found under their names today."""
        metadata = vars(made).get("__pydantic_generic_metadata__")
        if type(metadata) is not dict or metadata["origin"] is not origin or _name_or_none(made) != name:
            return False
        return all(self.find(canonical_name(each)) is each for each in _classes_in(metadata["args"]))

    def _argument(self, name: str) -> Any:
        """Return one type argument: a class, or a generic or union of classes."""
        if name in _SINGLE:
            return _SINGLE[name]
        origin, bracket, _ = name.partition("[")
        if bracket and origin in _GENERICS:
            return _GENERICS[origin](tuple(map(self._argument, _split_arguments(name)[1])))
        return self.find(name)


def canonical_name(cls: type) -> str:
    """Write `cls` as "module:Qualified.Name", with the type arguments of a generic pydantic model."""
    generic = vars(cls).get("__pydantic_generic_metadata__")
    if generic and generic["origin"]:
        name = f"{canonical_name(generic['origin'])}[{_argument_names(cls, generic['args'])}]"
    elif "[" in cls.__qualname__:
        raise _unnamed(cls, "a generic model of pydantic 1 does not say what it was made of")
    else:
        name = f"{cls.__module__}:{cls.__qualname__}"
    if len(name) > LONGEST_NAME:
        raise SerializationError(f"{cls.__name__} cannot be stored: its name is too long")
    return name


def _argument_names(cls: type, arguments: tuple[Any, ...]) -> str:
    return ",".join(_argument_name(cls, argument) for argument in arguments)


def _argument_name(cls: type, argument: Any) -> str:
    """Return the name of a type argument, as `Classes._argument` reads it."""
    for name, single in _SINGLE.items():
        if argument is single:
            return name
    if isinstance(argument, type):
        return canonical_name(argument)
    inner = get_args(argument)
    if isinstance(argument, UnionType):
        name = _EITHER
    elif get_origin(argument) is Union:
        name = "typing:Union"
    else:
        origin = get_origin(argument) if type(argument) is GenericAlias else argument
        name = f"{getattr(origin, '__module__', None)}:{getattr(origin, '__name__', None)}"
    if name not in _GENERICS or not inner:
        raise _unnamed(cls, "its type arguments must be classes, None, or unions and builtin generics of them")
    return f"{name}[{_argument_names(cls, inner)}]"


def _unnamed(cls: type, reason: str) -> SerializationError:
    return SerializationError(
        f"{cls.__qualname__} cannot be stored: {reason}; derive a class with a name of its own from it"
    )


def _name_or_none(cls: type) -> str | None:
    """Return the name of a model, or None if one of its arguments has none."""
    try:
        return canonical_name(cls)
    except SerializationError:
        return None


def _classes_in(arguments: Iterable[Any]) -> Iterator[type]:
    """Yield the classes in type arguments, except NoneType."""
    for argument in arguments:
        if isinstance(argument, type):
            if argument is not NoneType:
                yield argument
        else:
            yield from _classes_in(get_args(argument))


def checked_classes(allow: Iterable[type | str]) -> frozenset[type | str]:
    """Check a list of allowed classes. An entry that no class can ever match is an error at once."""
    if isinstance(allow, (str, bytes, type)) or not isinstance(allow, Iterable):
        raise ConfigError(f"allow must be a list of classes, not {short_repr(allow)}: {_ENTRIES}")
    entries = list(allow)
    for entry in entries:
        if not (":" in entry if isinstance(entry, str) else is_class(entry)):
            raise ConfigError(f"allow names no class with {short_repr(entry)}: {_ENTRIES}")
        if "[" in (entry if isinstance(entry, str) else canonical_name(entry)):
            raise ConfigError(f"allow names a class with its arguments, {short_repr(entry)}: {_ENTRIES}")
    return frozenset(entries)


_ENTRIES = 'write allow=[TheClass, "module:Class", "module:*"]'


def _entry(allowed: type | str) -> str:
    return allowed if isinstance(allowed, str) else canonical_name(allowed)


def _split_arguments(name: str) -> tuple[str, list[str]]:
    origin, _, rest = name.partition("[")
    if not rest.endswith("]"):
        raise CorruptDataError("a stored class name is not valid")
    arguments, depth, start = [], 0, 0
    for index, character in enumerate(rest):
        depth += (character == "[") - (character == "]")
        if (character == "," and depth == 0) or index == len(rest) - 1:
            arguments.append(rest[start:index])
            start = index + 1
    return origin, arguments
