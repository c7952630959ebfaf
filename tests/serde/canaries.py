"""Classes of every family whose methods note that they ran, for data that names them or holds their instances.

`RAN` has the methods that ran since it was cleared; making the classes and the instances runs many, so only those
after `clear` count. The methods that dictionaries and sets must call, `__hash__` and
`__eq__`, are not noted: no set can be made again without them.
"""

import enum
import sys
import types
from collections import Counter, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeVar

import attrs
import msgspec
import pydantic
import pydantic.v1

RAN: list[str] = []

_ASKED = """__bool__ __len__ __iter__ __next__ __contains__ __getitem__ __setitem__ __delitem__ __missing__ __index__
    __int__ __float__ __complex__ __bytes__ __str__ __repr__ __format__ __call__ __lt__ __le__ __gt__ __ge__ __add__
    __radd__ __mul__ __rmul__ __sub__ __neg__ __or__ __ror__ __round__ __fspath__ __buffer__ __array__
    __array_interface__ __array_struct__ __array_ufunc__ __array_function__ __copy__ __deepcopy__ __reduce__
    __reduce_ex__ __getnewargs__ __getnewargs_ex__ __getstate__ __setstate__ __length_hint__ __reversed__ __enter__
    __exit__ __dir__ __sizeof__ __instancecheck__ __subclasscheck__ __set_name__ __get__ __set__ keys values items get
    update append extend add insert pop copy utcoffset tzname dst fromutc
"""
_MADE = """__init__ __post_init__ __attrs_post_init__ __attrs_pre_init__ __setattr__ __getattr__ __getattribute__
    __delattr__ model_post_init"""
_OF_CLASSES = """__class_getitem__ __init_subclass__ __pydantic_init_subclass__ __get_pydantic_core_schema__
    __get_validators__ __subclasshook__ _missing_ validate model_validate construct parse_obj"""
_ATTRIBUTES = """__class__ args __cause__ __context__ __suppress_context__ __notes__ errno start end
    characters_written message exceptions name value key x maxlen tz freq dtype shape"""


def _noting(name: str) -> Callable[..., Any]:
    def hook(*_: Any, **__: Any) -> Any:
        RAN.append(name)
        if name == "__subclasshook__":  # which pydantic asks of all its models, whosever class it is curious about
            return NotImplemented
        raise RuntimeError(name)

    return hook


def hooks(*without: str) -> dict[str, Any]:
    """A namespace with every hook but these."""
    found: dict[str, Any] = {name: _noting(name) for name in (_ASKED + _MADE).split()}
    found |= {name: classmethod(_noting(name)) for name in _OF_CLASSES.split()}
    found |= {name: property(_noting(name), _noting(f"{name} =")) for name in _ATTRIBUTES.split()}
    found["__new__"] = _noting("__new__")
    return {name: hook for name, hook in found.items() if name not in without}


def _made(name: str, bases: tuple[Any, ...], *without: str, **namespace: Any) -> Any:
    """A class with all hooks, of this module."""
    own = {**namespace, "__module__": __name__, "__qualname__": name}
    cls = types.new_class(name, bases, {}, lambda there: there.update(own))
    for hook, value in hooks(*without).items():
        if hook not in namespace:
            try:
                type.__setattr__(cls, hook, value)
            except (TypeError, AttributeError):
                continue
    return cls


class Noting(type):
    """A metaclass that notes that it was asked, whatever it is asked."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        return _noting("metaclass __call__")()

    def __getattr__(cls, name: str) -> Any:
        if not name.startswith("__abstract"):
            RAN.append(f"metaclass __getattr__ {name}")
        raise AttributeError(name)

    def __instancecheck__(cls, instance: object) -> bool:
        RAN.append("metaclass __instancecheck__")
        return False

    def __subclasscheck__(cls, subclass: type) -> bool:
        RAN.append("metaclass __subclasscheck__")
        return False

    def __iter__(cls) -> Any:
        return _noting("metaclass __iter__")()

    def __or__(cls, other: Any) -> Any:
        return _noting("metaclass __or__")()


class Loud(type):
    """A metaclass that runs whenever a class is looked at."""

    def __getattribute__(cls, name: str) -> Any:
        RAN.append(f"metaclass __getattribute__ {name}")
        return super().__getattribute__(name)

    def __hash__(cls) -> int:
        RAN.append("metaclass __hash__")
        return 1

    def __eq__(cls, other: object) -> bool:
        RAN.append("metaclass __eq__")
        return cls is other


@dataclass
class _Plain:
    x: Any = None


@dataclass
class WithDel:
    x: Any = None

    def __del__(self) -> None:
        RAN.append("__del__")


@dataclass
class LoudRecord(metaclass=Loud):
    x: Any = None


@dataclass
class NotedRecord(metaclass=Noting):
    x: Any = None


Record = _made("Record", (_Plain,))


@dataclass(slots=True)
class _Slotted:
    x: Any = None


Slotted = _made("Slotted", (_Slotted,), __slots__=())


@attrs.define(slots=False)
class _Attrs:
    x: Any = None


AttrsRecord = _made("AttrsRecord", (_Attrs,))


class Posted(msgspec.Struct):
    x: Any = None

    def __post_init__(self) -> None:
        RAN.append("__post_init__")

    def __setattr__(self, name: str, value: Any) -> None:
        RAN.append("__setattr__")


class NotedStructs(type(msgspec.Struct)):  # type: ignore[misc]  # the metaclass has no name in public
    def __call__(cls, *_: Any, **__: Any) -> Any:
        return _noting("metaclass __call__")()


class NotedStruct(msgspec.Struct, metaclass=NotedStructs):
    x: Any = None


class TextAnnotated(msgspec.Struct):
    x: "RAN.append('annotation') or int" = 0  # type: ignore[valid-type]  # it is code, which is the point


class _Model(pydantic.BaseModel):
    x: Any = None


Model = _made("Model", (_Model,), "__class__", "__get__", "__set__", "__set_name__", "__init_subclass__")
T = TypeVar("T")


class Generic1(pydantic.BaseModel, Generic[T]):
    item: T

    @classmethod
    def __class_getitem__(cls, item: Any) -> Any:
        RAN.append("__class_getitem__")
        return super().__class_getitem__(item)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        RAN.append("__init_subclass__")

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        RAN.append("__pydantic_init_subclass__")


class Schemed:
    """An argument of a generic model."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return _noting("__get_pydantic_core_schema__")()


class PlainBox(pydantic.BaseModel, Generic[T]):
    item: T


class _First(pydantic.v1.BaseModel):
    x: Any = None


First = _made("First", (_First,), "__init_subclass__", "__class_getitem__", "__fields_set__")


class _Pair(NamedTuple):
    x: Any


Pair = _made("Pair", (_Pair,))


class Members(enum.EnumMeta):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        RAN.append("metaclass __call__")
        return super().__call__(*args, **kwargs)

    def __getitem__(cls, name: str) -> Any:
        return _noting("metaclass __getitem__")()


class Choice(enum.Enum, metaclass=Members):
    A = 1

    @classmethod
    def _missing_(cls, _: object) -> Any:
        RAN.append("_missing_")
        return None


class Flags(enum.Flag, metaclass=Members):
    A = 1
    B = 2

    @classmethod
    def _missing_(cls, value: object) -> Any:
        RAN.append("_missing_")
        return super()._missing_(value)


class SetFlags(enum.Flag):
    A = 1
    B = 2

    def __setattr__(self, name: str, value: Any) -> None:
        RAN.append("__setattr__")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        RAN.append("__getattr__")
        raise AttributeError(name)


class _Number(int):
    def __new__(cls, value: Any) -> Any:
        RAN.append("__new__")
        return super().__new__(cls, value)


class NumberFlags(_Number, enum.Flag):  # type: ignore[misc]  # as IntFlag does it, which mypy knows by name
    A = 1
    B = 2


# A check whether anything is a mapping calls that hook of all classes derived from Mapping.
BUILTINS: dict[str, Any] = {
    base.__name__: _made(f"My_{base.__name__}", (base,), *(["__subclasshook__"] if base is UserDict else []))
    for base in (
        *(str, int, float, complex, bytes, bytearray, tuple, list, set, frozenset, dict, deque, OrderedDict, Counter),
        *(defaultdict, datetime, date, timedelta, Decimal, tzinfo, UserDict, object),
    )
}
ERRORS: dict[str, Any] = {
    base.__name__: _made(f"My_{base.__name__}", (base,), "with_traceback")
    for base in (Exception, OSError, BlockingIOError, UnicodeDecodeError, SyntaxError, ImportError, StopIteration)
}
ERRORS["group"] = _made("My_group", (ExceptionGroup,), "with_traceback")
vars(sys.modules[__name__]).update({cls.__name__: cls for cls in (*BUILTINS.values(), *ERRORS.values())})

CLASSES: tuple[Any, ...] = (
    *(Record, Slotted, AttrsRecord, Posted, NotedStruct, TextAnnotated, Model, Generic1, First, Pair),
    *(Choice, Flags, SetFlags, NumberFlags, WithDel, LoudRecord, NotedRecord),
    *BUILTINS.values(),
    *ERRORS.values(),
)
RAN.clear()
