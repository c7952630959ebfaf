"""Reading stored values without their classes: each object becomes an `ObjectView`, even if its class is imported.

Kinds that need no class are read as always. Nothing here looks at a class, so that no code of one can run.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import timedelta, timezone
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfoNotFoundError

from threadmark.errors import CorruptDataError
from threadmark.serde.attributes import checked_names, checked_state, record_builders
from threadmark.serde.classes import Classes, canonical_name
from threadmark.serde.dispatch import BY_FIELD, REGISTERED, Dispatch, Kept, parts_of_mark, unknown_family
from threadmark.serde.families import split_code
from threadmark.serde.kinds import times
from threadmark.serde.kinds_api import Kind, Reader, Reconstruct, only
from threadmark.serde.object_view import CONTENT, ObjectView
from threadmark.serde.registry import Registry

_Named: TypeAlias = Callable[[list[Any]], dict[str, Any]]
"""Takes the items of a stored object, returns its fields."""

_FACTORY = "default_factory"
_HERE = 2
_WITH_ATTRIBUTES = 2
_NUMBERS = (
    *(("b1", "?"), ("i1", "b"), ("i2", "h"), ("i4", "i"), ("i8", "q"), ("u1", "B"), ("u2", "H"), ("u4", "I")),
    *(("u8", "Q"), ("f2", "e"), ("f4", "f"), ("f8", "d")),
)
_SCALARS = {order + numpys: order.replace("|", "<") + code for order in "<>|" for numpys, code in _NUMBERS}
"""How `struct` reads numbers, by numpy's names of their types."""


class ShowingDispatch(Dispatch):
    """Writes as any serializer does, and reads objects as `ObjectView`."""

    def __init__(self, registry: Registry, classes: Classes) -> None:
        super().__init__(registry, classes)
        self._kind_readers = {**self._kind_readers, **_view_readers(self._kinds)}

    def stored_fields(self, payload: bytes) -> list[str] | None:
        """Return the names of the fields, whose values are the first items. None for kinds with other items."""
        if len(payload) == 1:
            return None
        head, details = parts_of_mark(payload)
        code, _ = split_code(head)
        # Attributes of a named tuple come before its items.
        if code not in BY_FIELD or not details or (code == "T" and len(details) == _WITH_ATTRIBUTES):
            return None
        return checked_names(details[0])

    def _leads_there(self, kept: Kept) -> bool:  # noqa: ARG002 - as every dispatch has it
        return True

    def _new_reader(self, payload: bytes) -> Kept:
        head, details = parts_of_mark(payload)
        code, name = split_code(head)
        if code == times.FAMILY.code:
            return Kept(name, ObjectView, None, Reader(_offset))
        named, new = _fields_of(code, name, details), tuple.__new__
        return Kept(name, ObjectView, None, Reader(lambda items: new(ObjectView, (name, named(items)))))


def _fields_of(code: str, name: str, details: list[Any]) -> _Named:
    """Return the names of the items behind a mark."""
    if found := _FAMILIES.get(code):
        return found(details)
    if len(code) == 1:
        raise unknown_family(code, name)
    return lambda items: _numbered(items) | ({"details": details} if details else {})


def _numbered(items: list[Any]) -> dict[str, Any]:
    return {str(index): item for index, item in enumerate(items)}


def _joined(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return one dictionary with all entries; a name that is taken gets a stroke."""
    fields: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            free = name
            while free in fields:
                free += "'"
            fields[free] = value
    return fields


def _records(details: list[Any]) -> _Named:
    return record_builders(checked_names(details[0]))


def _models(details: list[Any]) -> _Named:
    names, _, extra_is, private_is, *_ = details
    named, beside = _records([names]), [each for each in (extra_is, private_is) if each == _HERE]

    def fields(items: list[Any]) -> dict[str, Any]:
        more = [checked_state(items.pop()) for _ in beside]
        return _joined(named(items), *reversed(more))

    return fields if beside else named


def _named_tuples(details: list[Any]) -> _Named:
    named = _records(details)
    if len(details) < _WITH_ATTRIBUTES:
        return named

    def fields(items: list[Any]) -> dict[str, Any]:
        attributes = checked_state(items.pop(0))
        return _joined(named(items), attributes)

    return fields


def _enums(details: list[Any]) -> _Named:
    (name,) = details
    if name is None:
        return lambda items: {"value": only(items, int)}

    def fields(items: list[Any]) -> dict[str, Any]:
        if items:
            raise CorruptDataError("a stored enum member has items")
        return {"name": name}

    return fields


def _exceptions(_: list[Any]) -> _Named:
    def fields(items: list[Any]) -> dict[str, Any]:
        args, own, attributes, *causes = items
        if type(args) is not list or len(causes) not in (0, len(_CAUSES)):
            raise CorruptDataError("a stored exception is not valid")
        found = dict(zip(_CAUSES, causes, strict=False))
        return _joined({"args": tuple(args)}, checked_state(own), checked_state(attributes), found)

    return fields


_CAUSES = ("__cause__", "__context__", "__suppress_context__")


def _subclasses(_: list[Any]) -> _Named:
    def fields(items: list[Any]) -> dict[str, Any]:
        content, *attributes = items
        return _joined({CONTENT: content}, *map(checked_state, attributes))

    return fields


def _default_dicts(_: list[Any]) -> _Named:
    def fields(items: list[Any]) -> dict[str, Any]:
        factory, content, attributes = items
        return _joined({CONTENT: only([content], dict), _FACTORY: factory}, checked_state(attributes))

    return fields


def _arrays(details: list[Any]) -> _Named:
    dtype, order = details

    def fields(items: list[Any]) -> dict[str, Any]:
        shape, content = items
        if type(shape) is not list or type(content) not in (bytes, list):
            raise CorruptDataError("a stored array is not valid")
        return {"dtype": dtype, "shape": tuple(shape), "order": order, CONTENT: content}

    return fields


def _masked_arrays(_: list[Any]) -> _Named:
    return record_builders(["data", "mask", "fill_value", "hard_mask"])


def _scalars(details: list[Any]) -> _Named:
    dtype = details[0]
    form = _SCALARS.get(dtype) if type(dtype) is str else None
    extra = {} if dtype is None else {"dtype": dtype}

    def fields(items: list[Any]) -> dict[str, Any]:
        (content,) = items
        if form is not None:
            (content,) = struct.unpack(form, only(items, bytes))
        return {CONTENT: content, **extra}

    return fields


def _registered(_: list[Any]) -> _Named:
    def fields(items: list[Any]) -> dict[str, Any]:
        (state,) = items
        return state if type(state) is dict and all(type(key) is str for key in state) else {CONTENT: state}

    return fields


def _of_items(_: list[Any]) -> _Named:
    return _numbered


_FAMILIES: Final[Mapping[str, Callable[[list[Any]], _Named]]] = {
    **dict.fromkeys("DAmKS", _records),
    "M": _models,
    "T": _named_tuples,
    "E": _enums,
    "X": _exceptions,
    "B": _subclasses,
    "F": _default_dicts,
    "Y": _arrays,
    "y": _masked_arrays,
    "#": _scalars,
    "V": _of_items,
    REGISTERED: _registered,
}
"""The names of the items of each of the serializer's own families (docs/reference/format-values.md)."""


def _view_readers(kinds: Mapping[str, Kind]) -> dict[bytes, Reader]:
    """Return the readers of builtin kinds that may hold an object in place of a builtin, such as a zone.

    They become views then, like objects; so do values that would lose members because these look the same.
    """
    read = {letter: kind.reconstruct for letter, kind in kinds.items()}
    found: dict[str, Reconstruct] = {
        **{letter: _moment(kinds[letter].cls, read[letter]) for letter in "Tk"},
        **{letter: _unless_objects(kinds[letter].cls, read[letter]) for letter in "hm"},
        **{letter: _distinct(kinds[letter].cls) for letter in "sf"},
        "Z": _zone(read["Z"]),
        "d": _default_dict({canonical_name(cls): cls for cls in _classes(kinds)}),
    }
    return {letter.encode(): Reader(reconstruct) for letter, reconstruct in found.items()}


def _classes(kinds: Mapping[str, Kind]) -> list[type]:
    return [*(Dispatch.carried - {type(None)}), *(kind.cls for kind in kinds.values())]


def _moment(cls: type, reconstruct: Reconstruct) -> Reconstruct:
    zone_at = 7 if cls.__name__ == "datetime" else 4

    def moment(items: list[Any]) -> Any:
        if len(items) <= zone_at or type(zone := items[zone_at]) is not ObjectView:
            return reconstruct(items)
        without = reconstruct([*items[:zone_at], None, *items[zone_at + 1 :]])
        return ObjectView(canonical_name(cls), {CONTENT: without, "tzinfo": zone})

    return moment


def _unless_objects(cls: type, reconstruct: Reconstruct) -> Reconstruct:
    def read(items: list[Any]) -> Any:
        has_view = any(type(item) is ObjectView for item in items)
        return ObjectView(canonical_name(cls), _numbered(items)) if has_view else reconstruct(items)

    return read


def _distinct(cls: Any) -> Reconstruct:
    def read(items: list[Any]) -> Any:
        members = cls(items)
        return members if len(members) == len(items) else ObjectView(canonical_name(cls), {CONTENT: items})

    return read


def _zone(reconstruct: Reconstruct) -> Reconstruct:
    def zone(items: list[Any]) -> Any:
        try:
            return reconstruct(items)
        except ZoneInfoNotFoundError:  # this machine does not have it
            return ObjectView("zoneinfo:ZoneInfo", {"key": items[0]})

    return zone


def _offset(items: list[Any]) -> timezone:
    """Return the builtin zone that is the same as pydantic's, so that moments stay moments."""
    return timezone(timedelta(seconds=only(items, int)))


def _default_dict(factories: Mapping[str, type]) -> Reconstruct:
    def read(items: list[Any]) -> Any:
        name, *rest = items
        content = only(rest, dict)
        if name is None or (type(name) is str and name in factories):
            return defaultdict(None if name is None else factories[name], content)
        if type(name) is not str:
            raise CorruptDataError("the factory of a stored defaultdict is not a name")
        return ObjectView("collections:defaultdict", {CONTENT: content, _FACTORY: name})

    return read
