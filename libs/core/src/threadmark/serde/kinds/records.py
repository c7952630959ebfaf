"""Records: dataclasses, attrs classes, msgspec Structs and named tuples, stored by their attributes.

The mark lists the attributes' names, the items are their values. `__init__`, `__post_init__`, converters and
validators ran when the value was made; they do not run again.
"""

import dataclasses
import operator
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MemberDescriptorType
from typing import Any

from threadmark.errors import SerializationError
from threadmark.serde.attributes import (
    Attributes,
    Fields,
    checked_names,
    checked_state,
    evolve,
    is_state,
    maker,
    object_reader,
    object_writer,
    record_builders,
    storable_names,
)
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, Shapes, StoredClass
from threadmark.serde.lookup import ancestry, attribute, derives, imported


def attribute_writer(fields: Fields, define: Definer) -> Deconstruct:
    """Return the writer of the attributes that are set.

    If they are not exactly the class's fields, the mark lists the fields as well, so that a field that was never set
    can be told from one that was added to the class later.
    """
    attributes = Attributes(define.cls)
    shapes = Shapes[tuple[str, ...]](lambda names: define.shape(storable_names(names), *_listed(fields, names)))

    def deconstruct(value: Any) -> list[Any]:
        state = attributes.read(value)
        return [shapes[tuple(state)], *state.values()]

    if not attributes.are_dict or attribute(define.cls, "__getattribute__") is not object.__getattribute__:
        return deconstruct
    # One tuple, so that other threads see all of it or nothing. The names are a list, which is made and compared faster
    # than a tuple.
    latest: tuple[Any, ...] = (None, None)

    def deconstruct_dict(value: Any) -> list[Any]:
        nonlocal latest
        state = value.__dict__
        names, shape = latest
        if [*state] != names or type(state) is not dict:
            if not is_state(state) or type(state) is not dict:
                return deconstruct(value)
            shape = shapes[tuple(state)]
            latest = ([*state], shape)
        return [shape, *state.values()]

    return object_writer(deconstruct_dict, [attributes.dictionary], is_state)


def attribute_reader(fields: Fields, stored: StoredClass) -> Reconstruct:
    """Return the reader that builds an object from its attributes."""
    names, *listed = map(checked_names, stored.details)
    before = frozenset(listed[0] if listed else names)
    same = before == fields.names
    cls, attributes, named, new = stored.cls, Attributes(stored.cls), record_builders(names), object.__new__
    set_dict, write = attributes.set_dict, attributes.write

    def reconstruct(items: list[Any]) -> Any:
        state = named(items)
        value: Any = new(cls)
        write(value, state if same else evolve(stored, state, before, fields))
        return value

    def reconstruct_dict(items: list[Any]) -> Any:
        value: Any = new(cls)
        set_dict(value, named(items))
        return value

    if not (same and attributes.are_dict):
        return reconstruct
    return object_reader(reconstruct_dict, cls, attributes.dictionary, names)


def _listed(fields: Fields, names: tuple[str, ...]) -> tuple[list[str], ...]:
    return () if fields.names == frozenset(names) else (sorted(fields.names),)


class Dataclasses(Family):
    """Dataclasses, pydantic's included."""

    code = "D"
    title = "a dataclass"

    def accepts(self, cls: type) -> bool:
        """Whether the class or a base of it is a dataclass. Attributes that are not fields are stored as well."""
        return isinstance(attribute(cls, "__dataclass_fields__"), dict) and maker(cls) is object

    def writer(self, define: Definer) -> Deconstruct:
        """Write the attributes."""
        return attribute_writer(_dataclass_fields(define.cls), define)

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the object from its attributes."""
        return attribute_reader(_dataclass_fields(stored.cls), stored)


def _dataclass_fields(cls: Any) -> Fields:
    names, defaults = [], {}
    described = _pydantic_defaults(cls)
    for field in dataclasses.fields(cls):
        names.append(field.name)
        if field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory
        elif field.default is not dataclasses.MISSING and not _is_description(field.default):
            defaults[field.name] = always(field.default)
        elif field.name in described:
            defaults[field.name] = described[field.name]
    return Fields(frozenset(names), defaults)


def _is_description(default: object) -> bool:
    """Whether this is pydantic's description of a field, `Field(...)`, which stands where the default would."""
    return type(default) in [module.FieldInfo for name in _DESCRIBING if (module := imported(name))]


def _pydantic_defaults(cls: Any) -> Mapping[str, Callable[[], Any]]:
    """Return the defaults of those fields of a dataclass that pydantic knows, of either version."""
    first: Any = attribute(cls, "__pydantic_model__")
    return defaults_of_first(first) if first else described_defaults(attribute(cls, "__pydantic_fields__", {}))


def described_defaults(fields: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return the defaults in pydantic's descriptions of fields."""
    return {
        name: partial(field.get_default, call_default_factory=True)
        for name, field in fields.items()
        # A factory that needs the other fields' validated values cannot fill a field of a stored object.
        if not field.is_required() and not getattr(field, "default_factory_takes_validated_data", False)
    }


def defaults_of_first(cls: Any) -> dict[str, Callable[[], Any]]:
    """Return the defaults of the fields of a model of pydantic 1."""
    return {name: field.get_default for name, field in cls.__fields__.items() if not field.required}


class AttrsClasses(Family):
    """Classes made by attrs."""

    code = "A"
    title = "an attrs class"

    def accepts(self, cls: type) -> bool:
        """Whether attrs made the class."""
        made = "attr" in sys.modules and isinstance(attribute(cls, "__attrs_attrs__"), tuple)
        return made and maker(cls) is object

    def writer(self, define: Definer) -> Deconstruct:
        """Write the attributes."""
        return attribute_writer(_attrs_fields(define.cls), define)

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the object from its attributes."""
        return attribute_reader(_attrs_fields(stored.cls), stored)


def _attrs_fields(cls: Any) -> Fields:
    import attr

    names, defaults = [], {}
    for field in attr.fields(cls):
        names.append(field.name)
        default: Any = field.default
        # A factory that needs the unfinished object cannot fill a field of a stored one.
        if hasattr(default, "takes_self"):
            if not default.takes_self:
                defaults[field.name] = default.factory
        elif default is not attr.NOTHING:
            defaults[field.name] = always(default)
    return Fields(frozenset(names), defaults)


class Structs(Family):
    """msgspec Structs. Those with a `__post_init__` are refused, because msgspec offers no way to skip it.

    Nothing else of a Struct's class could run.
    """

    code = "S"
    title = "a msgspec Struct"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a Struct."""
        msgspec = imported("msgspec")
        return msgspec is not None and derives(cls, msgspec.Struct)

    def check(self, cls: Any) -> None:
        """Refuse a class if making an instance would run `__post_init__` or lose attributes."""
        if attribute(cls, "__post_init__") is not None or cls.__dictoffset__:
            raise SerializationError(
                f"{cls.__qualname__} cannot be stored or loaded as it is: a msgspec Struct with __post_init__ or "
                "dict=True cannot be rebuilt exactly; register it with functions of its own"
            )

    def writer(self, define: Definer) -> Deconstruct:
        """Write the fields: a Struct has no other attributes."""
        cls = define.cls
        every: tuple[str, ...] = cls.__struct_fields__
        shape = define.shape(list(every))
        members = [_member(cls, name) for name in every]
        found = [attribute(cls, name) for name in ("__getattribute__", *every)]
        if all(map(operator.is_, found, [object.__getattribute__, *members])):
            return lambda value: [shape, *[getattr(value, name) for name in every]]
        # A class attribute of a subclass may hide a field, but the instances still have it.
        return lambda value: [shape, *[member.__get__(value) for member in members]]

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the Struct from its fields."""
        (names,) = map(checked_names, stored.details)
        cls, fields, named = stored.cls, _struct_fields(stored.cls), record_builders(names)
        same, make = frozenset(names) == fields.names, _struct_maker()

        def reconstruct(items: list[Any]) -> Any:
            state = named(items)
            return make(cls, **(state if same else evolve(stored, state, names, fields)))

        return reconstruct


def _struct_maker() -> Callable[..., Any]:
    """Return the function that makes a Struct of any class without running its metaclass."""
    import msgspec

    made: Callable[..., Any] = type(msgspec.Struct).__call__
    return made


def _member(cls: type, name: str) -> Any:
    """Return the descriptor of a Struct's field."""
    found = (vars(owner).get(name) for owner in ancestry(cls))
    return next(member for member in found if isinstance(member, MemberDescriptorType))


def _struct_fields(cls: Any) -> Fields:
    import msgspec

    names: tuple[str, ...] = cls.__struct_fields__
    # msgspec lists the defaults of the last fields. Its function `fields` would evaluate annotations that are text.
    known: tuple[Any, ...] = cls.__struct_defaults__
    defaults: dict[str, Callable[[], Any]] = {}
    for name, default in zip(names[len(names) - len(known) :], known, strict=True):
        if type(default) is msgspec._core.Factory:  # noqa: SLF001 - the one way to tell a factory from a default
            defaults[name] = default.factory
        elif default is not msgspec.NODEFAULT:
            defaults[name] = always(default)
    return Fields(frozenset(names), defaults)


class NamedTuples(Family):
    """Classes that namedtuple or NamedTuple made, and their subclasses."""

    code = "T"
    title = "a named tuple"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a tuple with named fields."""
        named = isinstance(attribute(cls, "_field_defaults"), dict) and isinstance(attribute(cls, "_fields"), tuple)
        return named and issubclass(cls, tuple) and maker(cls) is tuple

    def writer(self, define: Definer) -> Deconstruct:
        """Write an instance's attributes, if a subclass's instance has some, then its items."""
        names, name = list(define.cls._fields), define.cls.__qualname__
        if len({*storable_names(names)}) < len(names):
            raise SerializationError(f"a {name} cannot be stored: two of its fields have one name")
        shape, with_attributes = define.shape(names), define.shape(names, _WITH_ATTRIBUTES)
        read, full = Attributes(define.cls, tuple).read_storable, 1 + len(names)

        def deconstruct(value: tuple[Any, ...]) -> list[Any]:
            own, items = read(value), [shape, *tuple.__iter__(value)]
            if len(items) != full:
                raise SerializationError(f"a {name} cannot be stored without exactly one item for each field")
            if own:
                items[:1] = with_attributes, own
            return items

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the tuple from its items by field name, and set its attributes."""
        cls, (listed, *more) = stored.cls, stored.details
        names, own = checked_names(listed), more == [_WITH_ATTRIBUTES]
        every: tuple[str, ...] = cls._fields
        known: dict[str, Any] = cls._field_defaults
        fields = Fields(frozenset(every), {name: always(default) for name, default in known.items()})
        write, named = Attributes(cls, tuple).write, record_builders(names)

        def reconstruct(items: list[Any]) -> Any:
            attributes = checked_state(items.pop(0)) if own else {}
            state = named(items)
            if state.keys() != fields.names:
                state = evolve(stored, state, names, fields)
            value = tuple.__new__(cls, [state[name] for name in every])
            write(value, attributes)
            return value

        return reconstruct


def always(value: Any) -> Callable[[], Any]:
    """Return a function that returns this default."""
    return lambda: value


_DESCRIBING = ("pydantic.fields", "pydantic.v1.fields")
_WITH_ATTRIBUTES = "attributes"
NAMED_TUPLES = NamedTuples()
FAMILIES = (AttrsClasses(), Structs(), Dataclasses())
