"""Members of enums, stored by name, so that a member stays the same if its value is changed later."""

from enum import Enum, Flag, IntFlag
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, Shapes, StoredClass, only
from threadmark.serde.lookup import attribute


class Enums(Family):
    """Members of Enum's subclasses. The mark names the member. A combination of flags is stored as its number."""

    code = "E"
    title = "an enum"

    def accepts(self, cls: type) -> bool:
        """Whether `cls` is an enum with members."""
        return issubclass(cls, Enum) and isinstance(attribute(cls, "_member_map_"), dict)

    def writer(self, define: Definer) -> Deconstruct:
        """Write the mark, which is enough for a member, and a combination's number."""
        cls, members = define.cls, define.cls._member_map_
        shapes = Shapes[str | None](define.shape)
        refuse_combinations = _refuse_combinations(cls) if issubclass(cls, Flag) else None

        def deconstruct(member: Enum) -> list[Any]:
            name = member._name_
            if members.get(name) is member:
                return [shapes[name]]
            # enum makes a combination when it is first used, and keeps it under its number.
            value = member._value_
            if (
                type(value) is not int
                or not isinstance(member, Flag)
                or cls._value2member_map_.get(value) is not member
            ):
                raise SerializationError(f"this value of {cls.__qualname__} is not one of its members")
            if refuse_combinations:
                raise refuse_combinations
            return [shapes[None], value]

        return deconstruct

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Find the member when the mark is read, and return it for every value."""
        cls, upgrade = stored.cls, stored.upgrade
        (name,) = stored.details
        if name is None:
            if not issubclass(cls, Flag):
                raise CorruptDataError(f"{cls.__qualname__} has no combinations of members")
            if refused := _refuse_combinations(cls):
                raise refused
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


def _combination(cls: Any, items: list[Any]) -> Enum:
    value = only(items, int)
    member: Enum | None = cls._value2member_map_.get(value)
    if member is None:
        # The result of calling the class, without its `_missing_` and its metaclass.
        member = _MAKE_COMBINATION(cls, value)
    if type(member) is not cls:
        raise CorruptDataError(f"{cls.__qualname__} has no combination {value}")
    return member


def _refuse_combinations(cls: Any) -> SerializationError | None:
    """Return the error for combinations, if code of the class would run when one is made, otherwise None."""
    like = Flag if cls._member_type_ is object else IntFlag
    own = [name for name in _MAKING if attribute(cls, name) is not attribute(like, name)]
    iterates = getattr(attribute(cls, "_iter_member_"), "__func__", None)
    if cls._member_type_ in (object, int) and not own and iterates in _ITERATIONS:
        return None
    return SerializationError(
        f"a combination of members of {cls.__qualname__} can be neither stored nor loaded as it is: to make one would "
        "run code of its class; register it with functions of its own"
    )


# How enum makes a combination, and the methods of a class that it calls to do so.
_MAKE_COMBINATION: Any = vars(Flag)["_missing_"].__func__
_MAKING = ("__getattribute__", "__getattr__", "__setattr__", "_numeric_repr_")
_ITERATIONS = frozenset(vars(Flag)[name].__func__ for name in ("_iter_member_by_value_", "_iter_member_by_def_"))


def _too_much() -> Enum:
    raise CorruptDataError("a stored enum member has items")


FAMILY = Enums()
