"""An object's attributes as data, and data put back as attributes, without running any method of its class.

Also here: what happens when the class has changed since its instance was stored. One rule serves every kind of
record: fields that were added take their defaults, and everything else needs an `upgrade` that says what is meant.
"""

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.plan import Upgrade

# What typing and attrs note on instances for themselves: not part of the value, and wrong in another process.
_NOT_STATE = frozenset({"__orig_class__", "_attrs_cached_hash"})
_NOT_SLOTS = frozenset({"__dict__", "__weakref__"})


class Fields(NamedTuple):
    """The fields a record's class has now, and how those with a default are filled."""

    names: frozenset[str]
    defaults: Mapping[str, Callable[[], Any]]


class Attributes:
    """Reads and writes the `__dict__` and the slots of a class's instances."""

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._has_dict = cls.__dictoffset__ != 0
        self._slots: dict[str, Any] = {}
        for owner in reversed(cls.__mro__):
            # Types made in C have members too, but those are their content, not attributes.
            members = vars(owner).items() if "__slots__" in vars(owner) else ()
            for name, descriptor in members:
                if isinstance(descriptor, types.MemberDescriptorType) and name not in _NOT_SLOTS:
                    if name in self._slots:
                        raise SerializationError(f"{cls.__qualname__} cannot be stored: two slots are named {name!r}")
                    self._slots[name] = descriptor

    def read(self, value: object) -> dict[str, Any]:
        """The attributes that are set; the object's own `__dict__` where that is all there is."""
        found: dict[str, Any] = value.__dict__ if self._has_dict else {}
        if self._slots or not _NOT_STATE.isdisjoint(found):
            found = {name: item for name, item in found.items() if name not in _NOT_STATE}
            for name, slot in self._slots.items():
                try:
                    item = slot.__get__(value)
                except AttributeError:
                    continue
                if name not in _NOT_STATE:
                    found[name] = item
        return found

    def write(self, value: object, state: dict[str, Any]) -> None:
        """Set the attributes; the dictionary becomes the object's own."""
        if self._slots:
            for name in self._slots.keys() & state.keys():
                self._slots[name].__set__(value, state.pop(name))
            if "_attrs_cached_hash" in self._slots:
                self._slots["_attrs_cached_hash"].__set__(value, None)
        if state:
            if not self._has_dict:
                raise CorruptDataError(f"{self._cls.__qualname__} has no attribute {next(iter(state))!r}")
            object.__setattr__(value, "__dict__", state)


def checked_state(found: object) -> dict[str, Any]:
    """Stored attributes, which must be a dictionary with names for keys."""
    if type(found) is not dict or not all(type(name) is str for name in found):
        raise CorruptDataError("stored attributes are not a dictionary of names")
    return found


def evolve(
    cls: type, state: dict[str, Any], stored: Iterable[str], now: Fields, upgrade: Upgrade | None
) -> dict[str, Any]:
    """The state for the class as it is now, from one that was stored when its fields were `stored`."""
    if upgrade is not None:
        state = dict(upgrade(state))
        before = frozenset(state)
    else:
        before = frozenset(stored)
    missing, removed = now.names - before, before - now.names
    unfilled = sorted(missing - now.defaults.keys())
    if removed or unfilled:
        changes = [f"{name} was removed" for name in sorted(map(str, removed))]
        changes += [f"{name} is new and has no default" for name in unfilled]
        source = "its upgrade function's result does not fit" if upgrade else "the class has changed since"
        raise SerializationError(
            f"a stored {cls.__qualname__} cannot be loaded: {source} ({'; '.join(changes)}); "
            f"give threadmark.serde.register({cls.__qualname__}, upgrade=...) a function that maps the old fields"
        )
    return state | {name: now.defaults[name]() for name in sorted(missing)}
