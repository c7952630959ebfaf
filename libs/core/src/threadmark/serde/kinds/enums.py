"""Members of enums, by name: a member keeps its meaning when its value is changed later."""

from enum import Enum, Flag
from typing import Any

from threadmark.errors import SerializationError
from threadmark.serde.plan import Give, Take, Upgrade


class Enums:
    """Enum in all its kinds; combinations of flags, which have no name of their own, by value."""

    letter = "E"
    title = "an enum"

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is an enum."""
        return issubclass(cls, Enum)

    def plan(self, cls: type[Enum], upgrade: Upgrade | None) -> tuple[Take, Give]:
        """A member is its name, or under a second item the value of a combination."""
        members = cls._member_map_

        def take(member: Enum) -> tuple[Any, ...]:
            name = member._name_
            if name is not None and members.get(name) is member:
                return (name,)
            if not isinstance(member, Flag):
                raise SerializationError(f"this value of {cls.__qualname__} is not one of its members")
            return (None, member._value_)

        def give(items: list[Any]) -> Enum:
            name, *value = items
            if value and issubclass(cls, Flag) and type(value[0]) is int:
                return cls(value[0])
            if upgrade is not None and name not in members:
                name = upgrade({"name": name})["name"]
            found = members.get(name) if type(name) is str else None
            if found is None:
                raise SerializationError(
                    f"{cls.__qualname__} has no member {name!r} any more; give "
                    f"threadmark.serde.register({cls.__qualname__}, upgrade=...) a function that renames it"
                )
            return found

        return take, give


FAMILY = Enums()
