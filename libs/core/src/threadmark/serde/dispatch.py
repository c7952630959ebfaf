"""Which function writes the values of a class, and which one reads the state behind a stored mark.

The order of the families is the order of preference: an enum that is also an int is an enum.
"""

import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.attributes import checked_names
from threadmark.serde.classes import Classes, canonical_name
from threadmark.serde.families import Families, split_code
from threadmark.serde.kinds import (
    containers,
    enums,
    exceptions,
    models,
    records,
    scalars,
    subclasses,
    times,
)
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Kind, Reader, Reconstruct, Shape, StoredClass
from threadmark.serde.lookup import found_under
from threadmark.serde.object_view import ObjectView
from threadmark.serde.refusals import refusal
from threadmark.serde.registry import Registered, Registry
from threadmark.serde.wire import unpack

DEEPEST_ENCODES = 64
"""How deep registered functions may call the serializer again: each call needs a packer's room on the C stack."""

REGISTERED = "="
"""The code of classes that were registered with functions."""

BY_FIELD = frozenset(family.code for family in (records.NAMED_TUPLES, *records.FAMILIES, *models.FAMILIES))
"""The codes of families whose items are the values of fields."""

_MOST_KEPT = 32 * 1024 * 1024
"""How many bytes the remembered readers may take, roughly."""

_READER_COST = 3000
"""The size of a reader, in bytes."""

_BYTE_COST = 10
"""Its additional size for each byte of its mark."""


class _Writer(NamedTuple):
    cls: type
    registered: Registered | None
    deconstruct: Deconstruct


class Kept(NamedTuple):
    """A mark's reader, and the class that its name meant when the reader was made."""

    name: str
    cls: type
    registered: Registered | None
    reader: Reader


class _Head(NamedTuple):
    """The present meaning of a mark."""

    cls: type
    family: Family | None
    registered: Registered | None


class Dispatch:
    """One serializer's writers and readers, kept from call to call as long as the classes stay the same.

    Each call checks once for each class that its name still means the very object that was checked when the writer or
    reader was made. Nothing else that was checked can change: the policy is fixed when the serializer is made, and a
    class does not change its family.
    """

    carried = frozenset({type(None), bool, int, float, str, bytes, list, dict})
    """The types that msgpack carries by itself."""

    def __init__(self, registry: Registry, classes: Classes) -> None:
        self._registry = registry
        self._classes = classes
        factories = containers.Factories(classes, self._is_stored)
        own = containers.default_dict(factories)
        self._kinds: Mapping[str, Kind] = {**_KINDS, own.letter: own}
        self._kind_writers = MappingProxyType({**_KIND_WRITERS, own.cls: _kind_writer(own)})
        self._kind_readers: Mapping[bytes, Reader] = MappingProxyType(
            {**_KIND_READERS, own.letter.encode(): Reader(own.reconstruct)}
        )
        self._families = Families(
            first=(enums.FAMILY, exceptions.FAMILY),
            last=(
                times.FAMILY,
                records.NAMED_TUPLES,
                subclasses.DefaultDicts(factories),
                subclasses.FAMILY,
                *models.FAMILIES,
                *records.FAMILIES,
            ),
        )
        self._writers: dict[str, _Writer] = {}
        self._readers: dict[bytes, Kept] = {}
        self._readers_cost = 0

    def writer(self, cls: type) -> Deconstruct:
        """Return the function that takes values of exactly this class apart."""
        if deconstruct := self._kind_writers.get(cls):
            return deconstruct
        registered = self._registry.of_class(cls)
        name = registered.name if registered else canonical_name(cls)
        if self._registry.of_name(name) is not registered:
            raise SerializationError(
                f"a {cls.__qualname__} cannot be stored: {name!r} was registered as the name of another class, or of a "
                f"later {cls.__qualname__}, and that is what would be loaded"
            )
        kept = self._writers.get(name)
        if kept and kept.cls is cls and kept.registered is registered and (registered or found_under(name) is cls):
            return kept.deconstruct
        deconstruct = self._new_writer(cls, registered)
        self._writers[name] = _Writer(cls, registered, deconstruct)
        return deconstruct

    def encodes(self, cls: type) -> bool:
        """Whether values of this class are taken apart by a registered function."""
        registered = self._registry.of_class(cls)
        return registered is not None and registered.encode is not None

    def reader(self, payload: bytes) -> Reader:
        """Return the reader of the array that a mark announces."""
        if reader := self._kind_readers.get(payload):
            return reader
        kept = self._readers.get(payload)
        if kept and self._leads_there(kept):
            return kept.reader
        kept = self._new_reader(payload)
        self._keep(payload, kept)
        return kept.reader

    def stored_fields(self, payload: bytes) -> list[str] | None:
        """Return the names of an object's fields, whose values are the first items behind its mark.

        None for kinds whose items are something else, and for classes whose `upgrade` may give fields another meaning.
        """
        if len(payload) == 1:
            return None
        head, details = parts_of_mark(payload)
        code, name = split_code(head)
        registered = self._registry.of_name(name)
        if code not in BY_FIELD or (registered is not None and registered.upgrade is not None):
            return None
        if code == records.NAMED_TUPLES.code and len(details) > 1:  # its attributes come before the items
            return None
        return checked_names(details[0]) if details else None

    def _keep(self, payload: bytes, kept: Kept) -> None:
        cost = _READER_COST + _BYTE_COST * len(payload)
        if self._readers_cost + cost > _MOST_KEPT:
            self._readers, self._readers_cost = {}, 0
        if cost <= _MOST_KEPT:
            self._readers[payload] = kept
            self._readers_cost += cost

    def _leads_there(self, kept: Kept) -> bool:
        registered = self._registry.of_name(kept.name)
        return registered is kept.registered and (registered is not None or self._classes.leads_to(kept.name, kept.cls))

    def _new_writer(self, cls: type, registered: Registered | None) -> Deconstruct:
        if registered and registered.encode:
            return _encoding(registered, Definer(cls, REGISTERED + registered.name).shape())
        if cls is ObjectView:
            raise SerializationError(
                "a threadmark.types.ObjectView cannot be stored: it stands for an object read without its class; "
                "read that with a saver that has its class, not with `without_classes()`"
            )
        family = self._families.of_class(cls)
        if family is None:
            raise refusal(cls)
        name = registered.name if registered else self._classes.name_of(cls)
        family.check(cls)
        return family.writer(Definer(cls, family.code + name))

    def _new_reader(self, payload: bytes) -> Kept:
        head, details = parts_of_mark(payload)
        code, name = split_code(head)
        cls, family, registered = self._leads_to(code, name)
        if family is not None:
            reconstruct = family.reader(StoredClass(cls, details, registered.upgrade if registered else None))
        elif registered is not None and registered.decode is not None:
            reconstruct = _decoding(registered.decode)
        else:
            raise SerializationError(f"a {name!r} was stored by functions, but is registered without them now")
        return Kept(name, cls, registered, Reader(reconstruct))

    def _leads_to(self, code: str, name: str) -> _Head:
        registered = self._registry.of_name(name)
        if code == REGISTERED:
            if registered is None:
                raise SerializationError(f"no class is registered as {name!r} now; register it before loading")
            return _Head(registered.cls, None, registered)
        # The class comes first: a family is known only once the library of its classes has been imported.
        cls = self._classes.find(name)
        family = self._families.by_code().get(code)
        if family is None:
            raise unknown_family(code, name)
        if cls in self._kind_writers or not self._families.may_have_stored(family, cls):
            raise CorruptDataError(f"{name} was stored as {family.title}, and it is not one")
        family.check(cls)
        return _Head(cls, family, registered)

    def _is_stored(self, cls: type) -> bool:
        return cls in self.carried or cls in self._kind_writers or self._families.of_class(cls) is not None


def unknown_family(code: str, name: str) -> CorruptDataError | SerializationError:
    """Return the error of a class whose family is not here."""
    if len(code) == 1:
        return CorruptDataError(f"the stored kind {code!r} is not one that this release knows")
    return SerializationError(
        f"{name} was stored by the kind {code}, which no installed package has; install the package that stored it"
    )


def names_in(payload: bytes) -> list[str]:
    """Return the attributes' names in a mark, or an empty list if its kind has none."""
    if len(payload) == 1:
        return []
    head, details = parts_of_mark(payload)
    if split_code(head)[0] == exceptions.FAMILY.code:
        return exceptions.PARTS
    names = details[0] if details else []
    return names if type(names) is list and all(type(name) is str for name in names) else []


def parts_of_mark(payload: bytes) -> tuple[str, list[Any]]:
    """Return the beginning of a mark, the family's code and the class's name, and the details behind it."""
    parts = unpack(payload, list, _no_extension)
    if type(parts) is not list or not parts or type(parts[0]) is not str:
        raise CorruptDataError("a stored mark is not valid")
    head, *details = parts
    return head, details


def _no_extension(*_: object) -> Any:
    raise CorruptDataError("a stored mark is not valid")


def _kind_writer(kind: Kind) -> Deconstruct:
    shape, deconstruct = Shape(kind.letter.encode()), kind.deconstruct
    return lambda value: [shape, *deconstruct(value)]


# The readers of kinds that every serializer shares: made once, because a saver opened for one call would spend
# as long on them as on the call.
_KINDS = {kind.letter: kind for kind in (*scalars.KINDS, *containers.KINDS, *times.KINDS)}
_KIND_WRITERS = {kind.cls: _kind_writer(kind) for kind in _KINDS.values()}
_KIND_READERS = {letter.encode(): Reader(kind.reconstruct) for letter, kind in _KINDS.items()}


class _Running(threading.local):
    """How many registered functions are running in this thread, each called by the one before."""

    depth = 0


_RUNNING = _Running()


def is_inside_encode() -> bool:
    """Whether the serializer was called by a registered function."""
    return _RUNNING.depth > 0


def _encoding(registered: Registered, shape: Shape) -> Deconstruct:
    encode: Any = registered.encode

    def deconstruct(value: Any) -> list[Any]:
        if _RUNNING.depth >= DEEPEST_ENCODES:
            raise SerializationError(
                f"the function that was registered to encode {registered.cls.__qualname__} ({registered.name!r}) calls "
                f"the serializer for values that lead to it again, {DEEPEST_ENCODES} times deep; return the parts of a "
                "value as they are: the serializer encodes them"
            )
        _RUNNING.depth += 1
        try:
            return [shape, encode(value)]
        finally:
            _RUNNING.depth -= 1

    return deconstruct


def _decoding(decode: Callable[[Any], Any]) -> Reconstruct:
    def reconstruct(items: list[Any]) -> Any:
        (state,) = items
        return decode(state)

    return reconstruct
