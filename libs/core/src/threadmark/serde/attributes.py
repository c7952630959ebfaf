"""An object's attributes as data, and data put back as attributes, without running any method of its class.

Also here: what happens when the class has changed since its instance was stored. One rule serves every kind
of record: fields that were added take their defaults, and everything else needs an `upgrade` that says what
is meant.
"""

import contextlib
import functools
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds_api import StoredClass
from threadmark.serde.lookup import attribute

# What typing and attrs note on instances for themselves: not part of the value, and wrong in another process. The
# attribute for the hash must be there all the same, or the object could not be hashed.
_ORIGIN = "__orig_class__"
_CACHED_HASH = "_attrs_cached_hash"
_NOT_STATE = frozenset({_ORIGIN, _CACHED_HASH})
_MOST_NAMED = 10
_OFFSETS = {"__dict__": "__dictoffset__", "__weakref__": "__weakrefoffset__"}
_POINTER = 8


class Fields(NamedTuple):
    """The fields a record's class has now, and how those with a default are filled."""

    names: frozenset[str]
    defaults: Mapping[str, Callable[[], Any]]


class Attributes:
    """Reads and writes the `__dict__` and the slots of a class's instances, whatever stands in front of them.

    A name means one place: the slot or the entry of the dictionary that Python itself finds under it. A value that
    has something in two places of one name is refused, as is a class whose instances hold what is in neither. `base`
    is the type made in C that the class derives from, whose content is not asked for here.
    """

    def __init__(self, cls: type, base: type = object) -> None:
        self.has_dict = cls.__dictoffset__ != 0
        self._name = cls.__qualname__
        # The interpreter's own descriptor: a class may answer for itself.
        dictionary: Any = _dictionary(cls) if self.has_dict else None
        self._get_dict: Callable[[object], Any] = dictionary and dictionary.__get__
        self.set_dict: Callable[[object, dict[str, Any]], None] = dictionary.__set__ if dictionary else _no_dictionary
        self.slots: dict[str, Any] = {}
        self._hidden: list[tuple[str, Any]] = []
        _check_layout(cls, base)
        for name, owners in _slot_owners(cls).items():
            location = _location(cls, name, owners, has_dict=self.has_dict)
            if location is not None:
                self.slots[name] = vars(location)[name]
            self._hidden += [(name, vars(owner)[name]) for owner in owners if owner is not location]
        self.are_dict = self.has_dict and not self.slots and not self._hidden
        """Whether the dictionary is all there is."""

    def read(self, value: object) -> dict[str, Any]:
        """The attributes that are set and belong to the value."""
        found: dict[str, Any] = {}
        if self.has_dict:
            own = self._get_dict(value)
            if type(own) is not dict:
                raise _of_another_dictionary(value, own)
            if own:
                found = own.copy()
                found.pop(_ORIGIN, None)
                if not self.slots.keys().isdisjoint(found):
                    raise self._two(next(name for name in found if name in self.slots))
        for name, slot in self.slots.items():
            # There is no way to ask first, and to suppress the error would take longer than all the rest.
            try:  # noqa: SIM105
                found[name] = slot.__get__(value)
            except AttributeError:
                pass
        if self._hidden:
            self._refuse_hidden(value)
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

    def _refuse_hidden(self, value: object) -> None:
        for name, slot in self._hidden:
            with contextlib.suppress(AttributeError):
                slot.__get__(value)
                raise self._two(name)

    def _two(self, name: str) -> SerializationError:
        return SerializationError(
            f"a {self._name} with two attributes named {name!r}, one of them in a slot that the other hides, cannot be "
            "stored as it is; rename one, or register the class with functions of its own"
        )


def _of_another_dictionary(value: object, found: object) -> SerializationError:
    """What an instance has in it instead may have content or methods of its own."""
    return SerializationError(
        f"a {type(value).__qualname__} whose __dict__ is a {type(found).__qualname__} cannot be stored as it is; "
        "register the class with functions of its own"
    )


def _dictionary(cls: type) -> types.GetSetDescriptorType:
    """What gives an instance's dictionary, and replaces it."""
    found = next((vars(owner)["__dict__"] for owner in cls.__mro__ if "__dict__" in vars(owner)), None)
    if not isinstance(found, types.GetSetDescriptorType):
        raise SerializationError(
            f"{cls.__qualname__} cannot be stored as it is: it hides its instances' __dict__ behind one of its own; "
            "register it with functions of its own"
        )
    return found


def _no_dictionary(value: object, state: dict[str, Any]) -> None:
    raise CorruptDataError(f"{type(value).__qualname__} has no attribute {next(iter(state))!r}")


def _slot_owners(cls: type) -> dict[str, list[type]]:
    """The slots that class statements made, by name, each with its classes in the order in which Python looks."""
    owners: dict[str, list[type]] = {}
    for owner in reversed(cls.__mro__):
        # Types made in C have members too, but those are their content, not attributes.
        members = vars(owner).items() if "__slots__" in vars(owner) else ()
        for name, member in members:
            if isinstance(member, types.MemberDescriptorType) and member.__objclass__ is owner:
                owners.setdefault(name, []).insert(0, owner)
    return owners


def _location(cls: type, name: str, owners: list[type], *, has_dict: bool) -> type | None:
    """The class whose slot the name means; None where it means an entry of the instance's dictionary."""
    for owner in cls.__mro__:
        if owner in owners:
            return owner
        # A property keeps its value where it likes, mostly in the slot that it stands for; what else hides a slot
        # is itself hidden by the instance's dictionary.
        if has_dict and name in vars(owner) and attribute(type(vars(owner)[name]), "__set__") is None:
            return None
    return owners[0]


def _check_layout(cls: type, base: type) -> None:
    """Refuse a class whose instances have more in them than can be found: a slot whose descriptor was taken away."""
    if not is_laid_out(cls, base):
        raise SerializationError(
            f"{cls.__qualname__} cannot be stored as it is: its instances keep something in neither a slot nor a "
            "__dict__ that can be found; register it with functions of its own"
        )


def is_laid_out(cls: type, base: type) -> bool:
    """Whether slots, a dictionary and weak references are all that a class has beside what its base in C has."""
    added = [name for name, at in _OFFSETS.items() if getattr(cls, at) and not getattr(base, at)]
    slots = sum(len(owners) for owners in _slot_owners(cls).values())
    return cls.__basicsize__ == _size_with(base, tuple(added)) + slots * _POINTER


@functools.cache
def _size_with(base: type, added: tuple[str, ...]) -> int:
    """Asked of this interpreter: where a dictionary is, and how much it takes, changes from release to release."""
    # Where instances are of different lengths, Python gives a dictionary only to classes that do not speak of slots.
    namespace = {} if added and base.__itemsize__ else {"__slots__": added}
    return type("Sized", (base,), namespace).__basicsize__


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
    """StoredClass attributes, which must be a dictionary with names for keys."""
    if type(found) is not dict or not all(type(name) is str for name in found):
        raise CorruptDataError("stored attributes are not a dictionary of names")
    return found


def evolve(stored: StoredClass, state: dict[str, Any], names: Iterable[str], now: Fields) -> dict[str, Any]:
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
