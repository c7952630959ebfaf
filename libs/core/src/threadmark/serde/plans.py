"""Which writer serves a class, and which reader a stored mark means.

The order of the families is the order of preference: an enum that is also an int is an enum.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.classes import Classes
from threadmark.serde.kinds import (
    arrays,
    containers,
    enums,
    exceptions,
    frames,
    models,
    records,
    scalars,
    subclasses,
    text,
    times,
)
from threadmark.serde.plan import Definer, Family, Give, Kind, Reader, Shape, Stored, Take
from threadmark.serde.refusals import refusal
from threadmark.serde.registry import Registered, Registry
from threadmark.serde.wire import unpack

_REGISTERED = "="
_MOST_READERS = 10_000


class _Writer(NamedTuple):
    cls: type
    registered: Registered | None
    take: Take


class _Head(NamedTuple):
    """Where a mark leads today."""

    cls: type
    family: Family | None
    registered: Registered | None


class Plans:
    """One serializer's writers and readers, kept from call to call while the classes are the same."""

    carried = frozenset({type(None), bool, int, float, str, bytes, list, dict})

    def __init__(self, registry: Registry, classes: Classes) -> None:
        self._registry = registry
        self._classes = classes
        factories = containers.Factories(classes, self._is_stored)
        kinds = (
            *scalars.KINDS,
            *containers.KINDS,
            *times.KINDS,
            *text.KINDS,
            containers.default_dict(factories),
        )
        self._kind_writers = MappingProxyType({kind.cls: _kind_writer(kind) for kind in kinds})
        self._kind_readers = MappingProxyType({kind.letter.encode(): Reader(kind.give) for kind in kinds})
        self._families: tuple[Family, ...] = (
            enums.FAMILY,
            exceptions.FAMILY,
            *arrays.FAMILIES,
            frames.FAMILY,
            records.NAMED_TUPLES,
            subclasses.DefaultDicts(factories),
            subclasses.FAMILY,
            *models.FAMILIES,
            *records.FAMILIES,
        )
        self._families_by_letter = MappingProxyType({family.letter: family for family in self._families})
        self._writers: dict[str, _Writer] = {}
        self._readers: dict[bytes, tuple[_Head, Reader]] = {}

    def writer(self, cls: type) -> Take:
        """How to write values of exactly this class."""
        if take := self._kind_writers.get(cls):
            return take
        registered = self._registry.of_class(cls)
        if registered and registered.encode:
            return self._kept_writer(_REGISTERED + registered.name, cls, registered, None)
        family = self._family(cls)
        if family is None:
            raise refusal(cls)
        name = registered.name if registered else self._classes.name_of(cls)
        return self._kept_writer(family.letter + name, cls, registered, family)

    def reader(self, payload: bytes) -> Reader:
        """How to read the array that a mark announces."""
        if reader := self._kind_readers.get(payload):
            return reader
        head, details = _parts(payload)
        leads_to = self._leads_to(head[:1], head[1:])
        kept = self._readers.get(payload)
        if kept is not None and kept[0] == leads_to:
            return kept[1]
        cls, family, registered = leads_to
        if family is not None:
            give = family.reader(Stored(cls, details, registered.upgrade if registered else None))
        elif registered is not None and registered.decode is not None:
            give = _decoding(registered.decode)
        else:
            raise SerializationError(f"a {head[1:]!r} was stored by functions, but is registered without them now")
        if len(self._readers) >= _MOST_READERS:
            self._readers.clear()
        reader = Reader(give)
        self._readers[payload] = (leads_to, reader)
        return reader

    def _leads_to(self, letter: str, name: str) -> _Head:
        registered = self._registry.of_name(name)
        if letter == _REGISTERED:
            if registered is None:
                raise SerializationError(f"no class is registered as {name!r} now; register it before loading")
            return _Head(registered.cls, None, registered)
        family = self._families_by_letter.get(letter)
        if family is None:
            raise CorruptDataError(f"the stored kind {letter!r} is not one that this release knows")
        cls = self._classes.find(name)
        if cls in self._kind_writers or not family.accepts(cls):
            raise CorruptDataError(f"{name} was stored as {family.title}, and it is not one")
        return _Head(cls, family, registered)

    def _kept_writer(self, head: str, cls: type, registered: Registered | None, family: Family | None) -> Take:
        """The writer made before, unless the class or its registration is another one by now."""
        kept = self._writers.get(head)
        if kept is not None and kept.cls is cls and kept.registered is registered:
            return kept.take
        define = Definer(cls, head)
        if family is not None:
            take = family.writer(define)
        elif registered is not None and registered.encode is not None:
            take = _encoding(registered.encode, define.shape())
        else:
            raise refusal(cls)
        self._writers[head] = _Writer(cls, registered, take)
        return take

    def _family(self, cls: type) -> Family | None:
        return next((family for family in self._families if family.accepts(cls)), None)

    def _is_stored(self, cls: type) -> bool:
        return cls in self.carried or cls in self._kind_writers or self._family(cls) is not None


def names_in(payload: bytes) -> list[str]:
    """The attributes' names in a mark, where its kind has some."""
    if len(payload) == 1:
        return []
    _, details = _parts(payload)
    names = details[0] if details else []
    return names if type(names) is list and all(type(name) is str for name in names) else []


def _parts(payload: bytes) -> tuple[str, list[Any]]:
    parts = unpack(payload, list, _no_extension)
    if type(parts) is not list or not parts or type(parts[0]) is not str:
        raise CorruptDataError("a stored mark is not one")
    head, *details = parts
    return head, details


def _no_extension(*_: object) -> Any:
    raise CorruptDataError("a stored mark is not one")


def _kind_writer(kind: Kind) -> Take:
    shape, take = Shape(kind.letter.encode()), kind.take
    return lambda value: [shape, *take(value)]


def _encoding(encode: Callable[[Any], Any], shape: Shape) -> Take:
    return lambda value: [shape, encode(value)]


def _decoding(decode: Callable[[Any], Any]) -> Give:
    def give(items: list[Any]) -> Any:
        (state,) = items
        return decode(state)

    return give
