"""Pydantic models, stored by their state after validation, which does not run again."""

from collections.abc import Callable, Collection
from typing import Any

from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde.attributes import (
    Attributes,
    Fields,
    checked_names,
    checked_state,
    evolve,
    object_reader,
    object_writer,
    record_builders,
    storable_names,
)
from threadmark.serde.kinds.records import attribute_reader, attribute_writer, defaults_of_first, described_defaults
from threadmark.serde.kinds_api import Deconstruct, Definer, Family, Reconstruct, Shape, Shapes, StoredClass
from threadmark.serde.lookup import attribute, derives, imported

# How a model's dictionary of extra values, or of private attributes, is stored.
_NONE, _EMPTY, _HERE = 0, 1, 2
_TOO_MANY_SET = "more fields of a model are noted as set than it has"
_SLOTS = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_MEMBERS = ("__dict__", *_SLOTS)


class Models(Family):
    """Models of pydantic 2.

    The mark lists the names in the model's dictionary, the fields that were set, whether there are extra values and
    private attributes, and the class's fields if the names are others (because of `model_construct` or a cached
    property). The items are the values, then extra values and private attributes.
    """

    code = "M"
    title = "a pydantic model"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a model."""
        pydantic = imported("pydantic.main")
        return pydantic is not None and derives(cls, pydantic.BaseModel) and cls is not pydantic.BaseModel

    def check(self, cls: type) -> None:
        """Refuse classes with slots that pydantic does not count as a model's state."""
        if own := Attributes(cls).slots.keys() - {*_SLOTS}:
            raise SerializationError(
                f"{cls.__qualname__} cannot be stored as it is: pydantic itself does not copy slots of a model's own "
                f"({', '.join(sorted(own))}); make them private attributes"
            )

    def writer(self, define: Definer) -> Deconstruct:
        """Write the state."""
        cls = define.cls
        fields = frozenset(cls.__pydantic_fields__)

        def new_shape(key: tuple[tuple[str, ...], frozenset[str], int, int]) -> Shape:
            names, fields_set, extra, private = key
            listed = () if fields == frozenset(names) else (sorted(fields),)
            return define.shape(storable_names(names), sorted(storable_names(fields_set)), extra, private, *listed)

        shapes, asks_itself = Shapes(new_shape), attribute(cls, "__getattribute__") is not object.__getattribute__
        if asks_itself:
            return _careful_writer(shapes, len(fields), _private_defaults(cls))
        write = _writer(shapes, len(fields), _private_defaults(cls))
        members = _members()
        if all(attribute(cls, name) is members[name] for name in _SLOTS):
            return object_writer(write, list(members.values()))
        return write

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the model from its state."""
        cls = stored.cls
        names, fields_set, extra_is, private_is, *listed = stored.details
        names, fields_set = checked_names(names), frozenset(checked_names(fields_set))
        fields = _model_fields(cls)
        before: frozenset[str] = frozenset(*map(checked_names, listed or [names]))
        # Every model gets its own copy of this set, so it must not be much larger than the model itself.
        unaccounted = _unaccounted(fields_set, names, len(fields.names))
        if unaccounted > 0 and extra_is != _HERE:
            raise CorruptDataError(_TOO_MANY_SET)
        new_private = _private_defaults(cls)
        members = _members()
        set_dict, set_fields_set, set_extra, set_private = (member.__set__ for member in members.values())
        new = object.__new__
        named = record_builders(names)
        state_of = named if before == fields.names else lambda items: evolve(stored, named(items), before, fields)

        def reconstruct(items: list[Any]) -> Any:
            model = new(cls)
            set_dict(model, state_of(items))
            set_fields_set(model, {*fields_set})
            set_extra(model, {} if extra_is else None)
            set_private(model, {} if private_is else None)
            return model

        def reconstruct_with_dictionaries(items: list[Any]) -> Any:
            dictionaries = {}
            if private_is == _HERE or new_private:
                found = checked_state(items.pop()) if private_is == _HERE else {}
                missing = new_private.keys() - found.keys()
                dictionaries[set_private] = found | {name: new_private[name]() for name in sorted(missing)}
            if extra_is == _HERE:
                dictionaries[set_extra] = extra = checked_state(items.pop())
                if unaccounted > len(extra):
                    raise CorruptDataError(_TOO_MANY_SET)
            model = reconstruct(items)
            for set_dictionary, content in dictionaries.items():
                set_dictionary(model, content)
            return model

        if _HERE in (extra_is, private_is) or new_private:
            return reconstruct_with_dictionaries
        if before != fields.names:
            return reconstruct
        contents: tuple[Any, ...] = (fields_set, {} if extra_is else None, {} if private_is else None)
        dictionary, *others = members.values()
        return object_reader(reconstruct, cls, dictionary, names, zip(others, contents, strict=True))


def _unaccounted(fields_set: Collection[str], names: Collection[str], fields: int) -> int:
    """Return how many more names are noted as set than the model's dictionary and fields have."""
    return len(fields_set) - len(names) - fields


def _members() -> dict[str, Any]:
    """Return the interpreter's descriptors of a model's dictionary and slots, by name."""
    from pydantic import BaseModel

    return {name: vars(BaseModel)[name] for name in _MEMBERS}


def _writer(shapes: Shapes[Any], fields: int, private_defaults: Collection[str]) -> Deconstruct:
    """Return the writer for models of one class.

    It looks for extra values in each model: `model_validate(..., extra="allow")` adds them to any class.
    """
    # A model usually has the same names as the one before it. It is kept in one tuple, so that other threads see all
    # of it or nothing; the names in it are a list, which is made and compared faster.
    latest: tuple[Any, ...] = (None, None, None, None)

    def deconstruct(model: Any) -> list[Any]:
        nonlocal latest
        state, set_fields, extra = model.__dict__, model.__pydantic_fields_set__, model.__pydantic_extra__
        names, fields_set, without, shape = latest
        # Whether the model has no dictionary of extra values (True) or an empty one (False). It is not compared with
        # the dictionary of the model before, which could be filled later.
        bare = extra is None if not extra else None
        if bare is without and [*state] == names and set_fields == fields_set and model.__pydantic_private__ is None:
            return [shape, *state.values()]
        private = model.__pydantic_private__
        names, fields_set = [*state], frozenset(set_fields)
        if _unaccounted(fields_set, names, fields) > len(extra or ()):
            raise SerializationError(_TOO_MANY_SET)
        _expect_all(private, private_defaults)
        shape = shapes[tuple(names), fields_set, _presence(extra), _presence(private)]
        if bare is not None and private is None:
            latest = (names, fields_set, bare, shape)
        return [shape, *state.values(), *filter(None, (extra, private))]

    return deconstruct


def _careful_writer(shapes: Shapes[Any], fields: int, private_defaults: Collection[str]) -> Deconstruct:
    """Return the writer for models of a class that has its own `__getattribute__`."""
    members = list(_members().values())

    def deconstruct(model: Any) -> list[Any]:
        state, fields_set, extra, private = (member.__get__(model) for member in members)
        if _unaccounted(fields_set, state, fields) > len(extra or ()):
            raise SerializationError(_TOO_MANY_SET)
        _expect_all(private, private_defaults)
        shape = shapes[tuple(state), frozenset(fields_set), _presence(extra), _presence(private)]
        return [shape, *state.values(), *filter(None, (extra, private))]

    return deconstruct


def _expect_all(private: dict[str, Any] | None, defaults: Collection[str]) -> None:
    """Refuse a model without a private attribute that has a default, which it would have again when it is read."""
    if private is not None and (deleted := sorted(set(defaults).difference(private))):
        raise SerializationError(f"its private attribute {deleted[0]!r} was deleted, and would come back: set it again")


def _presence(dictionary: dict[str, Any] | None) -> int:
    if dictionary is None:
        return _NONE
    if type(dictionary) is not dict:
        raise SerializationError(f"extra values or private attributes in a {type(dictionary).__qualname__}")
    storable_names(dictionary)
    return _HERE if dictionary else _EMPTY


def _private_defaults(cls: Any) -> dict[str, Callable[[], Any]]:
    """Return the defaults of private attributes: every object has them, unless the class got them later."""
    from pydantic_core import PydanticUndefined

    return {
        name: private.default_factory or private.get_default
        for name, private in cls.__private_attributes__.items()
        if private.default_factory is not None or private.default is not PydanticUndefined
        if not getattr(private, "default_factory_takes_validated_data", False)  # as with a field's factory
    }


def _model_fields(cls: Any) -> Fields:
    return Fields(frozenset(cls.__pydantic_fields__), described_defaults(cls.__pydantic_fields__))


class FirstModels(Family):
    """Models of pydantic 1, which pydantic 2 still carries as `pydantic.v1`.

    Their state is their attributes: the names of the fields that were set, and private attributes, are slots.
    """

    code = "m"
    title = "a pydantic.v1 model"

    def accepts(self, cls: type) -> bool:
        """Whether the class is a model of pydantic 1."""
        pydantic = imported("pydantic.v1.main")
        return pydantic is not None and derives(cls, pydantic.BaseModel) and cls is not pydantic.BaseModel

    def writer(self, define: Definer) -> Deconstruct:
        """Write the attributes."""
        return attribute_writer(_first_model_fields(define.cls), define)

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the object from its attributes."""
        return attribute_reader(_first_model_fields(stored.cls), stored)


def _first_model_fields(cls: Any) -> Fields:
    names = {*cls.__fields__, "__fields_set__", *cls.__private_attributes__}
    private = {name: each.get_default for name, each in cls.__private_attributes__.items() if _has_default(each)}
    return Fields(frozenset(names), defaults_of_first(cls) | private)


def _has_default(private: Any) -> bool:
    """Whether an attribute of pydantic 1 has a default, which is not pydantic's sign that there is none."""
    return private.default_factory is not None or type(private.default).__name__ != "UndefinedType"


class Secrets(Family):
    """SecretStr and SecretBytes. They hide a value from logs, not from storage, for which there is encryption."""

    code = "K"
    title = "a pydantic secret"

    def accepts(self, cls: type) -> bool:
        """Whether the class is one of pydantic's secrets."""
        modules = [imported("pydantic.types"), imported("pydantic.v1.types")]
        return any(module is not None and cls in (module.SecretStr, module.SecretBytes) for module in modules)

    def writer(self, define: Definer) -> Deconstruct:
        """Write the attributes."""
        return attribute_writer(_SECRET_FIELDS, define)

    def reader(self, stored: StoredClass) -> Reconstruct:
        """Build the object from its attributes."""
        return attribute_reader(_SECRET_FIELDS, stored)


_SECRET_FIELDS = Fields(frozenset({"_secret_value"}), {})
FAMILIES = (Models(), FirstModels(), Secrets())
