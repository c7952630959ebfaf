"""Which plan serves a class, and which one a stored mark means.

The order of the families is the order of preference: an enum that is also an int is an enum.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.classes import Classes
from threadmark.serde.kinds import enums, exceptions, models, records, scalars, subclasses, text, times
from threadmark.serde.kinds import containers as boxes
from threadmark.serde.plan import Family, Plan
from threadmark.serde.refusals import refusal
from threadmark.serde.registry import Registered, Registry
from threadmark.serde.wire import mark

_REGISTERED = "="
_CARRIED_BY_MSGPACK = frozenset({type(None), bool, int, float, str, bytes, list, dict})


class Plans:
    """The plans of one serializer, kept from call to call and checked against the classes of today."""

    def __init__(self, registry: Registry, classes: Classes) -> None:
        self._registry = registry
        self._classes = classes
        factories = boxes.Factories(classes, self._is_stored)
        kinds = (*scalars.KINDS, *boxes.KINDS, *times.KINDS, *text.KINDS, boxes.default_dict(factories))
        self._kinds = MappingProxyType({kind.cls: kind.plan() for kind in kinds})
        self._kinds_by_mark = MappingProxyType({plan.mark.data: plan for plan in self._kinds.values()})
        self._families: tuple[Family, ...] = (
            enums.FAMILY,
            exceptions.FAMILY,
            records.NAMED_TUPLES,
            subclasses.DefaultDicts(factories),
            subclasses.FAMILY,
            *models.FAMILIES,
            *records.FAMILIES,
        )
        self._families_by_letter = MappingProxyType({family.letter: family for family in self._families})
        self._by_mark: dict[bytes, tuple[Plan, Registered | None]] = {}

    def of_class(self, cls: type) -> Plan:
        """How to write values of exactly this class."""
        if plan := self._kinds.get(cls):
            return plan
        registered = self._registry.of_class(cls)
        if registered and registered.encode:
            return self._kept(mark(_REGISTERED + registered.name).data, cls, registered, None)
        family = self._family(cls)
        if family is None:
            raise refusal(cls)
        name = registered.name if registered else self._classes.name_of(cls)
        return self._kept(mark(family.letter + name).data, cls, registered, family)

    def of_mark(self, payload: bytes) -> Plan:
        """How to read the array that a mark announces."""
        if plan := self._kinds_by_mark.get(payload):
            return plan
        try:
            letter, name = payload[:1].decode("ascii"), payload[1:].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise CorruptDataError("a stored mark is not one") from error
        registered = self._registry.of_name(name)
        if letter == _REGISTERED:
            if registered is None:
                raise SerializationError(f"no class is registered as {name!r} now; register it before loading")
            cls, family = registered.cls, None
            if not registered.encode:
                raise SerializationError(f"a {name!r} was stored by functions, but is registered without them now")
        else:
            family = self._families_by_letter.get(letter)
            if family is None:
                raise CorruptDataError(f"the stored kind {letter!r} is not one that this release knows")
            cls = self._classes.find(name)
            if self._kinds.get(cls) or not family.accepts(cls):
                raise CorruptDataError(f"{name} was stored as {family.title}, and it is not one")
        return self._kept(payload, cls, registered, family)

    def _kept(self, payload: bytes, cls: type, registered: Registered | None, family: Family | None) -> Plan:
        """The plan made before for this mark, unless the class or its registration is another one by now."""
        kept = self._by_mark.get(payload)
        if kept is not None and kept[0].cls is cls and kept[1] is registered:
            return kept[0]
        if family is None and registered is not None and registered.encode and registered.decode:
            take, give = _by_functions(registered.encode, registered.decode)
        elif family is not None:
            take, give = family.plan(cls, registered.upgrade if registered else None)
        else:
            raise refusal(cls)
        plan = Plan(cls, mark(payload.decode("utf-8", "surrogatepass")), take, give)
        self._by_mark[payload] = (plan, registered)
        return plan

    def _family(self, cls: type) -> Family | None:
        return next((family for family in self._families if family.accepts(cls)), None)

    def _is_stored(self, cls: type) -> bool:
        return cls in _CARRIED_BY_MSGPACK or cls in self._kinds or self._family(cls) is not None


def _by_functions(
    encode: Callable[[Any], Any], decode: Callable[[Any], Any]
) -> tuple[Callable[[Any], tuple[Any]], Callable[[list[Any]], Any]]:
    def take(value: Any) -> tuple[Any]:
        return (encode(value),)

    def give(items: list[Any]) -> Any:
        (state,) = items
        return decode(state)

    return take, give
