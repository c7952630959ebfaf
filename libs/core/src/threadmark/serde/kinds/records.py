"""Records: dataclasses, attrs classes, msgspec Structs and named tuples, stored by their attributes.

`__init__`, `__post_init__`, converters and validators ran when the value was made; they do not run again.
"""

import dataclasses
import sys
from typing import Any

from threadmark.errors import SerializationError
from threadmark.serde.attributes import Attributes, Fields, checked_state, evolve
from threadmark.serde.plan import Give, Take, Upgrade


def plan_of_attributes(cls: type, fields: Fields, upgrade: Upgrade | None) -> tuple[Take, Give]:
    """The state is one dictionary of attributes.

    Where the attributes that are set are not exactly the fields, the names of the fields follow: so that at load
    a field that was never set is told from one that the class got later.
    """
    attributes = Attributes(cls)
    names, listed = fields.names, sorted(fields.names)
    new = object.__new__

    def take(value: object) -> tuple[Any, ...]:
        state = attributes.read(value)
        return (state,) if state.keys() == names else (state, listed)

    def give(items: list[Any]) -> object:
        state, *rest = items
        stored = checked_state(state).keys() if not rest else frozenset(rest[0])
        if stored != names:
            state = evolve(cls, state, stored, fields, upgrade)
        value = new(cls)
        attributes.write(value, state)
        return value

    return take, give


class Dataclasses:
    """Dataclasses, pydantic's included."""

    letter = "D"
    title = "a dataclass"

    def accepts(self, cls: type) -> bool:
        """Whether the class itself was decorated: a plain subclass of a dataclass has fields nobody declared."""
        return isinstance(getattr(cls, "__dataclass_fields__", None), dict)

    def plan(self, cls: type, upgrade: Upgrade | None) -> tuple[Take, Give]:
        """By attributes."""
        names, defaults = [], {}
        for field in dataclasses.fields(cls):
            names.append(field.name)
            if field.default is not dataclasses.MISSING:
                defaults[field.name] = lambda default=field.default: default
            elif field.default_factory is not dataclasses.MISSING:
                defaults[field.name] = field.default_factory
        return plan_of_attributes(cls, Fields(frozenset(names), defaults), upgrade)


class AttrsClasses:
    """Classes made by attrs."""

    letter = "A"
    title = "an attrs class"

    def accepts(self, cls: type) -> bool:
        """Whether attrs made the class."""
        return "attr" in sys.modules and isinstance(getattr(cls, "__attrs_attrs__", None), tuple)

    def plan(self, cls: type, upgrade: Upgrade | None) -> tuple[Take, Give]:
        """By attributes."""
        import attr

        names, defaults = [], {}
        for field in attr.fields(cls):
            names.append(field.name)
            default = field.default
            if isinstance(default, attr.Factory):  # type: ignore[arg-type]  # attrs' stubs make it a function
                if not default.takes_self:
                    defaults[field.name] = default.factory
            elif default is not attr.NOTHING:
                defaults[field.name] = lambda default=default: default
        return plan_of_attributes(cls, Fields(frozenset(names), defaults), upgrade)


class Structs:
    """msgspec Structs. msgspec offers no way to make one without its `__post_init__`, so those that have one are
    refused; there is nothing else that could run.
    """

    letter = "S"
    title = "a msgspec Struct"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a Struct."""
        msgspec = sys.modules.get("msgspec")
        return msgspec is not None and issubclass(cls, msgspec.Struct)

    def plan(self, cls: type, upgrade: Upgrade | None) -> tuple[Take, Give]:
        """By fields; msgspec sets no attribute that is not one."""
        import msgspec

        if hasattr(cls, "__post_init__") or cls.__dictoffset__:
            raise SerializationError(
                f"{cls.__qualname__} cannot be stored as it is: a msgspec Struct with __post_init__ or dict=True "
                "cannot be rebuilt exactly; register it with functions of its own"
            )
        every = cls.__struct_fields__  # type: ignore[attr-defined]  # every Struct class has it
        defaults = {}
        for field in msgspec.structs.fields(cls):
            if field.default_factory is not msgspec.NODEFAULT:
                defaults[field.name] = field.default_factory
            elif field.default is not msgspec.NODEFAULT:
                defaults[field.name] = lambda default=field.default: default
        fields = Fields(frozenset(every), defaults)

        def take(value: object) -> tuple[Any, ...]:
            return ({name: getattr(value, name) for name in every},)

        def give(items: list[Any]) -> object:
            (state,) = items
            if checked_state(state).keys() != fields.names:
                state = evolve(cls, state, state, fields, upgrade)
            return cls(**state)

        return take, give


class NamedTuples:
    """Classes that namedtuple or NamedTuple made, and their subclasses."""

    letter = "T"
    title = "a named tuple"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a tuple with named fields."""
        return issubclass(cls, tuple) and isinstance(getattr(cls, "_field_defaults", None), dict)

    def plan(self, cls: type[tuple[Any, ...]], upgrade: Upgrade | None) -> tuple[Take, Give]:
        """By field names, and an instance's own attributes where a subclass has room for some."""
        every: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]  # checked by `accepts`
        known: dict[str, Any] = cls._field_defaults  # type: ignore[attr-defined]  # the same
        fields = Fields(frozenset(every), {name: (lambda default=default: default) for name, default in known.items()})
        attributes = Attributes(cls)

        def take(value: tuple[Any, ...]) -> tuple[Any, ...]:
            state = dict(zip(every, tuple.__iter__(value), strict=True))
            own = attributes.read(value)
            return (state, own) if own else (state,)

        def give(items: list[Any]) -> tuple[Any, ...]:
            state, *own = items
            if checked_state(state).keys() != fields.names:
                state = evolve(cls, state, state, fields, upgrade)
            value = tuple.__new__(cls, [state[name] for name in every])
            if own:
                attributes.write(value, checked_state(own[0]))
            return value

        return take, give


NAMED_TUPLES = NamedTuples()
FAMILIES = (AttrsClasses(), Structs(), Dataclasses())
