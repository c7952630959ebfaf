"""The steps of a path into a value, and how to take them in Python: only into data, never by running code.

A step reads an item, a dictionary's key or a field as it is stored in an object. Properties, methods and whatever else
a class answers with are no part of the value.
"""

import gc
import types
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from threadmark.serde.lookup import ancestry, attribute, namespace
from threadmark.serde.object_view import CONTENT, ObjectView


class Name(NamedTuple):
    """A dictionary's key, or the name of an object's field."""

    text: str


class Key(NamedTuple):
    """A dictionary's key."""

    text: str


class Index(NamedTuple):
    """The place of an item, from the end if it is negative."""

    number: int


class Slice(NamedTuple):
    """The beginning and end of a run of items, as in Python."""

    start: int | None
    stop: int | None


Step: TypeAlias = Name | Key | Index | Slice


class Nothing:
    """The type of `NOTHING`."""


NOTHING: Final = Nothing()
"""The sign for a part that is not there."""

_SEQUENCES = (list, tuple, str, bytes, bytearray)


def taken(value: Any, steps: Sequence[Step]) -> Any:
    """Return the part of a value that the steps lead to, `NOTHING` if there is none."""
    for step in steps:
        value = (_take_from_view if type(value) is ObjectView else _take)(value, step)
        if value is NOTHING:
            return NOTHING
    return value


def items_of(value: Any) -> list[Any] | None:
    """Return the items of a list, a tuple or a deque, None for any other value."""
    if type(value) is ObjectView:
        return items_of(value.fields.get(CONTENT))
    base = _base(type(value), (list, tuple, deque))
    return None if base is None else [*base.__iter__(value)]


def _take(value: Any, step: Step) -> Any:
    kind = type(value)
    if isinstance(step, Index):
        if (base := _base(kind, (*_SEQUENCES, deque))) is None:
            return NOTHING
        length = base.__len__(value)
        # With a negative index, a deque would ask its class how long it is.
        place = step.number + length if step.number < 0 else step.number
        return base.__getitem__(value, place) if 0 <= place < length else NOTHING
    if isinstance(step, Slice):
        if (base := _base(kind, _SEQUENCES)) is not None:
            return base.__getitem__(value, slice(step.start, step.stop))
        if _base(kind, (deque,)) is None:
            return NOTHING
        ends = slice(step.start, step.stop).indices(deque.__len__(value))
        return list(islice(deque.__iter__(value), *ends))
    found = _value_of(value, step.text)
    return _field(value, step.text) if found is NOTHING and isinstance(step, Name) else found


def _take_from_view(value: ObjectView, step: Step) -> Any:
    """Take a step into a view of an object: first into its content as a builtin type, if it has one."""
    found = taken(value.fields[CONTENT], [step]) if CONTENT in value.fields else NOTHING
    return value.fields.get(step.text, NOTHING) if found is NOTHING and isinstance(step, Name) else found


def _base(kind: type, bases: Sequence[Any]) -> Any:
    """Return which of the types a class derives from: its own method is called, and not one of the class."""
    order = ancestry(kind)
    return next((base for base in bases if base in order), None)


def _value_of(mapping: Any, key: str) -> Any:
    kind = type(mapping)
    if kind is types.MappingProxyType:
        (inner,) = gc.get_referents(mapping)  # the methods of a proxy are those of the mapping
        return _value_of(inner, key)
    return dict.get(mapping, key, NOTHING) if dict in ancestry(kind) else NOTHING


def _field(value: Any, name: str) -> Any:
    """Return an object's attribute: from a slot, its dictionary, a named tuple or a model's extra values.

    An attribute of the class is ignored.
    """
    kind = type(value)
    names = attribute(kind, "_fields")
    if tuple in ancestry(kind) and type(names) is tuple and name in names:
        place = names.index(name)
        return tuple.__getitem__(value, place) if place < tuple.__len__(value) else NOTHING
    for own in (_slot, _entry, _extra):
        if (found := own(value, name)) is not NOTHING:
            return found
    return NOTHING


def _slot(value: Any, name: str) -> Any:
    for owner in ancestry(type(value)):
        member = namespace(owner).get(name)
        # A class may also have another one's slot under some name, which its own instances do not have.
        if isinstance(member, types.MemberDescriptorType) and member.__objclass__ is owner:
            try:
                return member.__get__(value)
            except AttributeError:
                continue
    return NOTHING


def _entry(value: Any, name: str) -> Any:
    read = _reader_of_dictionary(type(value))
    dictionary = read(value) if read else None
    return dictionary.get(name, NOTHING) if type(dictionary) is dict else NOTHING


def _extra(value: Any, name: str) -> Any:
    """Return one of the values that a pydantic model has besides its fields."""
    extra = _slot(value, "__pydantic_extra__")
    return extra.get(name, NOTHING) if type(extra) is dict else NOTHING


def _reader_of_dictionary(kind: type) -> Callable[[Any], Any] | None:
    """Return the interpreter's own function that reads an instance's dictionary: a class may have another one."""
    member = attribute(kind, "__dict__")
    return member.__get__ if isinstance(member, types.GetSetDescriptorType) else None
