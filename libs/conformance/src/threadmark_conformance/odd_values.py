"""The odd arguments of the suite: values of wrong or unusual types that callers may pass by mistake.

Each is created again for every call, because some can be used once only.
"""

import enum
import random
import threading
import uuid
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NoReturn


class Word(enum.StrEnum):
    """A subclass of str, as some applications use for state keys and nodes."""

    A = "a"


class Old(str, enum.Enum):  # noqa: UP042 - how it was written before StrEnum, and its str() is another
    """The same, but `str()` returns another text."""

    A = "a"


class Number(enum.IntEnum):
    """A subclass of int."""

    ONE = 1


class Text(str):
    """A string that shows itself wrongly in every way."""

    __slots__ = ()

    def __str__(self) -> str:
        return "another"

    def __repr__(self) -> str:
        return "another"


class Real(float):
    """A subclass of float, as numpy's float64 is."""


class Ambiguous:
    """Like an array: no truth, no equality, no hash."""

    __hash__ = None  # type: ignore[assignment]  # that is the point

    def __bool__(self) -> NoReturn:
        raise ValueError("the truth of this is ambiguous")

    def __eq__(self, other: object) -> NoReturn:
        raise ValueError("the truth of this is ambiguous")

    def __repr__(self) -> NoReturn:
        raise ValueError("this cannot be shown")


class Gettable:
    """An object that has a `get` but is no mapping."""

    def get(self, key: object, default: object = None) -> object:
        """Return itself, for a configuration."""
        return self if key == "configurable" else default


def long_text(size: int) -> str:
    """Return text that no database can compress much."""
    return "".join(random.Random(size).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))


def _nested(levels: int, wrap: Callable[[Any], Any]) -> Any:
    made: Any = 1
    for _ in range(levels):
        made = wrap(made)
    return made


def _cyclic(made: Any, add: Callable[[Any], None]) -> Any:
    add(made)
    return made


ODD_VALUES: Mapping[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "64 bits": lambda: (1 << 64) - 1,
    "65 bits": lambda: 1 << 64,
    "-64 bits": lambda: -(1 << 63) - 1,
    "5000 digits": lambda: 10**5000,
    "-5000 digits": lambda: -(10**5000),
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "complex": lambda: 1j,
    "Decimal": lambda: Decimal("1.5"),
    "empty text": lambda: "",
    "text": lambda: "x",
    "ab": lambda: "ab",
    "digits": lambda: "3",
    "NUL": lambda: "\x00",
    "surrogate": lambda: "\ud800",
    "600 letters": lambda: long_text(600),
    "10000 letters": lambda: long_text(10_000),
    "3000 equal letters": lambda: "a" * 3000,
    "5000 digits of text": lambda: "9" * 5000,
    "bytes": lambda: b"x",
    "bytearray": lambda: bytearray(b"ab"),
    "memoryview": lambda: memoryview(b"ab"),
    "()": tuple,
    "('a',)": lambda: ("a",),
    "('a', 1)": lambda: ("a", 1),
    "[]": list,
    "['a']": lambda: ["a"],
    "['ab']": lambda: ["ab"],
    "[None]": lambda: [None],
    "[1]": lambda: [1],
    "[('a', 1)]": lambda: [("a", 1)],
    "[('a', 1, 2)]": lambda: [("a", 1, 2)],
    "[(1, 1)]": lambda: [(1, 1)],
    "[['a', 1]]": lambda: [["a", 1]],
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "{'ab': 1}": lambda: {"ab": 1},
    "{1: 1}": lambda: {1: 1},
    "{None: 1}": lambda: {None: 1},
    "{('a',): 1}": lambda: {("a",): 1},
    "{Word: 1}": lambda: {Word.A: 1},
    "OrderedDict": lambda: OrderedDict(a=1),
    "UserDict": lambda: UserDict(a=1),
    "proxy": lambda: MappingProxyType({"a": 1}),
    "set": lambda: {"a"},
    "frozenset": lambda: frozenset({"a"}),
    "deque": lambda: deque([("a", 1)]),
    "generator": lambda: (item for item in [("a", 1)]),
    "iterator": lambda: iter(["a"]),
    "empty generator": lambda: iter(()),
    "cyclic list": lambda: _cyclic([], lambda made: made.append(made)),
    "cyclic dict": lambda: _cyclic({}, lambda made: made.update(a=made)),
    "60 lists": lambda: _nested(60, lambda made: [made]),
    "400 lists": lambda: _nested(400, lambda made: [made]),
    "900 dicts": lambda: _nested(900, lambda made: {"a": made}),
    "3000 lists": lambda: _nested(3000, lambda made: [made]),
    "object": object,
    "class": lambda: dict,
    "function": lambda: len,
    "lock": threading.Lock,
    "exception": lambda: ValueError("x"),
    "ellipsis": lambda: ...,
    "UUID": lambda: uuid.UUID(int=7),
    "datetime": lambda: datetime(2026, 1, 1, tzinfo=UTC),
    "timedelta": lambda: timedelta(days=1),
    "-timedelta": lambda: timedelta.min,
    "StrEnum": lambda: Word.A,
    "str and Enum": lambda: Old.A,
    "IntEnum": lambda: Number.ONE,
    "subclass of str": lambda: Text("a"),
    "subclass of float": lambda: Real(1.5),
    "ambiguous": Ambiguous,
    "[ambiguous]": lambda: [Ambiguous()],
    "gettable": Gettable,
    "a config": lambda: {"configurable": {"thread_id": "kept"}},
    "an empty config": lambda: {"configurable": {}},
}
"""How each is made, by a name for messages."""


def hashable(value: Any) -> bool:
    """Whether the value can be a dictionary's key."""
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True
