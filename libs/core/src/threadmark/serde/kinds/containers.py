"""Python's containers, except list and dict, which msgpack carries by itself."""

import gc
import sys
from array import array, typecodes
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import MappingProxyType, SimpleNamespace
from typing import Any

from threadmark.errors import CorruptDataError, ForbiddenTypeError, SerializationError
from threadmark.serde.attributes import Attributes, checked_state
from threadmark.serde.classes import Classes
from threadmark.serde.kinds_api import Kind, exactly, only
from threadmark.serde.lookup import attribute

# The width of a type code differs between platforms, so the stored width is compared before the bytes are used.
_ARRAY_CODES = frozenset(typecodes)
_CHAIN = Attributes(ChainMap)


def _deconstruct_array(value: "array[Any]") -> tuple[str, int, bytes]:
    return (value.typecode, value.itemsize, _little_endian(value).tobytes())


def _reconstruct_array(items: list[Any]) -> "array[Any]":
    code, width, content = exactly(items, str, int, bytes)
    if code not in _ARRAY_CODES:
        raise CorruptDataError(f"a stored array is of a type that this Python does not have ({code[:1]!r})")
    found: array[Any] = array(code)
    if found.itemsize != width:
        raise SerializationError(f"array({code!r}) was stored with {width} bytes an item; here it has {found.itemsize}")
    found.frombytes(content)
    return _little_endian(found)


def _little_endian(value: "array[Any]") -> "array[Any]":
    if sys.byteorder == "little":
        return value
    swapped = value[:]
    swapped.byteswap()
    return swapped


def _reconstruct_range(items: list[Any]) -> range:
    start, stop, step = exactly(items, int, int, int)
    return range(start, stop, step)


def _reconstruct_slice(items: list[Any]) -> slice:
    start, stop, step = items
    return slice(start, stop, step)


def reconstruct_deque(items: list[Any]) -> deque[Any]:
    """Return a deque from its maxlen and its members."""
    most, *members = items
    if most is not None and type(most) is not int:
        raise CorruptDataError("the maxlen of a stored deque is not a number")
    return deque(members, most)


def _with_attributes(letter: str, cls: type, reconstruct: Callable[[dict[Any, Any]], Any]) -> Kind:
    """Return the kind of a class of dictionaries whose instances may have attributes."""
    attributes = Attributes(cls, cls)

    def deconstruct(value: Any) -> tuple[Any, ...]:
        content = dict(value.items())
        if not value.__dict__:
            return (content,)
        own = attributes.read_storable(value)
        return (content, own) if own else (content,)

    def reconstruct_with(items: list[Any]) -> Any:
        content, *own = items
        value = reconstruct(only([content], dict))
        if own:
            attributes.write(value, checked_state(*own))
        return value

    return Kind(letter, cls, deconstruct, reconstruct_with)


def _is_mapping(value: object) -> bool:
    """Whether it has a method `keys`. `isinstance` would run the hooks of abstract classes."""
    return attribute(type(value), "keys") is not None


def _deconstruct_chain(value: ChainMap[Any, Any]) -> list[Any]:
    own = _CHAIN.read(value)
    maps = own.pop("maps", None)
    if own:
        raise SerializationError("a ChainMap with attributes of its own cannot be stored")
    if type(maps) is not list or not maps or not all(map(_is_mapping, maps)):
        raise SerializationError("a ChainMap whose maps are not a list of mappings cannot be stored")
    return maps


def _reconstruct_chain(items: list[Any]) -> ChainMap[Any, Any]:
    if not all(map(_is_mapping, items)):
        raise CorruptDataError("a stored ChainMap has something else among its maps")
    return ChainMap(*items)


def _deconstruct_proxy(value: MappingProxyType[Any, Any]) -> list[Any]:
    # A proxy does not reveal its mapping, and all its methods are those of the mapping.
    (mapping,) = found = gc.get_referents(value)
    if not _is_mapping(mapping):
        raise SerializationError(
            f"a mappingproxy of a {type(mapping).__qualname__}, not of a mapping, cannot be stored"
        )
    return found


def _reconstruct_proxy(items: list[Any]) -> MappingProxyType[Any, Any]:
    (mapping,) = items
    if not _is_mapping(mapping):
        raise CorruptDataError("a stored mappingproxy shows something else than a mapping")
    return MappingProxyType(mapping)


def _reconstruct_counter(content: dict[Any, Any]) -> Counter[Any]:
    counter: Counter[Any] = Counter()
    # Counter.update would add the counts, which need not be numbers.
    dict.update(counter, content)
    return counter


def _reconstruct_namespace(items: list[Any]) -> SimpleNamespace:
    namespace = SimpleNamespace()
    namespace.__dict__.update(only(items, dict))
    return namespace


KINDS = (
    Kind("t", tuple, lambda value: value, tuple),
    Kind("s", set, lambda value: value, set),
    Kind("f", frozenset, lambda value: value, frozenset),
    Kind("b", bytearray, lambda value: (bytes(value),), lambda items: bytearray(only(items, bytes))),
    Kind("q", deque, lambda value: (value.maxlen, *value), reconstruct_deque),
    _with_attributes("o", OrderedDict, OrderedDict),
    _with_attributes("n", Counter, _reconstruct_counter),
    Kind("h", ChainMap, _deconstruct_chain, _reconstruct_chain),
    Kind("m", MappingProxyType, _deconstruct_proxy, _reconstruct_proxy),
    Kind("N", SimpleNamespace, lambda value: (value.__dict__,), _reconstruct_namespace),
    Kind("r", range, lambda value: (value.start, value.stop, value.step), _reconstruct_range),
    Kind("l", slice, lambda value: (value.start, value.stop, value.step), _reconstruct_slice),
    Kind("a", array, _deconstruct_array, _reconstruct_array),
)


class Factories:
    """The classes that a defaultdict may have as its factory: those whose own values can be stored."""

    def __init__(self, classes: Classes, is_stored: Callable[[type], bool]) -> None:
        self._classes = classes
        self._is_stored = is_stored

    def name(self, factory: object) -> str | None:
        """Return the factory's name in stored data."""
        if factory is None:
            return None
        if not isinstance(factory, type) or not self._is_stored(factory):
            raise SerializationError(
                "a defaultdict can be stored with list, dict, int or another class of data as its factory, "
                f"not with {getattr(factory, '__qualname__', type(factory).__qualname__)}"
            )
        return self._classes.name_of(factory)

    def find(self, name: object) -> type | None:
        """Return the factory with this name in stored data."""
        if name is None:
            return None
        if type(name) is not str:
            raise CorruptDataError("the factory of a stored defaultdict is not a name")
        factory = self._classes.find(name)
        if not self._is_stored(factory):
            raise ForbiddenTypeError(f"{name} cannot be the factory of a defaultdict: it is not a class of data")
        return factory


def default_dict(factories: Factories) -> Kind:
    """Return the kind of defaultdict itself."""

    def deconstruct(value: defaultdict[Any, Any]) -> tuple[str | None, dict[Any, Any]]:
        return (factories.name(value.default_factory), dict(value.items()))

    def reconstruct(items: list[Any]) -> defaultdict[Any, Any]:
        name, *content = items
        return defaultdict(factories.find(name), only(content, dict))

    return Kind("d", defaultdict, deconstruct, reconstruct)
