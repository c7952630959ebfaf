"""Subclasses of builtin types: the content, put in by the builtin's own methods, and the attributes."""

import datetime as dt
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from threadmark.errors import SerializationError
from threadmark.serde.attributes import Attributes, checked_state, maker
from threadmark.serde.kinds.containers import Factories, give_deque
from threadmark.serde.kinds.scalars import give_complex
from threadmark.serde.kinds.times import give_datetime, take_datetime
from threadmark.serde.plan import Definer, Family, Give, Stored, Take, exactly, only

_HEAP_TYPE = 1 << 9
_POINTER = 8


class _Builtin(NamedTuple):
    """One builtin type: its content as data of one type, and an instance of a subclass from that content."""

    content: type
    take: Callable[[Any], Any]
    give: Callable[[type, Any], Any]


def _from_new(base: Any) -> Callable[[type, Any], Any]:
    new: Callable[[type, Any], Any] = base.__new__
    return new


def _give_complex(cls: type[complex], content: list[float]) -> complex:
    plain = give_complex(content)
    return complex.__new__(cls, plain.real, plain.imag)


def _give_bytearray(cls: type[bytearray], content: bytes) -> bytearray:
    value = bytearray.__new__(cls)
    bytearray.__init__(value, content)
    return value


def _give_list(cls: type[list[Any]], content: list[Any]) -> list[Any]:
    value = list.__new__(cls)
    list.extend(value, content)
    return value


def _give_set(cls: type[set[Any]], content: set[Any]) -> set[Any]:
    value = set.__new__(cls)
    set.update(value, content)
    return value


def _give_dict(cls: type[dict[Any, Any]], content: dict[Any, Any]) -> dict[Any, Any]:
    value = dict.__new__(cls)
    dict.update(value, content)
    return value


def _give_ordered(cls: type[OrderedDict[Any, Any]], content: dict[Any, Any]) -> OrderedDict[Any, Any]:
    value = OrderedDict.__new__(cls)
    # dict's own insertion would bypass the order, update would call an overridden __setitem__.
    for key, item in content.items():
        OrderedDict.__setitem__(value, key, item)
    return value


def _give_deque(cls: type[deque[Any]], content: list[Any]) -> deque[Any]:
    plain = give_deque(content)
    value = deque.__new__(cls)
    deque.__init__(value, plain, plain.maxlen)
    return value


def _date_parts(value: dt.date) -> list[int]:
    return [value.year, value.month, value.day]


# The first of these that a class derives from is its base, so the more special come first.
_BUILTINS: dict[type, _Builtin] = {
    str: _Builtin(str, str.__str__, _from_new(str)),
    int: _Builtin(int, int.__int__, _from_new(int)),
    float: _Builtin(float, float.__float__, _from_new(float)),
    complex: _Builtin(list, lambda value: [value.real, value.imag], _give_complex),
    bytes: _Builtin(bytes, lambda value: bytes.__getitem__(value, slice(None)), _from_new(bytes)),
    bytearray: _Builtin(bytes, lambda value: bytes(bytearray.__getitem__(value, slice(None))), _give_bytearray),
    tuple: _Builtin(list, lambda value: [*tuple.__iter__(value)], _from_new(tuple)),
    list: _Builtin(list, lambda value: [*list.__iter__(value)], _give_list),
    set: _Builtin(set, lambda value: set().union(set.__iter__(value)), _give_set),
    frozenset: _Builtin(frozenset, lambda value: frozenset().union(frozenset.__iter__(value)), _from_new(frozenset)),
    OrderedDict: _Builtin(dict, lambda value: dict(OrderedDict.items(value)), _give_ordered),
    Counter: _Builtin(dict, lambda value: dict(dict.items(value)), _give_dict),
    dict: _Builtin(dict, lambda value: dict(dict.items(value)), _give_dict),
    deque: _Builtin(list, lambda value: [value.maxlen, *deque.__iter__(value)], _give_deque),
    dt.datetime: _Builtin(tuple, take_datetime, lambda cls, content: give_datetime(content, cls)),
    dt.date: _Builtin(list, _date_parts, lambda cls, content: dt.date.__new__(cls, *exactly(content, int, int, int))),
    dt.timedelta: _Builtin(
        list,
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda cls, content: dt.timedelta.__new__(cls, *exactly(content, int, int, int)),
    ),
    Decimal: _Builtin(str, Decimal.__str__, _from_new(Decimal)),
}


class Subclasses(Family):
    """Python classes derived from a builtin type; those derived in C hide state that nothing here can see."""

    letter = "B"
    title = "a subclass of a builtin type"

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is a class statement's, with a builtin data type behind it."""
        base = _builtin_base(cls)
        return base is not None and cls is not base and _made_by_class_statements(cls, base)

    def writer(self, define: Definer) -> Take:
        """The content, then the attributes where there are some."""
        shape, builtin, read = define.shape(), _builtin(define.cls), Attributes(define.cls).read_storable

        def take(value: object) -> list[Any]:
            content, own = builtin.take(value), read(value)
            return [shape, content, own] if own else [shape, content]

        return take

    def reader(self, stored: Stored) -> Give:
        """The content by the builtin's own methods."""
        cls, builtin, write = stored.cls, _builtin(stored.cls), Attributes(stored.cls).write

        def give(items: list[Any]) -> object:
            content, *own = items
            value = builtin.give(cls, only([content], builtin.content))
            if own:
                write(value, checked_state(*own))
            return value

        return give


class DefaultDicts(Family):
    """Subclasses of defaultdict, whose factory is a class that the policy allows."""

    letter = "F"
    title = "a subclass of defaultdict"

    def __init__(self, factories: Factories) -> None:
        self._factories = factories

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is derived from defaultdict, in Python."""
        return issubclass(cls, defaultdict) and cls is not defaultdict and _made_by_class_statements(cls, defaultdict)

    def writer(self, define: Definer) -> Take:
        """The factory's name, the content, then the attributes."""
        shape, read, factories = define.shape(), Attributes(define.cls).read_storable, self._factories
        return lambda value: [
            shape,
            factories.name(value.default_factory),
            dict(dict.items(value)),
            read(value),
        ]

    def reader(self, stored: Stored) -> Give:
        """The content by defaultdict's own methods."""
        cls, write, factories = stored.cls, Attributes(stored.cls).write, self._factories

        def give(items: list[Any]) -> defaultdict[Any, Any]:
            factory, content, own = items
            value: defaultdict[Any, Any] = defaultdict.__new__(cls)
            defaultdict.__init__(value, factories.find(factory))
            dict.update(value, only([content], dict))
            write(value, checked_state(own))
            return value

        return give


def _builtin(cls: type) -> _Builtin:
    base = _builtin_base(cls)
    if base is None:
        raise SerializationError(f"{cls.__qualname__} is not a subclass of a builtin type any more")
    return _BUILTINS[base]


def _builtin_base(cls: type) -> type | None:
    return next((owner for owner in cls.__mro__ if owner in _BUILTINS), None)


def _made_by_class_statements(cls: type, base: type) -> bool:
    """Whether everything between `cls` and `base` came from Python, so that attributes are all there is to it."""
    between = [owner for owner in cls.__mro__ if owner is not base and issubclass(owner, base)]
    slots = sum(len(_slot_names(owner)) for owner in between)
    # A class statement adds at most its slots, one pointer for the dictionary, one for weak references.
    room = base.__basicsize__ + _POINTER * (slots + 2)
    in_python = all(owner.__flags__ & _HEAP_TYPE for owner in between) and maker(cls) is maker(base)
    return in_python and cls.__basicsize__ <= room


def _slot_names(owner: type) -> tuple[str, ...]:
    slots = vars(owner).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


FAMILY = Subclasses()
