"""Makes hierarchies of classes at random, with instances that have something in every place an instance can have.

Slots, dictionaries, class attributes and descriptors that hide them, mangled names, several bases: most of it is code
that no one would write on purpose, and all of it is valid Python. `differences` compares place by place, without the
serializer's own ideas of where attributes are.
"""

import builtins
import dataclasses
import datetime as dt
import enum
import functools
import random
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pydantic.dataclasses

MODULE = types.ModuleType("serde_made")
sys.modules[MODULE.__name__] = MODULE

NAMES = ("a", "b", "c", "_p", "__x")
CONTENTS: dict[type, tuple[Any, ...]] = {
    str: ("t",),
    int: (5,),
    float: (-0.0,),
    complex: (complex(1, -0.0),),
    bytes: (b"t",),
    bytearray: (b"t",),
    tuple: ((1, "x"),),
    list: ([1, "x"],),
    set: ({1, "x"},),
    frozenset: ({1, "x"},),
    dict: ({"b": 1, "a": 2},),
    OrderedDict: ({"b": 1, "a": 2},),
    Counter: ({"b": 1},),
    defaultdict: (int, {"b": 1}),
    deque: ([1, 2], 3),
    dt.datetime: (2026, 1, 2, 3, 4, 5, 6, dt.UTC),
    dt.date: (2026, 1, 2),
    dt.timedelta: (1, 2, 3),
    Decimal: ("-0.10",),
}
ERRORS: dict[type[BaseException], tuple[Any, ...]] = {
    Exception: ("m", 1),
    ValueError: (),
    KeyError: ("k",),
    OSError: (2, "no such file", "name", None, "other"),
    BlockingIOError: (11, "busy", 7),
    StopIteration: (3,),
    SystemExit: (4,),
    ImportError: ("m",),
    SyntaxError: ("bad", ("file", 1, 2, "text", 1, 3)),
    AttributeError: ("m",),
    NameError: ("m",),
    UnicodeDecodeError: ("utf-8", b"\xff", 0, 1, "bad"),
    UnicodeEncodeError: ("ascii", "é", 0, 1, "bad"),
    ExceptionGroup: ("g", [ValueError(1)]),
}


class Maker:
    """Everything that one seed gives."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._number = 0

    def values(self) -> Iterator[Any]:
        """Instances of ever new classes."""
        kinds = [self._plain, self._plain, self._builtin, self._error, self._model, self._struct, self._enum]
        while True:
            try:
                yield from self._rng.choice(kinds)()
            except (TypeError, ValueError, AttributeError):
                # Not every hierarchy that can be thought of is one for Python.
                continue

    def _statement(self, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        self._number += 1
        name = f"C{self._number % 1000}"
        namespace = {"__module__": MODULE.__name__, "__qualname__": name, **namespace}
        # As the compiler would, from the name of the class that the statement makes.
        mangled = {_mangled(name, key): item for key, item in namespace.items()}
        return types.new_class(name, bases, options, lambda space: space.update(mangled))

    def _found(self, cls: Any) -> Any:
        setattr(MODULE, cls.__qualname__, cls)
        return cls

    def _some(self, *, most: int = 3) -> list[str]:
        return self._rng.sample(NAMES, self._rng.randrange(most + 1))

    def _item(self) -> Any:
        return self._rng.choice([1, "x", None, True, 2.5, [1], {"k": (1, 2)}, b"y"])

    def _slots(self) -> dict[str, Any]:
        names: list[str] = self._some() + self._rng.choice([[], [], ["__dict__"], ["__weakref__"]])
        shapes: list[Any] = [names, tuple(names), dict.fromkeys(names, "said"), iter(names)]
        shapes += names[:1]
        return self._rng.choice([{}, {"__slots__": self._rng.choice(shapes)}])

    def _shadows(self) -> dict[str, Any]:
        return {name: self._rng.choice(SHADOWS)(name) for name in self._some(most=2)}

    def _level(self, bases: tuple[type, ...], style: int) -> Any:
        """One more class, undecorated (0, 1) or made a record by one of the packages (2, 3)."""
        if style == 0:
            slots = self._slots()
            return self._statement(bases, slots | {k: v for k, v in self._shadows().items() if k not in repr(slots)})
        if style == 1:
            return self._statement(bases, self._shadows())
        fields = self._some()
        namespace: dict[str, Any] = {"__annotations__": dict.fromkeys(fields, Any)}
        namespace |= {name: self._item_hashable() for name in fields if self._rng.random() < 0.6}
        frozen, slots_too = self._rng.random() < 0.2, self._rng.random() < 0.6
        if style == 2:
            given = {"frozen": frozen, "slots": slots_too, "kw_only": True}
            if slots_too:
                given["weakref_slot"] = self._rng.random() < 0.2
            make: Any = self._rng.choice([dataclasses.dataclass, dataclasses.dataclass, pydantic.dataclasses.dataclass])
            made = self._statement(bases, namespace)
            return make(made, **given)
        made = self._statement(bases, namespace)
        return attrs.define(made, frozen=frozen, slots=slots_too, kw_only=True, cache_hash=False)

    def _item_hashable(self) -> Any:
        return self._rng.choice([1, "x", None, 2.5])

    def _line(self, base: type) -> Any:
        """A class some levels below a base, the last of them findable."""
        cls: Any = base
        styles = [self._rng.randrange(4) for _ in range(self._rng.randrange(1, 4))]
        if base is object:
            # Else the serializer stores none of it.
            styles.insert(self._rng.randrange(2), self._rng.choice([2, 3]))
        for style in styles:
            bases = [cls]
            if self._rng.random() < 0.3:
                other = self._statement((), self._rng.choice([{}, {"__slots__": ()}, self._shadows()]))
                bases.insert(self._rng.randrange(2), other)
            cls = self._level(tuple(bases), style)
        return self._found(cls)

    def _filled(self, value: Any) -> Any:
        """The value, after something was put into some of its places: by name, by slot, or by dictionary."""
        for name in self._some():
            try:
                setattr(value, name, self._item())
            except Exception:  # noqa: BLE001, S112 - frozen, a property without a setter, no room
                continue
        for owner, _, slot in slots_of(type(value)):
            if owner.__module__ == MODULE.__name__ and self._rng.random() < 0.3:
                slot.__set__(value, self._item())
        dictionary = dictionary_of(value)
        if dictionary is not None:
            for name in self._some(most=2):
                dictionary[_mangled(self._rng.choice(type(value).__mro__).__name__, name)] = self._item()
        return value

    def _some_of(self, make: Callable[[], Any]) -> Iterator[Any]:
        yield self._filled(make())
        yield self._filled(make())

    def _plain(self) -> Iterator[Any]:
        cls = self._line(object)
        yield from self._some_of(lambda: object.__new__(cls))
        yield cls()

    def _builtin(self) -> Iterator[Any]:
        base, content = self._rng.choice(list(CONTENTS.items()))
        if base is tuple and self._rng.random() < 0.5:
            base, content = self._found(_named_tuple()), (1, "x")
        cls = self._line(base)
        yield from self._some_of(lambda: _made(cls, base, content))

    def _error(self) -> Iterator[Any]:
        base, args = self._rng.choice(list(ERRORS.items()))
        cls = self._line(base)

        def make() -> BaseException:
            error: BaseException = base.__new__(cls, *args)
            if self._rng.random() < 0.7 or issubclass(base, UnicodeError):
                base.__init__(error, *args)
            for owner, name, member in members_of(base):
                # The interpreter itself reads those of Unicode errors unchecked, and may crash.
                if self._rng.random() < 0.15 and (owner, name) != _OBJ and not issubclass(owner, UnicodeError):
                    _set_if_can(member, error, self._rng.choice([None, "x", 3]))
            if self._rng.random() < 0.3:
                error.add_note("n")
            if self._rng.random() < 0.3:
                error.__cause__ = KeyError("cause")
            return error

        yield from self._some_of(make)

    def _model(self) -> Iterator[Any]:
        config = pydantic.ConfigDict(extra=self._rng.choice(["allow", "ignore"]))
        cls: Any = pydantic.BaseModel
        for _ in range(self._rng.randrange(1, 3)):
            fields = ["a", "b", *self._rng.sample(["c", "d"], 1)]
            namespace: dict[str, Any] = {"__annotations__": dict.fromkeys(fields, Any), "model_config": config}
            namespace |= {name: self._item_hashable() for name in fields}
            namespace |= self._rng.choice(
                [{}, {"_p": pydantic.PrivateAttr(7)}, {"lazy": functools.cached_property(len)}]
            )
            mixin = self._statement((), self._rng.choice([{}, self._slots()]))
            cls = self._statement((cls, mixin) if self._rng.random() < 0.3 else (cls,), namespace)
        self._found(cls)
        yield from self._some_of(lambda: cls(a=self._item(), more=1))
        yield from self._some_of(lambda: cls.model_construct(a=self._item()))

    def _struct(self) -> Iterator[Any]:
        options = {"weakref": self._rng.random() < 0.3, "frozen": self._rng.random() < 0.2}
        cls: Any = msgspec.Struct
        for _ in range(self._rng.randrange(1, 4)):
            fields = self._rng.sample(["a", "b", "c"], self._rng.randrange(3))
            namespace: dict[str, Any] = {"__annotations__": dict.fromkeys(fields, Any)}
            namespace |= {name: self._item_hashable() for name in fields}
            hidden = {key: item for key, item in self._shadows().items() if key not in (*fields, "__x")}
            cls = self._statement((cls,), namespace | hidden, **options)
        self._found(cls)
        names = cls.__struct_fields__
        yield cls(**{name: self._item() for name in names if self._rng.random() < 0.7})
        yield cls()

    def _enum(self) -> Iterator[Any]:
        base = self._rng.choice([enum.Enum, enum.IntEnum, enum.StrEnum, enum.Flag, enum.IntFlag])
        self._number += 1
        name = f"E{self._number % 1000}"
        text = base is enum.StrEnum
        cls: Any = base(name, [("A", "p" if text else 1), ("B", "q" if text else 2), ("C", "p" if text else 1)])
        cls.__module__, cls.__qualname__ = MODULE.__name__, name
        self._found(cls)
        yield cls.B
        yield cls.C
        if issubclass(cls, enum.Flag):
            yield cls.A | cls.B
            yield cls(0)
            yield object.__new__(cls) if base is enum.Flag else ~cls.A


def _named_tuple() -> Any:
    class Made(NamedTuple):
        left: Any
        right: Any = 2

    Made.__module__, Made.__qualname__ = MODULE.__name__, "Made"
    return Made


def _made(cls: Any, base: Any, content: tuple[Any, ...]) -> Any:
    if base in CONTENTS and base.__new__ in (list.__new__, dict.__new__, set.__new__, bytearray.__new__, deque.__new__):
        value = base.__new__(cls)
        base.__init__(value, *content)
        return value
    return tuple.__new__(cls, content) if issubclass(base, tuple) and base is not tuple else base.__new__(cls, *content)


def _mangled(cls: str, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{cls.lstrip('_')}{name}" if private else name


class Elsewhere:
    """A descriptor that keeps its value under another name."""

    def __init__(self, name: str) -> None:
        self._name = f"{name}_elsewhere"

    def __get__(self, value: Any, owner: type) -> Any:
        return self if value is None else vars(value).get(self._name, "nothing")

    def __set__(self, value: Any, item: Any) -> None:
        vars(value)[self._name] = item


def _of_the_base(name: str) -> Any:
    """A property that stands for a base's attribute of its name."""

    def member(value: Any) -> Any:
        found = [slot for _, slot_name, slot in slots_of(type(value)) if slot_name == name]
        if not found:
            raise AttributeError(name)
        return found[0]

    return property(lambda value: member(value).__get__(value), lambda value, item: member(value).__set__(value, item))


SHADOWS: list[Callable[[str], Any]] = [
    lambda _: 7,
    lambda _: None,
    lambda _: property(lambda _: "shown"),
    lambda name: property(lambda value: vars(value)[name], lambda value, item: vars(value).update({name: item})),
    lambda _: staticmethod(len),
    lambda _: functools.cached_property(id),
    Elsewhere,
    _of_the_base,
]


def slots_of(cls: type) -> Iterator[tuple[type, str, Any]]:
    """Every slot of a class statement's that an instance has, hidden or not."""
    for owner in cls.__mro__:
        for name, member in vars(owner).items():
            if isinstance(member, types.MemberDescriptorType) and "__slots__" in vars(owner):
                yield owner, name, member


def members_of(cls: type) -> Iterator[tuple[type, str, Any]]:
    """The content of types made in C, other than by the sequences and mappings that they are."""
    for owner in cls.__mro__:
        for name, member in vars(owner).items():
            in_c = isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType)
            if in_c and "__slots__" not in vars(owner) and name not in ("__dict__", "__weakref__", "__traceback__"):
                yield owner, name, member


def dictionary_of(value: Any) -> dict[str, Any] | None:
    """The instance's dictionary, whatever its class says of it."""
    for owner in type(value).__mro__:
        found = vars(owner).get("__dict__")
        if isinstance(found, types.GetSetDescriptorType):
            dictionary: dict[str, Any] = found.__get__(value)
            return dictionary
    return None


def differences(one: Any, other: Any) -> list[str]:
    """The places in which two values are not the same."""
    if type(one) is not type(other):
        return ["type"]
    if isinstance(one, enum.Enum):
        return [] if one is other else ["member"]
    found = [] if _same(_content(one), _content(other)) else ["content"]
    ours, theirs = dictionary_of(one), dictionary_of(other)
    if not (_same(ours, theirs) and list(ours or ()) == list(theirs or ())):
        found.append(f"__dict__: {ours} {theirs}")
    for owner, name, slot in slots_of(type(one)):
        if not _same(_get(slot, one), _get(slot, other)):
            found.append(f"{owner.__qualname__}.{name}: {_get(slot, one)} {_get(slot, other)}")
    if isinstance(one, BaseException):
        names = [(name, member) for owner, name, member in members_of(type(one)) if (owner, name) != _OBJ]
        found += [name for name, member in names if not _same(_get(member, one), _get(member, other))]
        if _text(one) != _text(other):
            found.append("text")
    return found


_OBJ = (AttributeError, "obj")


def _content(value: Any) -> Any:
    """The content of the builtin behind the value, taken out by the builtin's own means."""
    base = next((owner for owner in type(value).__mro__ if owner in CONTENTS), None)
    if base is None or isinstance(value, BaseException):
        return None
    members = [_get(member, value) for _, _, member in members_of(base)] if base in _WITH_MEMBERS else []
    return repr((_INSIDE[base](value) if base in _INSIDE else None, members))


_WITH_MEMBERS = (complex, defaultdict, deque, dt.datetime, dt.date, dt.timedelta)


_INSIDE: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__repr__,
    complex: complex.__repr__,
    bytes: lambda value: list(bytes.__iter__(value)),
    bytearray: lambda value: list(bytearray.__iter__(value)),
    tuple: lambda value: list(tuple.__iter__(value)),
    list: lambda value: list(list.__iter__(value)),
    set: lambda value: sorted(map(repr, set.__iter__(value))),
    frozenset: lambda value: sorted(map(repr, frozenset.__iter__(value))),
    dict: lambda value: list(dict.items(value)),
    OrderedDict: lambda value: list(OrderedDict.items(value)),
    Counter: lambda value: list(dict.items(value)),
    defaultdict: lambda value: list(dict.items(value)),
    deque: lambda value: list(deque.__iter__(value)),
    Decimal: Decimal.as_tuple,
}


def _get(member: Any, value: Any) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:
        return "nothing is set"


def _set_if_can(member: Any, value: Any, item: Any) -> None:
    try:
        member.__set__(value, item)
    except (TypeError, AttributeError, ValueError):
        return


def _text(error: BaseException) -> str:
    base = next(owner for owner in type(error).__mro__ if vars(builtins).get(owner.__name__) is owner)
    return str(base.__str__(error))


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, BaseException):
        return not differences(one, other)
    if type(one) is dict:
        return one.keys() == other.keys() and all(_same(item, other[key]) for key, item in one.items())
    if type(one) in (list, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - only a NaN differs from itself
