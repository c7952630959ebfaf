"""A class that has changed since its values were stored: a tested way on, or an error that names it."""

import enum
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic.dataclasses
import pydantic.v1.dataclasses
import pytest
from pydantic import BaseModel

from threadmark.errors import ConfigError, CorruptDataError, ForbiddenTypeError, SerializationError
from threadmark.serde import Registry, Serde


@pytest.fixture
def module() -> Iterator[ModuleType]:
    """A user's module, in which classes come and go."""
    found = ModuleType("changing")
    sys.modules["changing"] = found
    yield found
    del sys.modules["changing"]


def put_into(module: ModuleType, cls: Any, name: str) -> Any:
    """The class as if it were defined in the module under that name."""
    cls.__module__, cls.__qualname__, cls.__name__ = module.__name__, name, name
    setattr(module, name, cls)
    return cls


def a_dataclass(**fields: Any) -> Any:
    return dataclass(type("C", (), {"__annotations__": dict.fromkeys(fields, Any), **_defaults(fields, field)}))


def an_attrs_class(**fields: Any) -> Any:
    return attrs.define(
        type("C", (), {"__annotations__": dict.fromkeys(fields, Any), **_defaults(fields, attrs.field)})
    )


def a_model(**fields: Any) -> Any:
    return type(
        "C",
        (BaseModel,),
        {"__annotations__": dict.fromkeys(fields, Any), "__module__": "changing"}
        | {name: default for name, default in fields.items() if default is not ...},
    )


def a_struct(**fields: Any) -> Any:
    return msgspec.defstruct(
        "C", [name if default is ... else (name, Any, default) for name, default in fields.items()]
    )


def a_named_tuple(**fields: Any) -> Any:
    made = NamedTuple("C", [(name, Any) for name in fields])  # type: ignore[misc]  # made up at run time
    given = tuple(default for default in fields.values() if default is not ...)
    made.__new__.__defaults__ = given  # as a class statement does
    made._field_defaults = dict(zip(list(fields)[-len(given) :], given, strict=True)) if given else {}
    return made


def _defaults(fields: dict[str, Any], make: Callable[..., Any]) -> dict[str, Any]:
    return {name: make(default=default) for name, default in fields.items() if default is not ...}


MAKERS = [a_dataclass, an_attrs_class, a_model, a_struct, a_named_tuple]


@pytest.mark.parametrize("make", MAKERS)
class TestFields:
    def test_a_new_field_takes_its_default(self, make: Callable[..., Any], module: ModuleType) -> None:
        before = put_into(module, make(a=...), "C")
        stored = Serde().dumps_typed(before(a=1))
        put_into(module, make(a=..., b=2), "C")
        loaded = Serde().loads_typed(stored)
        assert (loaded.a, loaded.b) == (1, 2)

    def test_a_new_field_without_default_is_an_error(self, make: Callable[..., Any], module: ModuleType) -> None:
        stored = Serde().dumps_typed({"k": put_into(module, make(a=...), "C")(a=1)})
        put_into(module, make(a=..., b=...), "C")
        with pytest.raises(SerializationError, match=r"\['k'\]: a stored C .* \(b is new and has no default\)"):
            Serde().loads_typed(stored)

    def test_a_removed_field_is_an_error(self, make: Callable[..., Any], module: ModuleType) -> None:
        stored = Serde().dumps_typed(put_into(module, make(a=..., b=...), "C")(a=1, b=2))
        put_into(module, make(a=...), "C")
        with pytest.raises(SerializationError, match=r"b was removed.*register\(C, upgrade="):
            Serde().loads_typed(stored)

    def test_an_upgrade_maps_old_fields(self, make: Callable[..., Any], module: ModuleType) -> None:
        stored = Serde().dumps_typed(put_into(module, make(a=..., b=...), "C")(a=1, b=2))
        registry = Registry()
        registry.register(
            put_into(module, make(total=..., note="none"), "C"),
            upgrade=lambda old: {"total": old["a"] + old["b"]},
        )
        loaded = Serde(registry=registry).loads_typed(stored)
        assert (loaded.total, loaded.note) == (3, "none")

    def test_an_upgrade_must_fit(self, make: Callable[..., Any], module: ModuleType) -> None:
        stored = Serde().dumps_typed(put_into(module, make(a=..., b=...), "C")(a=1, b=2))
        registry = Registry()
        registry.register(put_into(module, make(total=...), "C"), upgrade=lambda old: old)
        with pytest.raises(SerializationError, match="upgrade function's result does not fit"):
            Serde(registry=registry).loads_typed(stored)

    def test_an_unchanged_class_is_not_upgraded(self, make: Callable[..., Any], module: ModuleType) -> None:
        cls = put_into(module, make(a=...), "C")
        registry = Registry()
        registry.register(cls, upgrade=lambda _: {"a": "never"})
        serde = Serde(registry=registry)
        assert serde.loads_typed(serde.dumps_typed(cls(a=1))).a == 1

    def test_a_renamed_class_is_found_by_its_alias(self, make: Callable[..., Any], module: ModuleType) -> None:
        stored = Serde().dumps_typed(put_into(module, make(a=...), "Old")(a=1))
        del module.Old
        with pytest.raises(ForbiddenTypeError, match=r'register\(TheClass, aliases=\["changing:Old"\]\)'):
            Serde().loads_typed(stored)
        registry = Registry()
        registry.register(put_into(module, make(a=...), "New"), aliases=["changing:Old"])
        assert Serde(registry=registry).loads_typed(stored) == module.New(a=1)

    def test_a_class_defined_again_replaces_the_first(self, make: Callable[..., Any], module: ModuleType) -> None:
        """As when a notebook's cell runs twice."""
        serde = Serde()
        first = put_into(module, make(a=...), "C")
        stored = serde.dumps_typed(first(a=1))
        assert type(serde.loads_typed(stored)) is first
        second = put_into(module, make(a=...), "C")
        assert type(serde.loads_typed(stored)) is second
        assert serde.dumps_typed(second(a=1)) == stored
        with pytest.raises(SerializationError, match="not found under its own name"):
            serde.dumps_typed(first(a=1))

    def test_what_is_remembered_of_a_class_ends_with_its_name(
        self, make: Callable[..., Any], module: ModuleType
    ) -> None:
        serde = Serde()
        value = put_into(module, make(a=...), "C")(a=1)
        stored = serde.dumps_typed(value)
        assert serde.loads_typed(stored) == value
        del module.C
        with pytest.raises(ForbiddenTypeError, match="there is no such class now"):
            serde.loads_typed(stored)
        with pytest.raises(SerializationError, match="not found under its own name"):
            serde.dumps_typed(value)

    def test_what_is_registered_later_counts(self, make: Callable[..., Any], module: ModuleType) -> None:
        registry = Registry()
        serde = Serde(registry=registry)
        value = put_into(module, make(a=...), "C")(a=1)
        stored = serde.dumps_typed(value)
        assert serde.loads_typed(stored) == value
        registry.register(module.C, "by another name", aliases=["changing:C"])
        assert b"by another name" in serde.dumps_typed(value)[1]
        assert serde.loads_typed(serde.dumps_typed(value)) == serde.loads_typed(stored) == value


@pytest.mark.parametrize("make", [a_dataclass, a_model])
def test_an_attribute_that_became_a_field_keeps_its_value(module: ModuleType, make: Callable[..., Any]) -> None:
    old = put_into(module, make(a=1), "C")(a=2)
    vars(old)["b"] = 3
    tag, encoded = Serde().dumps_typed(old)
    put_into(module, make(a=1, b=7), "C")
    found = Serde().loads_typed((tag, encoded))
    assert (found.a, found.b) == (2, 3)


def test_a_module_that_is_gone_is_noticed() -> None:
    module = ModuleType("changing")
    sys.modules["changing"] = module
    serde = Serde()
    stored = serde.dumps_typed(put_into(module, a_dataclass(a=...), "C")(a=1))
    assert serde.loads_typed(stored) == module.C(a=1)
    del sys.modules["changing"]
    with pytest.raises(ForbiddenTypeError, match="import it before loading"):
        serde.loads_typed(stored)


def test_a_class_that_became_another_kind_is_an_error(module: ModuleType) -> None:
    stored = Serde().dumps_typed(put_into(module, a_dataclass(a=...), "C")(a=1))
    put_into(module, a_model(a=...), "C")
    with pytest.raises(Exception, match="was stored as a dataclass, and it is not one"):
        Serde().loads_typed(stored)


@pytest.mark.parametrize(
    "made",
    [lambda: enum.StrEnum("C", ["a"]), lambda: enum.IntEnum("C", ["a"]), lambda: a_named_tuple(a=..., b=...)],
    ids=["StrEnum", "IntEnum", "NamedTuple"],
)
def test_no_member_or_record_is_made_of_a_builtin_types_content(module: ModuleType, made: Callable[[], Any]) -> None:
    """These are subclasses of builtin types, too, but are never stored as such."""
    base = next(base for base in (str, int, tuple) if issubclass(made(), base))
    stored = Serde().dumps_typed(put_into(module, type("C", (base,), {}), "C")())
    put_into(module, made(), "C")
    with pytest.raises(CorruptDataError, match="was stored as a subclass of a builtin type, and it is not one"):
        Serde().loads_typed(stored)


@pytest.mark.parametrize(
    ("decorate", "describe"),
    [(pydantic.dataclasses.dataclass, pydantic.Field), (pydantic.v1.dataclasses.dataclass, pydantic.v1.Field)],
    ids=["pydantic", "pydantic.v1"],
)
def test_a_new_field_that_pydantic_describes_takes_its_default(
    module: ModuleType, decorate: Callable[..., Any], describe: Callable[..., Any]
) -> None:
    """In the class's own list of fields, the default of such a field is the description itself."""
    stored = [Serde().dumps_typed(put_into(module, a_dataclass(a=...), "C")(a=1)) for _ in range(2)]

    @decorate
    class C:
        a: int
        b: int = describe(default=2)
        c: list[int] = describe(default_factory=list)
        d: int = 4

    now = put_into(module, C, "C")
    one, other = map(Serde().loads_typed, stored)
    assert one == other == now(a=1)
    assert (one.b, one.c, one.d) == (2, [], 4)
    assert one.c is not other.c

    @decorate
    class Demanding:
        a: int
        b: int = describe()

    put_into(module, Demanding, "C")
    with pytest.raises(SerializationError, match="b is new and has no default"):
        Serde().loads_typed(stored[0])


@pytest.mark.parametrize("of", [pydantic, pydantic.v1], ids=["pydantic", "pydantic.v1"])
@pytest.mark.parametrize("before", [(), ("_empty",), ("_empty", "_first")], ids=["none", "an unset one", "a set one"])
def test_a_new_private_attribute_takes_its_default(module: ModuleType, of: Any, before: Sequence[str]) -> None:
    def a_class(private: Iterable[str]) -> Any:
        known = {"_empty": of.PrivateAttr(), "_first": of.PrivateAttr(1), "_made": of.PrivateAttr(default_factory=list)}
        content = {"__annotations__": {"a": int}, "a": 0, "__module__": "changing"}
        return put_into(module, type("C", (of.BaseModel,), content | {name: known[name] for name in private}), "C")

    first = a_class(before)()
    if "_first" in before:
        first._first = 5
    stored = Serde().dumps_typed([first, first])
    now = a_class({**dict.fromkeys(before), "_first": None, "_made": None})
    one, other = Serde().loads_typed(stored)
    assert one == other
    assert type(one) is now
    assert (one.a, one._first, one._made) == (0, 5 if "_first" in before else 1, [])
    assert one._made is not other._made
    assert not hasattr(one, "_empty")


def test_a_renamed_member_of_an_enum_needs_an_upgrade(module: ModuleType) -> None:
    stored = Serde().dumps_typed(put_into(module, enum.Enum("C", {"OLD": 1}), "C").OLD)
    new = put_into(module, enum.Enum("C", {"NEW": 1}), "C")
    with pytest.raises(SerializationError, match="C has no member 'OLD' any more"):
        Serde().loads_typed(stored)
    registry = Registry()
    registry.register(new, upgrade=lambda old: {"name": {"OLD": "NEW"}[old["name"]]})
    assert Serde(registry=registry).loads_typed(stored) is new.NEW


def test_a_member_keeps_its_meaning_when_its_value_changes(module: ModuleType) -> None:
    stored = Serde().dumps_typed(put_into(module, enum.Enum("C", {"A": 1}), "C").A)
    assert Serde().loads_typed(stored) is module.C.A
    changed = put_into(module, enum.Enum("C", {"A": 2}), "C")
    assert Serde().loads_typed(stored) is changed.A


class Handle:
    """Nothing that a family would store."""

    def __init__(self, number: int) -> None:
        self.number = number


class TestRegisteredFunctions:
    def test_store_what_no_family_knows(self) -> None:
        registry = Registry()
        registry.register(Handle, "handle", lambda handle: {"n": (handle.number,)}, lambda state: Handle(*state["n"]))
        serde = Serde(registry=registry)
        first, second = serde.loads_typed(serde.dumps_typed([Handle(1), Handle(2)]))
        assert (first.number, second.number) == (1, 2)

    def test_must_be_there_at_load(self) -> None:
        registry = Registry()
        registry.register(Handle, "handle", lambda handle: handle.number, Handle)
        stored = Serde(registry=registry).dumps_typed(Handle(1))
        with pytest.raises(SerializationError, match="no class is registered as 'handle' now"):
            Serde(registry=Registry()).loads_typed(stored)

    def test_are_found_by_an_alias(self) -> None:
        old, new = Registry(), Registry()
        old.register(Handle, "handle", lambda handle: handle.number, Handle)
        new.register(Handle, "grip", lambda handle: handle.number, Handle, aliases=["handle"])
        assert Serde(registry=new).loads_typed(Serde(registry=old).dumps_typed(Handle(1))).number == 1

    def test_come_in_pairs(self) -> None:
        with pytest.raises(ConfigError, match="both encode and decode, or neither"):
            Registry().register(Handle, "handle", lambda handle: handle.number)

    def test_that_fail_are_an_error_with_a_place(self) -> None:
        registry = Registry()
        registry.register(Handle, "handle", lambda handle: handle.missing, Handle)  # type: ignore[attr-defined]  # fails
        with pytest.raises(SerializationError, match=r"\['a'\]\[0\]: Handle cannot be stored: .*missing"):
            Serde(registry=registry).dumps_typed({"a": [Handle(1)]})
