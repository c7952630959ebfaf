"""Members of enums, by name: a member keeps its meaning when its value is changed later."""

from enum import Enum, Flag
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.plan import Definer, Give, Stored, Take
from threadmark.serde.shapes import Shapes


class Enums:
    """Enum in all its kinds. The mark names the member; a combination of flags is a number."""

    letter = "E"
    title = "an enum"

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is an enum with members."""
        return issubclass(cls, Enum)

    def writer(self, define: Definer) -> Take:
        """The mark says it all, but for a combination's value."""
        cls, members = define.cls, define.cls._member_map_
        shapes = Shapes[str | None](define.shape)

        def take(member: Enum) -> list[Any]:
            name = member._name_
            if members.get(name) is member:
                return [shapes[name]]
            # Combinations are made when they are first asked for, and kept under their numbers.
            value = member._value_
            if (
                type(value) is not int
                or not isinstance(member, Flag)
                or cls._value2member_map_.get(value) is not member
            ):
                raise SerializationError(f"this value of {cls.__qualname__} is not one of its members")
            return [shapes[None], value]

        return take

    def reader(self, stored: Stored) -> Give:
        """The member is found when the mark is read."""
        cls, upgrade = stored.cls, stored.upgrade
        (name,) = stored.details
        if name is None:
            return lambda items: _combination(cls, items)
        if upgrade is not None and name not in cls._member_map_:
            name = upgrade({"name": name})["name"]
        member = cls._member_map_.get(name)
        if member is None:
            raise SerializationError(
                f"{cls.__qualname__} has no member {name!r} any more; give "
                f"threadmark.serde.register({cls.__qualname__}, upgrade=...) a function that renames it"
            )
        return lambda items: member if not items else _too_much()


def _combination(cls: type[Enum], items: list[Any]) -> Enum:
    (value,) = items
    if not issubclass(cls, Flag) or type(value) is not int:
        raise CorruptDataError(f"{cls.__qualname__} has no combinations of members")
    return cls(value)


def _too_much() -> Enum:
    raise CorruptDataError("a stored enum member has items")


FAMILY = Enums()
