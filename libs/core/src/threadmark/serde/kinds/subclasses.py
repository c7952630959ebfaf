"""Subclasses of builtin types: the content, read and set by the builtin's own methods, and the attributes."""

import datetime as dt
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from threadmark.errors import SerializationError
from threadmark.serde.attributes import Attributes, checked_state, is_laid_out, maker
from threadmark.serde.kinds.containers import Factories, reconstruct_deque
from threadmark.serde.kinds.scalars import reconstruct_complex
from threadmark.serde.kinds.times import deconstruct_datetime, reconstruct_datetime
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, StoredClass, exactly, only

_HEAP_TYPE = 1 << 9
"""The flag of types that a class statement made."""

# The builtins' own descriptors, because a subclass may have other attributes under these names.
_FACTORY: Any = vars(defaultdict)["default_factory"]
_MOST: Any = vars(deque)["maxlen"]
_DATE = [vars(dt.date)[name] for name in ("year", "month", "day")]
_SPAN = [vars(dt.timedelta)[name] for name in ("days", "seconds", "microseconds")]
_CLOCK = [vars(dt.datetime)[name] for name in ("hour", "minute", "second", "microsecond", "tzinfo")]
_FOLD: Any = vars(dt.datetime)["fold"]


class _Builtin(NamedTuple):
    """One builtin type: its content's type, and functions that take the content from an instance and make one of it."""

    content: type
    deconstruct: Callable[[Any], Any]
    reconstruct: Callable[[type, Any], Any]


def _from_new(base: Any) -> Callable[[type, Any], Any]:
    new: Callable[[type, Any], Any] = base.__new__
    return new


def _reconstruct_complex(cls: type[complex], content: list[float]) -> complex:
    plain = reconstruct_complex(content)
    return complex.__new__(cls, plain.real, plain.imag)


def _reconstruct_bytearray(cls: type[bytearray], content: bytes) -> bytearray:
    value = bytearray.__new__(cls)
    bytearray.__init__(value, content)
    return value


def _reconstruct_list(cls: type[list[Any]], content: list[Any]) -> list[Any]:
    value = list.__new__(cls)
    list.extend(value, content)
    return value


def _reconstruct_set(cls: type[set[Any]], content: set[Any]) -> set[Any]:
    value = set.__new__(cls)
    set.update(value, content)
    return value


def _reconstruct_dict(cls: type[dict[Any, Any]], content: dict[Any, Any]) -> dict[Any, Any]:
    value = dict.__new__(cls)
    dict.update(value, content)
    return value


def _reconstruct_ordered(cls: type[OrderedDict[Any, Any]], content: dict[Any, Any]) -> OrderedDict[Any, Any]:
    value = OrderedDict.__new__(cls)
    # dict.__setitem__ would not keep the order, and update would call an overridden __setitem__.
    for key, item in content.items():
        OrderedDict.__setitem__(value, key, item)
    return value


def _reconstruct_deque(cls: type[deque[Any]], content: list[Any]) -> deque[Any]:
    plain = reconstruct_deque(content)
    value = deque.__new__(cls)
    deque.__init__(value, plain, plain.maxlen)
    return value


def _parts(members: list[Any]) -> Callable[[Any], list[Any]]:
    return lambda value: [member.__get__(value) for member in members]


def _deconstruct_moment(value: dt.datetime) -> tuple[Any, ...]:
    return deconstruct_datetime(_plain_moment(value))


def _plain_moment(value: dt.datetime) -> dt.datetime:
    date, clock = (_parts(members)(value) for members in (_DATE, _CLOCK))
    plain = dt.datetime(*date, *clock)  # noqa: DTZ001 - the zone is the last of them
    return plain.replace(fold=_FOLD.__get__(value))


# The first of these that a class derives from is its base, so the more specific ones come first.
_BUILTINS: dict[type, _Builtin] = {
    str: _Builtin(str, str.__str__, _from_new(str)),
    int: _Builtin(int, int.__int__, _from_new(int)),
    float: _Builtin(float, float.__float__, _from_new(float)),
    complex: _Builtin(list, _parts([vars(complex)["real"], vars(complex)["imag"]]), _reconstruct_complex),
    bytes: _Builtin(bytes, lambda value: bytes.__getitem__(value, slice(None)), _from_new(bytes)),
    bytearray: _Builtin(bytes, lambda value: bytes(bytearray.__getitem__(value, slice(None))), _reconstruct_bytearray),
    tuple: _Builtin(list, lambda value: [*tuple.__iter__(value)], _from_new(tuple)),
    list: _Builtin(list, lambda value: [*list.__iter__(value)], _reconstruct_list),
    set: _Builtin(set, lambda value: set().union(set.__iter__(value)), _reconstruct_set),
    frozenset: _Builtin(frozenset, lambda value: frozenset().union(frozenset.__iter__(value)), _from_new(frozenset)),
    OrderedDict: _Builtin(dict, lambda value: dict(OrderedDict.items(value)), _reconstruct_ordered),
    Counter: _Builtin(dict, lambda value: dict(dict.items(value)), _reconstruct_dict),
    dict: _Builtin(dict, lambda value: dict(dict.items(value)), _reconstruct_dict),
    deque: _Builtin(list, lambda value: [_MOST.__get__(value), *deque.__iter__(value)], _reconstruct_deque),
    dt.datetime: _Builtin(tuple, _deconstruct_moment, lambda cls, content: reconstruct_datetime(content, cls)),
    dt.date: _Builtin(list, _parts(_DATE), lambda cls, content: dt.date.__new__(cls, *exactly(content, int, int, int))),
    dt.timedelta: _Builtin(
        list, _parts(_SPAN), lambda cls, content: dt.timedelta.__new__(cls, *exactly(content, int, int, int))
    ),
    Decimal: _Builtin(str, Decimal.__str__, _from_new(Decimal)),
}


class Subclasses(Family):
    """Python classes derived from a builtin type. Those derived in C may have state that cannot be read."""

    code = "B"
    title = "a subclass of a builtin type"

    def accepts(self, cls: type) -> bool:
        """Whether class statements derived `cls` from a builtin type of data."""
        base = _builtin_base(cls)
        return base is not None and cls is not base and _made_by_class_statements(cls, base)

    def writer(self, define: Definer) -> Deconstruct:
        """Write the content, then the attributes if there are some."""
        shape, builtin, read = define.shape(), _builtin(define.cls), _attributes(define.cls).read_storable

        def deconstruct(value: object) -> list[Any]:
            content, own = builtin.deconstruct(value), read(value)
            return [shape, content, own] if own else [shape, content]

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Set the content by the builtin's own methods."""
        cls, builtin, write = stored.cls, _builtin(stored.cls), _attributes(stored.cls).write

        def reconstruct(items: list[Any]) -> object:
            content, *own = items
            value = builtin.reconstruct(cls, only([content], builtin.content))
            if own:
                write(value, checked_state(*own))
            return value

        return reconstruct


class DefaultDicts(Family):
    """Subclasses of defaultdict whose factory is a class that the policy allows."""

    code = "F"
    title = "a subclass of defaultdict"

    def __init__(self, factories: Factories) -> None:
        self._factories = factories

    def accepts(self, cls: type) -> bool:
        """Whether class statements derived `cls` from defaultdict."""
        return issubclass(cls, defaultdict) and cls is not defaultdict and _made_by_class_statements(cls, defaultdict)

    def writer(self, define: Definer) -> Deconstruct:
        """Write the factory's name, the content, then the attributes."""
        shape, read, factories = define.shape(), Attributes(define.cls, defaultdict).read_storable, self._factories
        return lambda value: [
            shape,
            factories.name(_FACTORY.__get__(value)),
            dict(dict.items(value)),
            read(value),
        ]

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Set the content by defaultdict's own methods."""
        cls, write, factories = stored.cls, Attributes(stored.cls, defaultdict).write, self._factories

        def reconstruct(items: list[Any]) -> defaultdict[Any, Any]:
            factory, content, own = items
            value: defaultdict[Any, Any] = defaultdict.__new__(cls)
            defaultdict.__init__(value, factories.find(factory))
            dict.update(value, only([content], dict))
            write(value, checked_state(own))
            return value

        return reconstruct


def _builtin(cls: type) -> _Builtin:
    return _BUILTINS[_surely_based(cls)]


def _attributes(cls: type) -> Attributes:
    return Attributes(cls, _surely_based(cls))


def _surely_based(cls: type) -> type:
    base = _builtin_base(cls)
    if base is None:
        raise SerializationError(f"{cls.__qualname__} is not a subclass of a builtin type any more")
    return base


def _builtin_base(cls: type) -> type | None:
    return next((owner for owner in cls.__mro__ if owner in _BUILTINS), None)


def _made_by_class_statements(cls: type, base: type) -> bool:
    """Whether class statements derived `cls` from `base`, so that it adds nothing but attributes."""
    between = [owner for owner in cls.__mro__ if owner is not base and issubclass(owner, base)]
    in_python = all(owner.__flags__ & _HEAP_TYPE for owner in between) and maker(cls) is maker(base)
    return in_python and is_laid_out(cls, base)


FAMILY = Subclasses()
