"""Pydantic models, stored by state: what `__init__` made of the input, not something to validate again."""

import sys
from typing import Any

from threadmark.errors import CorruptDataError
from threadmark.serde.attributes import Fields, checked_state, evolve
from threadmark.serde.kinds.records import plan_of_attributes
from threadmark.serde.plan import Give, Take, Upgrade

_MOST_SHAPES = 256


class Models:
    """Models of pydantic 2.

    The items are the fields' dictionary and which of them were set, as a number whose bits follow the
    dictionary's order; then only where there are some: extra values, private attributes, and the class's field
    names where the dictionary's are not the same (a model made by `model_construct`, a cached property).
    """

    letter = "M"
    title = "a pydantic model"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a model."""
        pydantic = sys.modules.get("pydantic.main")
        return pydantic is not None and issubclass(cls, pydantic.BaseModel) and cls is not pydantic.BaseModel

    def plan(self, cls: Any, upgrade: Upgrade | None) -> tuple[Take, Give]:
        """By state."""
        from pydantic import BaseModel

        every = cls.__pydantic_fields__
        names = frozenset(every)
        listed = sorted(names)
        defaults = {
            name: (lambda field=field: field.get_default(call_default_factory=True))
            for name, field in every.items()
            if not field.is_required()
        }
        fields = Fields(names, defaults)
        own = vars(BaseModel)
        set_fields_set = own["__pydantic_fields_set__"].__set__
        set_extra = own["__pydantic_extra__"].__set__
        set_private = own["__pydantic_private__"].__set__
        set_state = object.__setattr__
        new = object.__new__
        masks: dict[Any, tuple[Any, bool]] = {}
        sets: dict[Any, frozenset[str]] = {}

        def take(model: Any) -> tuple[Any, ...]:
            state = model.__dict__
            shape = (tuple(state), frozenset(model.__pydantic_fields_set__))
            known = masks.get(shape)
            if known is None:
                known = (_mask(*shape), names == state.keys())
                _remember(masks, shape, known)
            mask, regular = known
            extra, private = model.__pydantic_extra__, model.__pydantic_private__
            if extra is None and private is None and regular:
                return (state, mask)
            return (state, mask, extra, private) if regular else (state, mask, extra, private, listed)

        def give(items: list[Any]) -> Any:
            state, mask, *rest = items
            extra, private, stored = (*rest, None, None, None)[:3]
            shape = (tuple(state), mask) if type(mask) is int else None
            set_names = sets.get(shape)
            if set_names is None:
                checked_state(state)
                set_names = _unmask(state, mask)
                if shape:
                    _remember(sets, shape, set_names)
            if (stored_names := state.keys() if stored is None else frozenset(stored)) != names:
                state = evolve(cls, state, stored_names, fields, upgrade)
                set_names &= state.keys() | (extra or {}).keys()
            model = new(cls)
            set_state(model, "__dict__", state)
            set_fields_set(model, set(set_names))
            set_extra(model, None if extra is None else checked_state(extra))
            set_private(model, None if private is None else checked_state(private))
            return model

        return take, give


class FirstModels:
    """Models of pydantic 1, which pydantic 2 still carries as `pydantic.v1`."""

    letter = "m"
    title = "a pydantic.v1 model"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a model of pydantic 1."""
        pydantic = sys.modules.get("pydantic.v1.main")
        return pydantic is not None and issubclass(cls, pydantic.BaseModel)

    def plan(self, cls: Any, upgrade: Upgrade | None) -> tuple[Take, Give]:
        """By attributes: the set of given fields and the private ones are slots."""
        every = cls.__fields__
        names = {*every, "__fields_set__", *cls.__private_attributes__}
        defaults: dict[str, Any] = {
            name: (lambda field=field: field.get_default()) for name, field in every.items() if not field.required
        }
        return plan_of_attributes(cls, Fields(frozenset(names), defaults), upgrade)


class Secrets:
    """SecretStr and SecretBytes. They hide a value from logs, not from storage: encrypt the saver for that."""

    letter = "K"
    title = "a pydantic secret"

    def accepts(self, cls: type) -> bool:
        """Whether the class is one of pydantic's secrets."""
        types = [sys.modules.get("pydantic.types"), sys.modules.get("pydantic.v1.types")]
        return any(module is not None and cls in (module.SecretStr, module.SecretBytes) for module in types)

    def plan(self, cls: type, upgrade: Upgrade | None) -> tuple[Take, Give]:
        """By attributes."""
        return plan_of_attributes(cls, Fields(frozenset({"_secret_value"}), {}), upgrade)


FAMILIES = (Models(), FirstModels(), Secrets())


def _mask(state: tuple[str, ...], fields_set: frozenset[str]) -> int | list[str]:
    """Names that the dictionary does not have (extra values count as set) leave no choice but to list them all."""
    if not fields_set.issubset(state):
        return sorted(fields_set)
    return sum(1 << place for place, name in enumerate(state) if name in fields_set)


def _unmask(state: dict[str, Any], mask: Any) -> frozenset[str]:
    if type(mask) is int:
        if mask >> len(state):
            raise CorruptDataError("more fields were set than the model has")
        return frozenset(name for place, name in enumerate(state) if mask >> place & 1)
    if type(mask) is not list or not all(type(name) is str for name in mask):
        raise CorruptDataError("the names of the fields that were set are not some")
    return frozenset(mask)


def _remember(cache: dict[Any, Any], key: Any, value: Any) -> None:
    """Shapes repeat; where they do not (model_construct with anything at all), the cache starts over."""
    if len(cache) >= _MOST_SHAPES:
        cache.clear()
    cache[key] = value
