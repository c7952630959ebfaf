"""The attributes in a value's slots and dictionary come back into the same places, whatever hides them."""

import collections
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import attrs
import msgspec
import pytest
from pydantic import BaseModel

from serde.hierarchies import Maker, differences
from serde.test_exact import round_trip
from threadmark.errors import SerializationError
from threadmark.serde import Serde


@dataclass(slots=True)
class Retries:
    retries: int = 1


@dataclass
class MoreRetries(Retries):
    """Its class attribute hides the slot, so that its instances have theirs in the dictionary."""

    retries: int = 3


class Standing(Retries):
    """A property that stands for the slot behind it, as one that checks new values would."""

    @property
    def retries(self) -> int:
        return Retries.__dict__["retries"].__get__(self)  # type: ignore[no-any-return]  # a descriptor knows no type

    @retries.setter
    def retries(self, count: int) -> None:
        Retries.__dict__["retries"].__set__(self, count)


class Again(Retries):
    """The same slot once more."""

    __slots__ = ("retries",)


@dataclass
class Mangled(Retries):
    __secret: int = 5


class MangledAgain(Mangled):
    __slots__ = ("__secret",)

    def __init__(self, secret: int) -> None:
        super().__init__()
        self.__secret = secret


class SlottedError(Exception):
    __slots__ = ("code",)


class ShadowedError(SlottedError):
    code = 7


@attrs.define
class Slotted:
    x: Any = 1


@attrs.define(slots=False)
class Unslotted(Slotted):
    x: Any = 3


class Record(msgspec.Struct):
    a: Any = 1


class FixedRecord(Record):
    a = 3


class ShownRecord(Record):
    @property  # type: ignore[misc]  # the very mistake
    def a(self) -> str:
        return "shown"


@dataclass
class Guarded:
    """It answers itself when it is asked for its dictionary."""

    x: Any = 0

    def __getattribute__(self, name: str) -> Any:
        return {"x": "another"} if name == "__dict__" else super().__getattribute__(name)


class GuardedModel(BaseModel):
    x: Any = 0

    def __getattribute__(self, name: str) -> Any:
        return {"x": "another"} if name == "__dict__" else super().__getattribute__(name)


class OwnMoment(datetime):
    year = month = fold = tzinfo = 7  # type: ignore[assignment]  # that is the point


class OwnQueue(deque[Any]):
    maxlen = 7


class OwnDefaults(defaultdict[Any, Any]):
    """It looks as if it had a factory."""

    default_factory = list


class OwnNumber(complex):
    real = 5.0


HIDDEN: dict[str, Callable[[], Any]] = {
    "a dataclass's field over a slot": lambda: MoreRetries(9),
    "a dataclass's field over a slot, as it is by default": MoreRetries,
    "a property over a slot": lambda: Standing(9),
    "a slot over a slot": lambda: Again(9),
    "mangled names": lambda: Mangled(1, 2),
    "mangled names of two classes": lambda: MangledAgain(4),
    "an exception's class attribute over a slot": lambda: with_attribute(ShadowedError("m"), "code", 9),
    "an attrs class over a slotted one": lambda: Unslotted(9),
    "a Struct's class attribute over a field": lambda: FixedRecord(9),
    "a Struct's property over a field": lambda: ShownRecord(9),
    "__getattribute__ of a dataclass": lambda: Guarded(9),
    "__getattribute__ of a model": lambda: GuardedModel(x=9),
    "a datetime's own names": lambda: OwnMoment(2026, 1, 2),
    "a deque's own names": lambda: OwnQueue([1], 3),
    "a defaultdict's own names": OwnDefaults,
    "a defaultdict's own names, with a factory": lambda: OwnDefaults(int, {"a": 1}),
    "a complex number's own names": lambda: OwnNumber(1, -0.0),
}


def with_attribute(value: Any, name: str, item: Any) -> Any:
    setattr(value, name, item)
    return value


@pytest.mark.parametrize("case", HIDDEN)
def test_what_a_name_hides_comes_back_where_it_was(case: str) -> None:
    value = HIDDEN[case]()
    assert differences(value, round_trip(value)) == []


def in_both_places() -> Any:
    value = MoreRetries(9)
    Retries.__dict__["retries"].__set__(value, 4)
    return value


def behind_the_slot() -> Any:
    value = Mangled(1)
    vars(value)["retries"] = 4
    return value


def with_another_dictionary() -> Any:
    value = Mangled(1)
    value.__dict__ = Counter({"x": 1})
    return value


class OpenDict(dict[str, Any]):
    """The well-known dictionary whose keys are its attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(items)
        self.__dict__ = self


class Stripped:
    __slots__ = ("hidden",)


@dataclass
class Checked(Stripped):
    """Its base's descriptor was replaced by one that checks, as some decorators do."""

    x: int = 1


_MEMBER = Stripped.__dict__["hidden"]
type.__setattr__(Stripped, "hidden", property(_MEMBER.__get__, _MEMBER.__set__))


class TwoOfOneName(tuple[Any, ...]):
    __slots__ = ()
    _fields = ("a", "a")
    _field_defaults: dict[str, Any] = {}  # noqa: RUF012 - as namedtuple has it


class OwnExtra(BaseModel):
    x: int = 0


def with_odd_extra() -> Any:
    model = OwnExtra()
    object.__setattr__(model, "__pydantic_extra__", collections.OrderedDict(more=1))
    return model


AMBIGUOUS: dict[str, tuple[Callable[[], Any], str]] = {
    "a slot and an entry of one name": (in_both_places, "two attributes named 'retries'"),
    "an entry behind a slot": (behind_the_slot, "two attributes named 'retries'"),
    "another dictionary": (with_another_dictionary, "whose __dict__ is a Counter"),
    "a dictionary that is its own": (lambda: OpenDict(a=1), "whose __dict__ is a OpenDict"),
    "a slot that nobody finds": (lambda: with_attribute(Checked(), "hidden", 5), "in neither a slot nor a __dict__"),
    "two fields of one name": (lambda: tuple.__new__(TwoOfOneName, [1, 2]), "two of its fields have one name"),
    "extra values in another dictionary": (with_odd_extra, "extra values or private attributes in a OrderedDict"),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_could_come_back_elsewhere_is_refused(case: str) -> None:
    make, words = AMBIGUOUS[case]
    with pytest.raises(SerializationError) as refused:
        Serde().dumps_typed({"k": [make()]})
    assert str(refused.value).startswith("['k'][0]")
    assert words in str(refused.value)


@pytest.mark.parametrize("seed", range(5))
def test_made_up_hierarchies(seed: int) -> None:
    """Every value comes back the same in each of its places, or is refused with its own place."""
    outcomes: Counter[str] = Counter()
    for _, value in zip(range(250), Maker(seed).values(), strict=False):
        try:
            stored = Serde().dumps_typed({"k": [value]})
        except SerializationError as error:
            assert str(error).startswith("['k'][0]")
            outcomes["refused"] += 1
            continue
        found = Serde().loads_typed(stored)["k"][0]
        assert differences(value, found) == [], type(value).__mro__
        outcomes[_root(value)] += 1
    assert outcomes["refused"] < 100
    assert {"object", "BaseModel", "Struct", "Flag"} <= outcomes.keys()


def _root(value: Any) -> str:
    return next(owner.__qualname__ for owner in type(value).__mro__ if owner.__module__ != "serde_made")


def test_the_comparison_sees_every_place() -> None:
    """The one above would prove nothing if it did not."""
    one, other = in_both_places(), MoreRetries(9)
    assert differences(one, other) == ["Retries.retries: 4 nothing is set"]
    assert differences(MoreRetries(9), MoreRetries(8)) == ["__dict__: {'retries': 9} {'retries': 8}"]
    assert differences(OwnQueue([1], 3), OwnQueue([1], 7)) == ["content"]
    assert differences(OSError(2, None), OSError()) != []
    assert differences(Mangled(1), Mangled(True)) != []
