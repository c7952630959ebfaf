"""An object's attributes as data, and data put back as attributes, without running any method of its class.

Also here: what happens when the class has changed since its instance was stored. One rule serves every kind
of record: fields that were added take their defaults, and everything else needs an `upgrade` that says what
is meant.
"""

import contextlib
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.plan import Stored

# What typing and attrs note on instances for themselves: not part of the value, and wrong in another process. The
# attribute for the hash must be there all the same, or the object could not be hashed.
_ORIGIN = "__orig_class__"
_CACHED_HASH = "_attrs_cached_hash"
_NOT_STATE = frozenset({_ORIGIN, _CACHED_HASH})
_MOST_NAMED = 10
_NOT_SLOTS = frozenset({"__dict__", "__weakref__"})


class Fields(NamedTuple):
    """The fields a record's class has now, and how those with a default are filled."""

    names: frozenset[str]
    defaults: Mapping[str, Callable[[], Any]]


class Attributes:
    """Reads and writes the `__dict__` and the slots of a class's instances."""

    def __init__(self, cls: type) -> None:
        self.has_dict = cls.__dictoffset__ != 0
        self.set_dict = _dictionary_setter(cls) if self.has_dict else _no_dictionary
        self.slots: dict[str, Any] = {}
        for owner in reversed(cls.__mro__):
            # Types made in C have members too, but those are their content, not attributes.
            members = vars(owner).items() if "__slots__" in vars(owner) else ()
            for name, descriptor in members:
                if isinstance(descriptor, types.MemberDescriptorType) and name not in _NOT_SLOTS:
                    if name in self.slots:
                        raise SerializationError(f"{cls.__qualname__} cannot be stored: two slots are named {name!r}")
                    self.slots[name] = descriptor

    def read(self, value: object) -> dict[str, Any]:
        """The attributes that are set and belong to the value."""
        found = dict(value.__dict__) if self.has_dict else {}
        for name, slot in self.slots.items():
            # A slot that was never set raises; there is no way to ask first.
            with contextlib.suppress(AttributeError):
                found[name] = slot.__get__(value)
        found.pop(_ORIGIN, None)
        if _CACHED_HASH in found:
            found[_CACHED_HASH] = None
        return found

    def read_storable(self, value: object) -> dict[str, Any]:
        """The same, for a kind that stores the names with each value; where a mark has them, it was checked once."""
        found = self.read(value)
        if found:
            storable_names(found)
        return found

    def write(self, value: object, state: dict[str, Any]) -> None:
        """Set the attributes; what is left of the dictionary becomes the object's own."""
        for name, slot in self.slots.items():
            if name in state:
                slot.__set__(value, state.pop(name))
            elif name == _CACHED_HASH:
                slot.__set__(value, None)
        if state:
            self.set_dict(value, state)


def _dictionary_setter(cls: type) -> Callable[[object, dict[str, Any]], None]:
    """What gives an instance its dictionary: the interpreter's own descriptor."""
    found = next((vars(owner)["__dict__"] for owner in cls.__mro__ if "__dict__" in vars(owner)), None)
    if not isinstance(found, types.GetSetDescriptorType):
        raise SerializationError(
            f"{cls.__qualname__} cannot be stored as it is: it hides its instances' __dict__ behind one of its own; "
            "register it with functions of its own"
        )
    return found.__set__


def _no_dictionary(value: object, state: dict[str, Any]) -> None:
    raise CorruptDataError(f"{type(value).__qualname__} has no attribute {next(iter(state))!r}")


def maker(cls: type) -> type:
    """The class whose `__new__`, written in C, makes the instances of `cls`; that of any other refuses to.

    No method of the class's own is asked: a `__new__` of Python's ends in that of a base.
    """
    owner: type | None = cls
    while owner is not None and not isinstance(vars(owner).get("__new__"), types.BuiltinFunctionType):
        owner = owner.__base__
    return owner or object


def is_state(names: Iterable[str]) -> bool:
    """Whether `Attributes.read` would give what is under these names as it stands."""
    return _NOT_STATE.isdisjoint(names)


def storable_names(names: Iterable[object]) -> list[str]:
    """Names for a mark: an instance's dictionary may hold keys that no attribute can have."""
    found = []
    for name in names:
        if type(name) is not str:
            raise SerializationError(f"an attribute cannot be stored under the name {name!r}, which is not a str")
        found.append(name)
    return found


def checked_names(found: object) -> list[str]:
    """Names from a mark, which must be a list of texts."""
    if type(found) is not list or not all(type(name) is str for name in found):
        raise CorruptDataError("the names in a stored mark are not names")
    return found


def checked_state(found: object) -> dict[str, Any]:
    """Stored attributes, which must be a dictionary with names for keys."""
    if type(found) is not dict or not all(type(name) is str for name in found):
        raise CorruptDataError("stored attributes are not a dictionary of names")
    return found


def evolve(stored: Stored, state: dict[str, Any], names: Iterable[str], now: Fields) -> dict[str, Any]:
    """The state for the class as it is now, from one that was stored when its fields had these names."""
    name, source, before = stored.cls.__qualname__, "the class has changed since", frozenset(names)
    if stored.upgrade is not None:
        state = dict(stored.upgrade(state))
        source, before = "its upgrade function's result does not fit", frozenset(state)
    missing, removed = now.names - before - state.keys(), before - now.names
    unfilled = missing - now.defaults.keys()
    if removed or unfilled:
        changes = [f"{field} was removed" for field in sorted(map(str, removed))]
        changes += [f"{field} is new and has no default" for field in sorted(unfilled)]
        if len(changes) > _MOST_NAMED:
            changes[_MOST_NAMED:] = [f"and {len(changes) - _MOST_NAMED} more"]
        raise SerializationError(
            f"a stored {name} cannot be loaded: {source} ({'; '.join(changes)}); "
            f"give threadmark.serde.register({name}, upgrade=...) a function that maps the old fields"
        )
    return state | {field: now.defaults[field]() for field in sorted(missing)}
