"""Looking at classes without running any of their code: no metaclass, no descriptor, no `__getattr__`.

Some classes run code merely by being looked at. They are refused by `check_inert`, which is called in the one place in
which names become classes (`Classes`), for values that are stored and for values that are loaded alike.
"""

import sys
from collections.abc import Mapping
from typing import Any, TypeGuard

from threadmark.errors import ForbiddenTypeError

_ORDER: Any = vars(type)["__mro__"]
_NAMESPACE: Any = vars(type)["__dict__"]

# A metaclass must not define these: each would run whenever a class is looked at or found in a dictionary.
_OF_METACLASSES = ("__getattribute__", "__hash__", "__eq__")
_INERT_METACLASSES = (type, object)


def ancestry(cls: type) -> tuple[type, ...]:
    """Return the class and its bases, in the order in which attributes are looked up."""
    order: tuple[type, ...] = _ORDER.__get__(cls)
    return order


def namespace(cls: type) -> Mapping[str, Any]:
    """Return the class's own definitions, without those of its bases."""
    own: Mapping[str, Any] = _NAMESPACE.__get__(cls)
    return own


def derives(cls: type, base: object) -> bool:
    """Whether `base` is a real base of the class. `issubclass` would run the hooks of an abstract class."""
    return any(owner is base for owner in ancestry(cls))


def attribute(cls: type, name: str, default: Any = None) -> Any:
    """Return the attribute of the class, or of a base of it, taken from the namespace as it is."""
    for owner in ancestry(cls):
        namespace = _NAMESPACE.__get__(owner)
        if name in namespace:
            return namespace[name]
    return default


def found_under(name: str) -> object:
    """Return the object under "module:Qualified.Name" now, read from the namespaces themselves, or None."""
    module, _, path = name.partition(":")
    found: object = sys.modules.get(module)
    for step in path.split("."):
        if found is None:
            return None
        # Not `vars`, which would import a module that is imported lazily.
        namespace = _NAMESPACE.__get__(found) if is_class(found) else object.__getattribute__(found, "__dict__")
        found = namespace.get(step)
        if found is not None and not is_class(found):
            return found
    return found


def imported(name: str) -> Any:
    """Return a module that the program has imported, or None, also while another thread is in the middle of it."""
    module = sys.modules.get(name)
    spec = None if module is None else object.__getattribute__(module, "__dict__").get("__spec__")
    return None if getattr(spec, "_initializing", False) else module


def is_class(found: object) -> TypeGuard[type]:
    """Whether it is a class. `isinstance` would run the `__class__` property of an object that is not."""
    return issubclass(type(found), type)


def check_inert(cls: type) -> None:
    """Refuse a class that runs its code when it is looked at, or when a decoded copy of a value is freed."""
    for owner in ancestry(type(cls)):
        own = () if owner in _INERT_METACLASSES else _NAMESPACE.__get__(owner)
        if culprit := next((name for name in _OF_METACLASSES if name in own), None):
            raise _not_inert(cls, f"the {culprit} of its metaclass would run")
    if attribute(cls, "__del__") is not None:
        raise _not_inert(cls, "its __del__ would run for every copy, too")


def _not_inert(cls: type, reason: str) -> ForbiddenTypeError:
    name = type.__getattribute__(cls, "__name__")
    return ForbiddenTypeError(
        f"a {name} can be neither stored nor loaded as it is: {reason}; "
        f'register it: threadmark.serde.register({name}, "a-name", encode, decode)'
    )
