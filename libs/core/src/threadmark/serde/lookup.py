"""Looking at classes without running anything of theirs: no metaclass, no descriptor, no `__getattr__`.

What a class named by stored data could run merely by being looked at is checked once, at the one place where names
become classes (`Classes`), for values that are stored and for values that are loaded alike.
"""

import sys
from typing import Any, TypeGuard

from threadmark.errors import ForbiddenTypeError

_ORDER: Any = vars(type)["__mro__"]
_NAMESPACE: Any = vars(type)["__dict__"]

# What a metaclass may not bring along: each would run whenever a class is looked at or found in a dictionary.
_OF_METACLASSES = ("__getattribute__", "__hash__", "__eq__")
_QUIET_METACLASSES = (type, object)


def ancestry(cls: type) -> tuple[type, ...]:
    """The class and its bases, in the order in which attributes are looked up."""
    order: tuple[type, ...] = _ORDER.__get__(cls)
    return order


def derives(cls: type, base: object) -> bool:
    """Whether `base` is a real base of the class; `issubclass` would let any other abstract class have its say."""
    return any(owner is base for owner in ancestry(cls))


def attribute(cls: type, name: str, default: Any = None) -> Any:
    """What the class or a base of it has under this name, as it stands in the namespace."""
    for owner in ancestry(cls):
        namespace = _NAMESPACE.__get__(owner)
        if name in namespace:
            return namespace[name]
    return default


def found_under(name: str) -> object:
    """What stands under "module:Qualified.Name" now, read from the namespaces themselves."""
    module, _, path = name.partition(":")
    found: object = sys.modules.get(module)
    for step in path.split("."):
        if found is None:
            return None
        # Not `vars`: a module that waits to be imported until it is used would be imported.
        namespace = _NAMESPACE.__get__(found) if is_class(found) else object.__getattribute__(found, "__dict__")
        found = namespace.get(step)
        if found is not None and not is_class(found):
            return found
    return found


def is_class(found: object) -> TypeGuard[type]:
    """Whether it is a class; `isinstance` would ask what is none for its `__class__`."""
    return issubclass(type(found), type)


def check_quiet(cls: type) -> None:
    """Refuse a class that runs code of its own when it is looked at, or when a copy of a value is thrown away."""
    for owner in ancestry(type(cls)):
        own = () if owner in _QUIET_METACLASSES else _NAMESPACE.__get__(owner)
        if loud := next((name for name in _OF_METACLASSES if name in own), None):
            raise _loud(cls, f"the {loud} of its metaclass would run")
    if attribute(cls, "__del__") is not None:
        raise _loud(cls, "its __del__ would run for every copy, too")


def _loud(cls: type, reason: str) -> ForbiddenTypeError:
    name = type.__getattribute__(cls, "__name__")
    return ForbiddenTypeError(
        f"a {name} can be neither stored nor loaded as it is: {reason}; "
        f'register it: threadmark.serde.register({name}, "a-name", encode, decode)'
    )
