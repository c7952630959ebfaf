"""Classes of every family that the serializer stores, as users write them; the catalogue has their values."""

import enum
import functools
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pydantic.dataclasses
import pydantic.v1
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    SecretStr,
    computed_field,
    field_validator,
)
from pydantic.v1.generics import GenericModel

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "r"
    GREEN = ("g", 2)
    ALSO_RED = "r"  # noqa: PIE796 - an alias is the point


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


class Planet(enum.Enum):
    EARTH = (5.97, 6.37)

    def __init__(self, mass: float, radius: float) -> None:
        self.mass = mass
        self.radius = radius


class Outer:
    class Kind(enum.Enum):
        """An enum in a class."""

        A = 1

    @dataclass
    class Inner:
        """A dataclass in a class."""

        x: int


@dataclass
class Point:
    x: Any
    y: Any = 0


@dataclass(frozen=True)
class FrozenPoint:
    x: Any


@dataclass(slots=True)
class SlotPoint:
    x: Any
    y: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictPoint:
    x: Any


@dataclass
class Child(Point):
    z: Any = 1


@dataclass
class Counted:
    """Its `__post_init__` must not run again."""

    raw: InitVar[int]
    runs: int = field(init=False, default=0)
    unset: int = field(init=False, repr=False, compare=False)
    total: ClassVar[int] = 0

    def __post_init__(self, raw: int) -> None:
        self.runs += raw


@dataclass
class Generic1(Generic[T]):
    item: T


@dataclass
class PointList(list[Any]):
    """A dataclass that is a list as well."""

    label: str = ""


@dataclass
class Alarm(time):
    """The function that makes a time is written in C, and does not make a plain object."""

    label: str = ""


class Plain(Point):
    """A subclass that was not decorated."""


class Pair(NamedTuple):
    left: Any
    right: Any = 2


class NamedChild(Pair):
    """A named tuple with room for attributes."""


Old = namedtuple("Old", ["a", "b"])  # noqa: PYI024 - the old way of writing it is one to store


@attrs.define
class Attr:
    x: Any
    y: Any = attrs.field(factory=list)


@attrs.frozen(cache_hash=True)
class FrozenAttr:
    x: Any


@attrs.frozen(cache_hash=True, slots=False)
class FrozenDictAttr:
    x: Any


def _converted(value: Any) -> tuple[Any, str]:
    return (value, "converted")


@attrs.define(slots=False)
class DictAttr:
    x: Any = attrs.field(converter=_converted)
    _private: int = 3


class Struct(msgspec.Struct):
    a: Any
    b: Any = 1


class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True, tag="t"):
    a: Any


class Film(TypedDict, total=False):
    name: str


class Model(BaseModel):
    x: Any = None
    y: Any = 5


class SubModel(Model):
    z: int = 1


class Holder(BaseModel):
    base: Model
    anything: Any = None


class Hidden(BaseModel):
    secret: int = Field(default=1, exclude=True)
    named: int = Field(default=2, alias="theName")
    _private: list[int] = PrivateAttr(default_factory=lambda: [1])


class SlottedModel(BaseModel):
    __slots__ = ("note",)
    x: Any = None


@dataclass
class Hiding:
    """The content of its instances cannot be seen."""

    x: Any

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # it must be refused
        return {"x": "another"}


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    x: int = 0


class Root(RootModel[list[int]]):
    pass


@dataclass(slots=True)
class Retries:
    retries: int = 1


@dataclass
class MoreRetries(Retries):
    """Its class attribute hides its base's slot."""

    retries: int = 3


class Standing(Retries):
    """Its property stands for the slot that it hides."""

    @property
    def retries(self) -> int:
        return 2 * int(Retries.__dict__["retries"].__get__(self))

    @retries.setter
    def retries(self, count: int) -> None:
        Retries.__dict__["retries"].__set__(self, count)


class OpenDict(dict[str, Any]):
    """The well-known dictionary whose keys are its attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(items)
        self.__dict__ = self


class Box(BaseModel, Generic[T]):
    item: T


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True)
    x: Any


class Computed(BaseModel):
    x: int

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own documentation stacks them so
    @property
    def double(self) -> int:
        return self.x * 2

    @functools.cached_property
    def lazy(self) -> int:
        return self.x * 3


class Growing(BaseModel):
    """Its validator is not idempotent."""

    x: int

    @field_validator("x")
    @classmethod
    def grow(cls, value: int) -> int:
        return value + 1


class Secretive(BaseModel):
    key: SecretStr


class Meeting(BaseModel):
    when: datetime
    daily: time


@pydantic.dataclasses.dataclass
class PydanticPoint:
    x: int
    y: list[int] = Field(default_factory=list)


class First(pydantic.v1.BaseModel):
    x: int
    y: Any = None
    _private: int = pydantic.v1.PrivateAttr(4)


class FirstBox(GenericModel, Generic[T]):
    item: T


class NumberBox(FirstBox[int]):
    pass


class Text(str):
    __slots__ = ("note",)


class Number(int):
    pass


class Ratio(float):
    pass


class Data(bytes):
    pass


class Buffer(bytearray):
    pass


class Many(list[Any]):
    """Its append must not be called."""

    def append(self, item: Any) -> None:
        raise AssertionError(item)

    def extend(self, items: Any) -> None:
        raise AssertionError(items)


class Row(tuple[Any, ...]):
    __slots__ = ()


class Bag(set[Any]):
    pass


class FrozenBag(frozenset[Any]):
    pass


class Registers(dict[Any, Any]):
    def __setitem__(self, key: Any, item: Any) -> None:
        raise AssertionError(key)


class Ordered(OrderedDict[Any, Any]):
    pass


class Tally(Counter[Any]):
    pass


class Defaults(defaultdict[Any, Any]):
    pass


class Queue(deque[Any]):
    pass


class Moment(datetime):
    pass


class Day(date):
    pass


class Span(timedelta):
    pass


class Money(Decimal):
    pass


class TroubleError(Exception):
    """Its `__init__` takes arguments that `args` does not have."""

    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.hint = hint


class MissingKeyError(KeyError):
    pass


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


@attrs.frozen
class FrozenAttrError(Exception):
    code: int


class LateError(ValueError, TimeoutError):
    """Its objects are made by the second builtin."""


class Group(ExceptionGroup[Exception]):
    pass


class ExitGroup(ExceptionGroup[Exception]):
    """As Python's documentation of groups makes one that knows more."""

    exit_code: int

    def __new__(cls, errors: list[Exception], exit_code: int) -> Self:
        self = super().__new__(cls, f"exit code: {exit_code}", errors)
        self.exit_code = exit_code
        return self

    def derive(self, excs: Any) -> "ExitGroup":  # type: ignore[override]  # as the documentation does
        return ExitGroup(excs, self.exit_code)


class MergedGroup(BaseExceptionGroup[BaseException]):
    """Its exceptions are in none of its arguments."""

    def __new__(cls, *errors: BaseException) -> Self:
        return super().__new__(cls, "merged", errors)


def attach(value: Any, **attributes: Any) -> Any:
    """The value, with attributes."""
    for name, item in attributes.items():
        object.__setattr__(value, name, item)
    return value


def raised(error: BaseException, cause: BaseException) -> BaseException:
    """The error as if it had been raised from a cause, while handling the cause."""
    error.__cause__ = error.__context__ = cause
    return error


def handled(error: BaseException, other: BaseException) -> BaseException:
    """The error as if it had been raised while handling another."""
    error.__context__ = other
    return error


def unbuildable() -> Exception:
    """An exception whose class alone can make its instances."""
    try:
        Secretive.model_validate({})
    except pydantic.ValidationError as error:
        return error
    raise AssertionError


def noted(error: BaseException, note: str) -> BaseException:
    """The error with a note."""
    error.add_note(note)
    return error
