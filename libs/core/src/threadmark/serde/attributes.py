"""Reading an object's attributes as data and setting them again, without running any method of its class.

Also here: the rules for a class that has changed since the object was stored. One rule serves every kind of record:
fields that were added take their defaults, and anything else needs an `upgrade` function.

Most of the work of reading a record is building the dictionary of its names and items. A display
(`{name0: item0, ...}`) is three times as fast as `dict(zip(names, items))`, but has to be written out for a fixed
number of entries. So source code is generated for each number, as `namedtuple` and `dataclasses` do. Only the number
becomes source: names and items, which stored data chooses, are arguments and never code.
"""

import contextlib
import functools
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.runtime.compiled import counterpart
from threadmark.serde.kinds_api import Deconstruct, Reconstruct, StoredClass
from threadmark.serde.lookup import attribute

# typing and attrs note these on instances for themselves: they are not part of the value, and wrong in another process.
# The attribute for the hash must exist all the same, or the object could not be hashed.
_ORIGIN = "__orig_class__"
_CACHED_HASH = "_attrs_cached_hash"
_NOT_STATE = frozenset({_ORIGIN, _CACHED_HASH})
_MOST_NAMED = 10
_OFFSETS = {"__dict__": "__dictoffset__", "__weakref__": "__weakrefoffset__"}
_POINTER = 8


class Fields(NamedTuple):
    """The fields that a record's class has now, and functions that return the default of those that have one."""

    names: frozenset[str]
    defaults: Mapping[str, Callable[[], Any]]


class Attributes:
    """Reads and writes the `__dict__` and the slots of a class's instances, even if something hides them.

    A name means one slot, or one entry of the dictionary: the one that Python itself finds under it. A value that has
    two attributes of one name is refused, and so is a class whose instances keep something in neither. `base` is the
    type made in C that the class derives from; that type's content is not read here.
    """

    def __init__(self, cls: type, base: type = object) -> None:
        self.has_dict = cls.__dictoffset__ != 0
        self._name = cls.__qualname__
        # The interpreter's own descriptor: a class may answer for itself.
        dictionary: Any = _dictionary(cls) if self.has_dict else None
        self.dictionary: Any = dictionary
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
        """Whether the instances have nothing but their dictionary."""

    def read(self, value: object) -> dict[str, Any]:
        """Return the attributes that are set and belong to the value."""
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
            # There is no way to ask first, and `suppress` would take longer than everything else here.
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
        """Like `read`, for a kind that stores the names with each value: checks that they are text."""
        found = self.read(value)
        if found:
            storable_names(found)
        return found

    def write(self, value: object, state: dict[str, Any]) -> None:
        """Set the attributes. The dictionary becomes the object's own, without the entries that went into slots."""
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
    """The error for an instance whose `__dict__` is another type, which may have content or methods itself."""
    return SerializationError(
        f"a {type(value).__qualname__} whose __dict__ is a {type(found).__qualname__} cannot be stored as it is; "
        "register the class with functions of its own"
    )


def _dictionary(cls: type) -> types.GetSetDescriptorType:
    """Return the descriptor that gets and sets an instance's dictionary."""
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
    """Return the slots that class statements made: by name, the classes that have one, in the order of lookup."""
    owners: dict[str, list[type]] = {}
    for owner in reversed(cls.__mro__):
        # Types made in C have members as well, but those are their content, not attributes.
        members = vars(owner).items() if "__slots__" in vars(owner) else ()
        for name, member in members:
            if isinstance(member, types.MemberDescriptorType) and member.__objclass__ is owner:
                owners.setdefault(name, []).insert(0, owner)
    return owners


def _location(cls: type, name: str, owners: list[type], *, has_dict: bool) -> type | None:
    """Return the class whose slot the name means, or None if it means an entry of the instance's dictionary."""
    for owner in cls.__mro__:
        if owner in owners:
            return owner
        # A property may keep its value anywhere, usually in the slot that it stands for. Anything else that hides a
        # slot is itself hidden by the instance's dictionary.
        if has_dict and name in vars(owner) and attribute(type(vars(owner)[name]), "__set__") is None:
            return None
    return owners[0]


def _check_layout(cls: type, base: type) -> None:
    """Refuse a class whose instances hold more than can be found, such as a slot whose descriptor was deleted."""
    if not is_laid_out(cls, base):
        raise SerializationError(
            f"{cls.__qualname__} cannot be stored as it is: its instances keep something in neither a slot nor a "
            "__dict__ that can be found; register it with functions of its own"
        )


def is_laid_out(cls: type, base: type) -> bool:
    """Whether the class adds nothing but slots, a dictionary and weak references to its base in C."""
    added = [name for name, at in _OFFSETS.items() if getattr(cls, at) and not getattr(base, at)]
    slots = sum(len(owners) for owners in _slot_owners(cls).values())
    return cls.__basicsize__ == _size_with(base, tuple(added)) + slots * _POINTER


@functools.cache
def _size_with(base: type, added: tuple[str, ...]) -> int:
    """Ask this interpreter, because the place and the size of a dictionary change from release to release."""
    # If instances vary in length, Python gives a dictionary only to classes without `__slots__`.
    namespace = {} if added and base.__itemsize__ else {"__slots__": added}
    return type("Sized", (base,), namespace).__basicsize__


def maker(cls: type) -> type:
    """Return the class whose `__new__`, written in C, makes the instances of `cls`. That of any other class refuses.

    No method of the class itself is called: a `__new__` written in Python ends by calling that of a base.
    """
    owner: type | None = cls
    while owner is not None and not isinstance(vars(owner).get("__new__"), types.BuiltinFunctionType):
        owner = owner.__base__
    return owner or object


def is_state(names: Iterable[str]) -> bool:
    """Whether `Attributes.read` would return all attributes with these names unchanged."""
    return _NOT_STATE.isdisjoint(names)


def storable_names(names: Iterable[object]) -> list[str]:
    """Check that names can stand in a mark: an instance's dictionary may have keys that are not text."""
    found = []
    for name in names:
        if type(name) is not str:
            raise SerializationError(f"an attribute cannot be stored under the name {name!r}, which is not a str")
        found.append(name)
    return found


def checked_names(found: object) -> list[str]:
    """Check that names read from a mark are a list of strings."""
    if type(found) is not list or not all(type(name) is str for name in found):
        raise CorruptDataError("the names in a stored mark are not names")
    return found


def checked_state(found: object) -> dict[str, Any]:
    """Check that stored attributes are a dictionary whose keys are strings."""
    if type(found) is not dict or not all(type(name) is str for name in found):
        raise CorruptDataError("stored attributes are not a dictionary of names")
    return found


def evolve(stored: StoredClass, state: dict[str, Any], names: Iterable[str], now: Fields) -> dict[str, Any]:
    """Return the state for the class as it is now, from one that was stored when its fields had these names."""
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


Naming: TypeAlias = Callable[[list[Any]], dict[str, Any]]

_MOST_WRITTEN_OUT = 64
"""The most names that a function is generated for. Stored data says how many there are, and each number is compiled."""


def record_builders(names: list[str]) -> Naming:
    """Return a function from a record's items to a dictionary of them. It raises if they are more or fewer."""

    def wrong_count(items: list[Any]) -> CorruptDataError:
        return CorruptDataError(f"a stored object has {len(items)} items where its mark has {len(names)} names")

    if len(names) <= _MOST_WRITTEN_OUT:
        written_out: Naming = _written_out(len(names))(wrong_count, *names)
        return written_out

    def named(items: list[Any]) -> dict[str, Any]:
        if len(items) != len(names):
            raise wrong_count(items)
        return dict(zip(names, items, strict=True))

    return named


@cache
def _written_out(count: int) -> Callable[..., Naming]:
    names = "".join(f", name{index}" for index in range(count))
    items = ", ".join(f"item{index}" for index in range(count))
    entries = ", ".join(f"name{index}: item{index}" for index in range(count))
    source = f"""
def with_names(wrong_count{names}):
    def named(items):
        try:
            [{items}] = items
        except ValueError:
            raise wrong_count(items) from None
        return {{{entries}}}
    return named
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - nothing but a number went into the source, see above
    made: Callable[..., Naming] = namespace["with_names"]
    return made


@counterpart("objects.ObjectWriter", is_whole=True)
def object_writer(
    reference: Deconstruct,
    slots: Sequence[Any],  # noqa: ARG001 - as the next one: for the counterpart
    is_state: Callable[[tuple[str, ...]], bool] | None = None,  # noqa: ARG001
) -> Deconstruct:
    """Return a writer of objects like `reference`, whose state is in these slots and passes `is_state`."""
    return reference


@counterpart("objects.ObjectReader", is_whole=True)
def object_reader(
    reference: Reconstruct,
    cls: type,  # noqa: ARG001 - as the others: for the counterpart
    dictionary: Any,  # noqa: ARG001
    names: Iterable[str],  # noqa: ARG001
    slots: Iterable[tuple[Any, frozenset[str] | dict[str, Any] | None]] = (),  # noqa: ARG001
) -> Reconstruct:
    """Return a builder of objects like `reference`: of this class, with a dictionary of these names, and slots."""
    return reference
