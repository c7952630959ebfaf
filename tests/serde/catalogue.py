"""Every kind of value by name: those that come back exactly, and those that are refused, with the words of
it.
"""

import asyncio
import contextlib
import importlib.resources
import io
import ipaddress
import os
import pathlib
import re
import threading
import time
import types
import typing
from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

import numpy as np
import ormsgpack
import pandas as pd  # type: ignore[import-untyped]  # its stubs are a separate package
import pydantic
import pydantic.v1
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from msgpack import ExtType, Timestamp

from serde import specimens as s

BERLIN = ZoneInfo("Europe/Berlin")

Make: TypeAlias = Callable[[], Any]


def used(network: Any) -> Any:
    """The network after its attributes were read; it remembers most of them."""
    for name in ("network", "ip", "netmask", "hostmask", "broadcast_address", "is_global", "exploded"):
        getattr(network, name, None)
    return network


EXACT: dict[str, dict[str, Make]] = {
    "Single values": {
        "None": lambda: None,
        "bool": lambda: True,
        "int": lambda: -7,
        "int beyond 64 bits": lambda: -(1 << 200),
        "int at the edge of 64 bits": lambda: [2**64 - 1, 2**64, -(2**63), -(2**63) - 1],
        "float": lambda: 0.1,
        "float: nan, inf, -0.0": lambda: [float("nan"), float("-inf"), -0.0],
        "complex": lambda: complex(float("nan"), -0.0),
        "str": lambda: "a\x00b \U0001f600",
        "str with lone surrogates": lambda: "a\ud800b",
        "bytes": lambda: b"\x00\xff",
        "bytearray": lambda: bytearray(b"ab"),
        "Ellipsis": lambda: ...,
        "NotImplemented": lambda: NotImplemented,
        "Decimal": lambda: [Decimal("1.10"), Decimal("-0"), Decimal("sNaN12"), Decimal("Infinity")],
        "Fraction": lambda: Fraction(-1, 3),
        "UUID": lambda: UUID(int=5),
        "UUID that knows whether it is safe": lambda: UUID(int=5, is_safe=SafeUUID.safe),
    },
    "Containers": {
        "list": lambda: [1, [2, []]],
        "tuple": lambda: (1, (), (2,)),
        "set": lambda: {1, "a", None, (1, 2)},
        "frozenset": lambda: frozenset({frozenset({1}), frozenset()}),
        "dict": lambda: {"b": 1, "a": {"c": {}}},
        "dict with any keys": lambda: {
            1: 1,
            None: 2,
            (1, "a"): 3,
            b"x": 4,
            frozenset({1}): 5,
            1.5: 6,
            "\ud800": 7,
        },
        "deque": lambda: deque([1, 2]),
        "deque with maxlen": lambda: deque([1, 2], 2),
        "defaultdict": lambda: defaultdict(list, {"a": [1]}),
        "defaultdict without factory": lambda: defaultdict(None, {"a": 1}),
        "defaultdict of a class": lambda: defaultdict(s.Model, {1: s.Model()}),
        "OrderedDict": lambda: OrderedDict([("b", 1), ("a", 2)]),
        "Counter": lambda: Counter({"a": 2, "b": -1}),
        "OrderedDict, Counter with attributes": lambda: [
            s.attach(OrderedDict(a=1), note=1),
            s.attach(Counter[str](a=1), note=[2]),
        ],
        "ChainMap": lambda: [ChainMap({"a": 1}, {"b": 2}), ChainMap[str, int]()],
        "MappingProxyType": lambda: types.MappingProxyType({"a": 1}),
        "MappingProxyType of another mapping": lambda: [
            types.MappingProxyType(shown)
            for shown in (
                OrderedDict(a=1),
                Counter(a=1),
                defaultdict(int, a=1),
                ChainMap({"a": 1}),
                types.MappingProxyType({"a": 1}),
                s.Registers({1: 2}),
            )
        ],
        "SimpleNamespace": lambda: types.SimpleNamespace(a=1),
        "range": lambda: range(1, 10, 3),
        "slice": lambda: slice(1, None, -1),
        "array.array": lambda: array("d", [1.5, 2.5]),
    },
    "Subclasses of builtins": {
        "str": lambda: s.attach(s.Text("a"), note=1),
        "int": lambda: s.Number(3),
        "float": lambda: s.Ratio("nan"),
        "bytes": lambda: s.Data(b"a"),
        "bytearray": lambda: s.Buffer(b"a"),
        "list": lambda: s.attach(s.Many([1]), note="x"),
        "tuple": lambda: s.Row((1, 2)),
        "set": lambda: s.Bag({1}),
        "frozenset": lambda: s.FrozenBag({1}),
        "dict": lambda: s.Registers({1: 2}),
        "OrderedDict": lambda: s.Ordered([("b", 1), ("a", 2)]),
        "Counter": lambda: s.Tally({"a": 1}),
        "defaultdict": lambda: s.Defaults(int, {"a": 1}),
        "deque": lambda: s.Queue([1], 4),
        "datetime": lambda: s.Moment(2026, 1, 2, tzinfo=UTC),
        "date": lambda: s.Day(2026, 1, 2),
        "timedelta": lambda: s.Span(1, 2, 3),
        "Decimal": lambda: s.Money("1.10"),
    },
    "Times": {
        "datetime": lambda: datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 - a naive one is the point
        "datetime with zone": lambda: datetime(2026, 1, 2, tzinfo=BERLIN),
        "datetime with fold": lambda: datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
        "datetime with fold, naive": lambda: datetime(2026, 1, 2, fold=1),  # noqa: DTZ001 - as above
        "date": lambda: date(2026, 1, 2),
        "time": lambda: clock(1, 2, 3, 4, tzinfo=UTC, fold=1),
        "timedelta": lambda: timedelta(-1, 2, 3),
        "timezone": lambda: [UTC, timezone(timedelta(hours=1)), timezone(timedelta(0), "X")],
        "timezone named as its offset": lambda: [
            timezone(timedelta(0), "UTC"),
            timezone(timedelta(hours=1), "UTC+01:00"),
        ],
        "ZoneInfo": lambda: [BERLIN, ZoneInfo.no_cache("Europe/Berlin")],
        "struct_time": lambda: time.struct_time((2026, 1, 2, 3, 4, 5, 4, 2, 0, "CET", 3600)),
    },
    "Texts with a meaning": {
        "PurePosixPath, PureWindowsPath": lambda: [
            pathlib.PurePosixPath("/a"),
            pathlib.PureWindowsPath("c:\\a"),
        ],
        "Path": lambda: pathlib.Path("a/b"),
        "re.Pattern": lambda: [re.compile("a+", re.IGNORECASE), re.compile(b"a")],
        "ipaddress": lambda: [
            ipaddress.ip_address("1.2.3.4"),
            ipaddress.ip_address("fe80::1%eth0"),
            ipaddress.ip_interface("1.2.3.4/8"),
            ipaddress.ip_interface("::1/64"),
            ipaddress.ip_network("10.0.0.0/8"),
            ipaddress.ip_network("2001:db8::/32"),
        ],
        "ipaddress: networks that have been used": lambda: [
            used(make(text))
            for make in (ipaddress.ip_network, ipaddress.ip_interface)
            for text in ("10.0.0.0/8", "10.0.0.0/31", "10.0.0.1/32", "2001:db8::/32", "::/127", "::1/128")
        ],
    },
    "Enums": {
        "Enum": lambda: [s.Colour.RED, s.Colour.GREEN, s.Colour.ALSO_RED],
        "IntEnum, StrEnum": lambda: [s.Level.LOW, s.Word.YES],
        "Flag, IntFlag": lambda: [
            s.Rights.READ,
            s.Rights.READ | s.Rights.WRITE,
            s.Rights(0),
            s.Bits(3),
            s.Bits(9),
        ],
        "Enum with attributes": lambda: s.Planet.EARTH,
        "Enum in a class": lambda: s.Outer.Kind.A,
    },
    "Records": {
        "dataclass": lambda: s.Point([1], {"a": 2}),
        "dataclass, frozen": lambda: s.FrozenPoint(1),
        "dataclass with slots": lambda: s.SlotPoint(1),
        "dataclass, frozen, slots, kw_only": lambda: s.StrictPoint(x=1),
        "dataclass, inherited": lambda: s.Child(1, 2, 3),
        "dataclass in a class": lambda: s.Outer.Inner(1),
        "dataclass with InitVar, init=False and __post_init__": lambda: s.Counted(3),
        "dataclass with more attributes": lambda: s.attach(s.Point(1), extra=2),
        "dataclass, subclassed without decorator": lambda: s.attach(s.Plain(1), more=[1]),
        "dataclass over a slotted one, which hides a slot": lambda: [s.MoreRetries(9), s.Standing(9)],
        "dataclass, generic": lambda: s.Generic1[int](1),
        "dataclass that is a list": lambda: s.PointList("label"),
        "NamedTuple": lambda: s.Pair(1),
        "NamedTuple subclass with attributes": lambda: s.attach(s.NamedChild(1, 2), note="x"),
        "namedtuple": lambda: s.Old(1, [2]),
        "attrs": lambda: s.Attr(1, [2]),
        "attrs, frozen with cached hash": lambda: {s.FrozenAttr("a"): 1, s.FrozenDictAttr("a"): 2},
        "attrs with dict and converter": lambda: s.DictAttr(1),
        "msgspec.Struct": lambda: [s.Struct(1), s.FrozenStruct(a=2)],
        "TypedDict": lambda: s.Film(name="x"),
    },
    "Pydantic": {
        "BaseModel": lambda: s.Model(x=s.Model(), y=[s.Model()]),
        "BaseModel: fields set": lambda: s.Model(y=5),
        "subclass in a base-typed field": lambda: s.Holder(base=s.SubModel()),
        "model in an Any field": lambda: s.Holder(base=s.Model(), anything=s.Root([1])),
        "private attributes, exclude, alias": lambda: s.attach(s.Hidden(theName=3, secret=4), _private=[9]),
        "extra=allow": lambda: [s.Extra(x=1, more=[1]), s.Extra()],  # type: ignore[call-arg]  # it allows that
        "RootModel": lambda: s.Root([1, 2]),
        "generic": lambda: [s.Box[int](item=1), s.Box[s.Model](item=s.Model()), s.Box(item=1)],
        "generic, of more than classes": lambda: [
            s.Box[argument].model_construct(item=1)  # type: ignore[valid-type]  # each of them is one
            for argument in (
                *(None, int | None, int | str | None, list[str] | s.Model, Any, Sequence[int]),
                *(list[s.Model], dict[str, s.Model | None], tuple[int, ...], set[int], frozenset[str], list[None]),
                *(s.Box[list[int]], list[s.Box[int]], list[dict[str, list[int | list[s.Model]]]]),
                # typing's own make other models than these.
                *(getattr(typing, name)[int, str] for name in ("Dict", "Tuple", "Union", "Mapping")),
                *(getattr(typing, name)[s.Model] for name in ("List", "Set", "FrozenSet", "Optional", "Sequence")),
            )
        ],
        "RootModel, generic": lambda: pydantic.RootModel[list[s.Model]]([s.Model()]),
        "frozen": lambda: {s.FrozenModel(x=1): 2},
        "computed fields, cached properties": lambda: [s.Computed(x=1), (c := s.Computed(x=2), c.lazy)[0]],
        "validator that is not idempotent": lambda: s.Growing(x=1),
        "model_construct": lambda: [s.Model.model_construct(y="wrong"), s.Growing.model_construct()],
        "SecretStr, SecretBytes": lambda: [
            s.Secretive(key=pydantic.SecretStr("k")),
            pydantic.SecretBytes(b"b"),
        ],
        "dataclass": lambda: s.PydanticPoint(1, [2]),
        "datetime, time from text with an offset": lambda: [
            s.Meeting.model_validate_json('{"when": "2026-11-21T09:00:00+01:00", "daily": "09:00:00-03:30"}'),
            s.Meeting.model_validate({"when": "2026-11-21T09:00:00Z", "daily": "09:00:00Z"}),
        ],
        "pydantic.v1 model": lambda: s.attach(s.First(x=1), y=(1,)),
        "pydantic.v1 model derived from a generic one": lambda: s.NumberBox(item=1),
        "pydantic.v1 SecretStr": lambda: pydantic.v1.SecretStr("k"),
    },
    "numpy and pandas": {
        "array": lambda: [np.arange(6).reshape(2, 3), np.zeros(0), np.array(5), np.zeros((2, 0))],
        "array, all kinds of dtype": lambda: [
            np.zeros(2, dtype) for dtype in ("?", "i1", ">u2", "f2", "g", "c8", "M8[ns]", "m8[D]", "U3", "S3", "V4")
        ],
        "array of longlong next to one of long": lambda: [
            np.zeros(2, dtype)
            for dtype in (
                *("l", "q", "L", "Q", ">q", "c"),
                *([("a", "l"), ("b", "Q")], [("a", "q"), ("b", "L")]),
                *([("a", [("b", "l", 3)], 2)], [("a", [("b", "q", 3)], 2)]),
            )
        ],
        "array of long doubles, little- and big-endian": lambda: [
            np.array([1, 2]).astype(dtype) / 3 for dtype in ("g", ">g", "G", ">G")
        ],
        "array, structured, aligned or not": lambda: [
            np.zeros(2, np.dtype([("a", "i8"), ("b", [("c", "i8")])], align=align)) for align in (True, False)
        ],
        "array of more than a page": lambda: [
            np.arange(2000.0),
            np.zeros((100, 100), "M8[s]"),
            bytearray(b"x"),
        ],
        "array in Fortran order": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "array, a view with steps": lambda: np.arange(10)[::3],
        "array, structured": lambda: np.array([(1, 2.5, [1, 2])], dtype=[("a", "i4"), ("b", "f8"), ("c", "i2", 2)]),
        "array of objects": lambda: np.array([[1, "x"], [None, s.Point(1)]], dtype=object),
        "masked array": lambda: [np.ma.array([1, 2], mask=[False, True], fill_value=9), np.ma.array([1.5])],
        "masked array, numpy's own fill value or another": lambda: [
            *(np.ma.array([1], dtype) for dtype in ("i4", ">u2", "q", "f4", "M8[s]", "U1", "S1", "?", "O")),
            *(np.ma.array([1], dtype, fill_value=1) for dtype in ("i4", ">u2", "q", "f4", "M8[s]", "U1", "?", "O")),
            np.ma.array([(1, "a")], dtype=[("a", "i2"), ("b", "U1")]),
        ],
        "scalar": lambda: [
            np.float64("nan"),
            np.int8(3),
            np.bool_(1),
            np.str_("a\0"),
            np.bytes_(b"a"),
            np.longdouble(1),
            *map(np.longlong, [1, 2]),
            np.ulonglong(3),
        ],
        "scalar: datetime64, timedelta64": lambda: [
            np.datetime64("2026-01-02", "ns"),
            np.timedelta64("NaT", "D"),
        ],
        "scalar, structured": lambda: np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])[0],
        "Timestamp": lambda: [
            pd.Timestamp("2026-01-02"),
            pd.Timestamp("2026-10-25 01:30", tz="UTC").tz_convert("Europe/Berlin"),
        ],
        "Timedelta, NaT, NA": lambda: [pd.Timedelta("1s"), pd.NaT, pd.NA],
        "Series": lambda: pd.Series(["a", None, "b"], name="n", index=[3, 1, 2]),
        "Series of objects": lambda: pd.Series(["a", 1, s.Point(1)], dtype=object),
        "DataFrame": lambda: pd.DataFrame(
            {
                "text": ["x", None],
                "category": pd.Categorical(["u", "v"], ordered=True),
                "integers": pd.array([1, None], dtype="Int8"),
                "truths": pd.array([True, None], dtype="boolean"),
                "moments": pd.date_range("2026", periods=2, tz="UTC"),
            },
            index=pd.date_range("2026", periods=2, freq="D"),
        ),
        "index with a frequency": lambda: (
            [
                pd.date_range("2026-01-05", periods=2, freq=frequency)
                for frequency in ("h", "W", "2B", pd.DateOffset(months=1, days=1), pd.DateOffset(2, normalize=True))
            ]
            + [
                pd.date_range("2026-03-28", periods=3, freq="D", tz="Europe/Berlin"),
                pd.timedelta_range("1h", periods=3, freq="2h"),
            ]
        ),
        "DataFrame with MultiIndex": lambda: [
            pd.DataFrame({"a": [1, 2], "b": [3, 4]}).set_index(["a", "b"]),
            pd.MultiIndex([[1, 2], ["x", "y"]], [[0, 1], [1, 0]], names=["a", None], sortorder=0),
        ],
        "DataFrame without columns": lambda: pd.DataFrame(index=[1, 2]),
    },
    "Exceptions": {
        "builtin": lambda: ValueError("a", 1),
        "class with an __init__ of its own": lambda: s.TroubleError(3, hint="h"),
        "OSError": lambda: OSError(2, "no such file", "name"),
        "Unicode, syntax and import errors": lambda: [
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
            SyntaxError("bad", ("file", 1, 2, "text", 1, 3)),
            ImportError("no", name="m", path="p"),
        ],
        "OSError whose fields are None or were never set": lambda: [
            OSError(2, None),
            OSError(None, None),
            OSError(),
            OSError("text"),
            s.attach(OSError(2, "text"), filename=None),
            BlockingIOError(11, "busy", 7),
            s.attach(OSError(), characters_written=3),
        ],
        "StopIteration, SystemExit, KeyError": lambda: [
            StopIteration(1),
            StopIteration(),
            SystemExit(3),
            s.MissingKeyError("k"),
        ],
        "notes": lambda: s.noted(ValueError("a"), "n"),
        "cause and context": lambda: s.raised(ValueError("a"), KeyError("b")),
        "dataclass, frozen; attrs, frozen": lambda: [s.FrozenError(3), s.raised(s.FrozenAttrError(3), KeyError("k"))],
        "several builtins behind a class": lambda: s.LateError(110, "late"),
        "groups": lambda: s.Group("g", [ValueError(1), ExceptionGroup("h", [KeyError("k")])]),
        "groups with a __new__ of their own": lambda: [
            s.ExitGroup([s.ExitGroup([ValueError(1)], 4), KeyError("k")], 3),
            s.MergedGroup(ValueError(1), KeyboardInterrupt()),
        ],
    },
    "LangChain": {
        "HumanMessage, SystemMessage": lambda: [HumanMessage("a", id="1"), SystemMessage([{"type": "text"}])],
        "AIMessage with tool calls and usage": lambda: AIMessage(
            "a",
            tool_calls=[{"name": "t", "args": {"q": 1}, "id": "c", "type": "tool_call"}],
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            response_metadata={"model": "m"},
        ),
        "AIMessageChunk": lambda: AIMessageChunk(content="a"),
        "ToolMessage with artifact": lambda: ToolMessage("a", tool_call_id="c", artifact={"x": (1, {2})}),
        "other messages": lambda: [
            ChatMessage(content="a", role="r"),
            FunctionMessage(content="a", name="f"),
            RemoveMessage(id="1"),
        ],
        "Document": lambda: Document("a", metadata={"b": 1}),
    },
    "Envelopes of other libraries": {
        "msgpack.ExtType": lambda: [ExtType(84, b"t"), ExtType(5, b"x")],
    },
}


def _cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def fraction_of(numerator: int, denominator: int) -> Fraction:
    """A fraction made around its class, which would reduce it."""
    made = object.__new__(Fraction)
    made._numerator, made._denominator = numerator, denominator  # type: ignore[attr-defined]  # as the class itself does
    return made


def _deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def _nested_sets() -> frozenset[Any]:
    found: frozenset[Any] = frozenset()
    for _ in range(20):
        found = frozenset({found})
    return found


def _local_instance() -> Any:
    class Local(pydantic.BaseModel):
        pass

    return Local()


async def _coroutine() -> None: ...


def _closed_coroutine() -> Any:
    coroutine = _coroutine()
    coroutine.close()
    return coroutine


class PostInit(s.Struct):
    def __post_init__(self) -> None:
        self.a += 1


def _masked_with_notes() -> Any:
    """Arithmetic takes them over into a separate place."""
    found: Any = np.ma.array([1])
    found._optinfo["note"] = 1
    return found


def _zone_from_file(key: str | None = None) -> ZoneInfo:
    with importlib.resources.files("tzdata.zoneinfo").joinpath("UTC").open("rb") as file:
        return ZoneInfo.from_file(file, key)


def _chain(maps: Any) -> ChainMap[Any, Any]:
    chain: ChainMap[Any, Any] = ChainMap()
    chain.maps = maps
    return chain


def _twice() -> Any:
    value = s.MoreRetries(9)
    s.Retries.__dict__["retries"].__set__(value, 4)
    return value


def _without_private_attribute() -> Any:
    model = s.Hidden()
    del model._private
    return model


def _debug_pattern() -> re.Pattern[str]:
    with contextlib.redirect_stdout(io.StringIO()):
        return re.compile("a", re.DEBUG)


def _misnamed() -> Any:
    model = s.Extra.model_validate({"more": 2})
    assert model.__pydantic_extra__ is not None
    model.__pydantic_extra__[7] = 1  # type: ignore[index]  # the very mistake
    return model


# The words after each are part of the error's text.
REFUSED: dict[str, tuple[Make, str]] = {
    "functions and lambdas": (lambda: _deep, "functions are code, not data"),
    "methods of objects": (lambda: [].append, "functions are code, not data"),
    "classes": (lambda: s.Point, "classes are code, not data"),
    "modules": (lambda: re, "modules are code, not data"),
    "generators and other iterators": (lambda: iter([1]), "store its results, as a list"),
    "coroutines": (_closed_coroutine, "store its results, as a list"),
    "locks, threads, events": (threading.Lock, "locks and threads belong to this process"),
    "asyncio locks": (asyncio.Lock, "locks and threads belong to this process"),
    "files": (
        io.StringIO,
        "an open file belongs to this process",
    ),
    "memoryview": (lambda: memoryview(b"a"), "a window on another object; store bytes(view)"),
    "objects of ordinary classes": (lambda: UserDict({"a": 1}), "make the class a dataclass, or register it"),
    "records over types written in C": (s.Alarm, "only time itself can make one"),
    "struct sequences (os.stat_result ...)": (
        lambda: os.terminal_size((80, 24)),
        "only terminal_size itself can make one",
    ),
    "named tuples of another length": (lambda: tuple.__new__(s.Pair, [1]), "without exactly one item for each field"),
    "instances of classes made inside functions": (_local_instance, "not found under its own name"),
    "structures that contain themselves": (_cycle, "nested deeper than 1024 levels, or containing itself"),
    "nesting deeper than 1024 levels": (lambda: _deep(100_000), "nested deeper than 1024 levels"),
    "sets nested deeper than 8 levels": (
        _nested_sets,
        "sets inside sets cannot be stored deeper than 8 levels",
    ),
    "defaultdict of a function": (lambda: defaultdict(lambda: 1), "or another class of data as its factory"),
    "MappingProxyType of a refused value": (lambda: types.MappingProxyType(UserDict()), "make the class a dataclass"),
    "ChainMap with attributes": (lambda: s.attach(ChainMap({"a": 1}), note=1), "with attributes of its own"),
    "ChainMap of other than mappings": (lambda: _chain([[1]]), "whose maps are not a list of mappings"),
    "ChainMap of no maps": (lambda: _chain([]), "whose maps are not a list of mappings"),
    "ChainMap of a tuple of maps": (lambda: _chain(({},)), "whose maps are not a list of mappings"),
    "MappingProxyType of other than a mapping": (
        lambda: types.MappingProxyType[Any, Any]("abc"),  # type: ignore[arg-type]  # Python takes it
        "a mappingproxy of a str",
    ),
    "networks with attributes": (
        lambda: s.attach(ipaddress.ip_network("10.0.0.0/8"), note=1),
        "with attributes of its own ('note')",
    ),
    "masked arrays with attributes": (lambda: s.attach(np.ma.array([1]), note=1), "with attributes of its own"),
    "masked arrays with attributes that numpy passes on": (_masked_with_notes, "with attributes of its own"),
    "ZoneInfo from a file": (
        _zone_from_file,
        "a ZoneInfo that was made from a file",
    ),
    "ZoneInfo from a file, with a key": (
        lambda: _zone_from_file("Europe/Berlin"),
        "a ZoneInfo that was made from a file",
    ),
    "timezone of a subclass of timedelta": (lambda: timezone(s.Span(hours=1)), "a timezone whose offset is a Span"),
    "patterns of a subclass of str": (lambda: re.compile(s.Text("a+")), "a pattern of a Text, not of a str"),
    "patterns with re.DEBUG": (_debug_pattern, "loading it would print"),
    "Fraction of more than 65536 bits": (lambda: Fraction(1 << 70_000, 3), "more than 65536 bits"),
    "Fraction not in lowest terms": (lambda: fraction_of(2, 4), "lowest terms"),
    "Fraction with a negative denominator": (lambda: fraction_of(1, -2), "lowest terms"),
    "Fraction of other than int": (
        lambda: Fraction(np.int64(1), np.int64(3)),  # type: ignore[call-overload]  # Python takes them
        "make it of int(...)",
    ),
    "numpy records": (lambda: np.zeros(1, [("a", "i4")]).view(np.recarray)[0], "a numpy record cannot be stored"),
    "numpy arrays of records": (
        lambda: np.zeros(1, [("a", "i4")]).view(np.recarray).view(np.ndarray),
        "a numpy dtype of record, with fields, cannot be stored",
    ),
    "subclasses of numpy arrays": (lambda: np.zeros(1).view(np.recarray), "not a kind of value"),
    "numpy arrays of variable-width text": (
        lambda: np.array(["a"], dtype=np.dtypes.StringDType()),
        "convert it to another dtype",
    ),
    "structured numpy arrays with objects": (
        lambda: np.zeros(1, dtype=[("a", object)]),
        "a structured numpy array with objects or titles",
    ),
    "structured numpy arrays with titles": (
        lambda: np.zeros(1, dtype=[(("title", "a"), "i4")]),
        "a structured numpy array with objects or titles",
    ),
    "pandas values with attributes": (
        lambda: s.attach(pd.Series([1]), note=1),
        "a pandas Series with attributes of its own (note)",
    ),
    "pandas columns of other extension dtypes": (
        lambda: pd.Series(pd.period_range("2026", periods=1, freq="D")),
        "a pandas column of dtype period[D]",
    ),
    "pandas frequencies whose text does not say all": (
        lambda: pd.date_range("2026", periods=2, freq=pd.offsets.CustomBusinessDay(holidays=["2026-01-02"])),
        "store the index without (index.freq = None)",
    ),
    "pandas frequencies whose text is not read": (
        lambda: pd.date_range("2026", periods=2, freq=pd.offsets.Easter()),
        "store the index without (index.freq = None)",
    ),
    "msgspec.Struct with __post_init__": (lambda: PostInit(1), "a msgspec Struct with __post_init__"),
    "generic models of texts, functions or annotations": (
        lambda: s.Box[Literal["a"]](item="a"),
        "its type arguments must be classes, None, or unions and builtin generics of them",
    ),
    "generic models of pydantic.v1": (lambda: s.FirstBox[int](item=1), "derive a class with a name of its own"),
    "exceptions that only their class can make": (s.unbuildable, "made by running the class; store its text"),
    "msgpack.Timestamp": (lambda: Timestamp(1), "not a kind of value"),
    "ormsgpack.Ext": (lambda: ormsgpack.Ext(84, b"t"), "only Ext itself can make one"),
    "ormsgpack.Fragment": (lambda: ormsgpack.Fragment(b"\x01"), "only Fragment itself can make one"),
    "enums that are not among their class's members": (
        lambda: s.attach(object.__new__(s.Rights), _name_=None, _value_=8),
        "is not one of its members",
    ),
    "models without a private attribute that has a default": (
        _without_private_attribute,
        "its private attribute '_private' was deleted",
    ),
    "models with slots of their own": (s.SlottedModel, "make them private attributes"),
    "objects with two attributes of one name": (_twice, "two attributes named 'retries'"),
    "objects with another __dict__": (lambda: s.OpenDict(a=1), "whose __dict__ is a OpenDict"),
    "objects that hide their __dict__": (lambda: s.Hiding(1), "register it with functions of its own"),
    "attributes whose name is no text": (_misnamed, "cannot be stored under the name 7, which is not a str"),
}
