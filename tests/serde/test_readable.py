"""Every put value can be read: if a kind's class reads more, or something else, than it writes, put refuses it."""

import builtins
import pathlib
import random
import re
import subprocess
import sys
import types
from array import array, typecodes
from collections.abc import Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from serde import specimens as s
from serde.hierarchies import differences, members_of
from serde.sameness import same
from serde.test_exact import round_trip
from serde.test_safe import crafted
from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde import Registry, Serde

PIECES = ["a", "b:", "C:", "/", "\\", ".", "..", "./", "//", "//?/", "\\\\", " ", "%", "\0", "\ud800", ""]


def paths(cls: Any, rng: random.Random) -> Iterator[Any]:
    """Paths made in each way that there is."""
    while True:
        first, second = ("".join(rng.choices(PIECES, k=rng.randrange(6))) for _ in range(2))
        try:
            path = cls(first)
            yield path
            yield path / second
            yield from path.parents
            yield path.with_name(second)
            yield path.relative_to(path.anchor)
        except ValueError:
            continue


@pytest.mark.parametrize("cls", [pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.Path])
def test_a_path_comes_back_or_is_refused(cls: Any) -> None:
    """Before Python 3.12 the text of some is that of others: that of `PureWindowsPath("./b:a")` is `b:a`."""
    found = 0
    for _, path in zip(range(1500), paths(cls, random.Random(7)), strict=False):
        try:
            again = round_trip(path)
        except SerializationError as error:
            assert "is that of another" in str(error)
            continue
        assert (type(again), again.drive, again.root, again.parts) == (type(path), path.drive, path.root, path.parts)
        found += 1
    assert found > 1000


@pytest.mark.parametrize("path", [pathlib.PureWindowsPath("./b:a"), pathlib.PureWindowsPath("a") / "./b:c"], ids=str)
def test_a_path_that_looks_like_one_with_a_drive(path: pathlib.PureWindowsPath) -> None:
    try:
        assert round_trip(path).parts == path.parts
    except SerializationError as error:
        assert sys.version_info < (3, 12), error


@pytest.mark.filterwarnings("ignore:The .u. type code:DeprecationWarning")
@pytest.mark.parametrize("code", typecodes)
def test_an_array_of_every_type_that_this_python_has(code: str) -> None:
    """Python 3.13 has one more."""
    value = array(code, "a\u20ac" if code in "uw" else [1, 2])
    assert same(value, round_trip(value))


def test_an_array_of_a_type_that_this_python_lacks_is_named() -> None:
    with pytest.raises(CorruptDataError, match="'z'"):
        Serde().loads_typed(crafted("a", "z", 4, b"abcd"))


def test_a_zone_is_shared_or_not_as_it_was() -> None:
    """A zone is equal to itself only, so that two of one name can be two keys of a dictionary."""
    shared, own = ZoneInfo("Europe/Berlin"), ZoneInfo.no_cache("Europe/Berlin")
    found = round_trip({shared: 1, own: 2})
    assert list(found.values()) == [1, 2]
    assert [each is shared for each in found] == [True, False]


def test_a_pattern_is_of_a_plain_text() -> None:
    with pytest.raises(SerializationError, match="a pattern of a Text"):
        round_trip([re.compile(s.Text("a"))])


@pytest.mark.parametrize("shown", ["abc", b"abc", range(3), array("b", b"a")], ids=lambda shown: type(shown).__name__)
def test_a_mappingproxy_shows_a_mapping(shown: Any) -> None:
    """Python makes one of anything that can be indexed, but only those of mappings can be told from other data."""
    with pytest.raises(SerializationError, match="a mappingproxy of"):
        round_trip({"k": types.MappingProxyType(shown)})


ERRORS = sorted(
    (found for found in vars(builtins).values() if isinstance(found, type) and issubclass(found, BaseException)),
    key=lambda cls: cls.__name__,
)
ARGUMENTS: dict[type[BaseException], tuple[Any, ...]] = {
    UnicodeDecodeError: ("utf-8", b"\xff", 0, 1, "bad"),
    UnicodeEncodeError: ("ascii", "\xe9", 0, 1, "bad"),
    UnicodeTranslateError: ("\xe9", 0, 1, "bad"),
    BaseExceptionGroup: ("g", [KeyboardInterrupt()]),
    ExceptionGroup: ("g", [ValueError(1)]),
}


@pytest.mark.parametrize("cls", ERRORS)
def test_every_field_of_a_builtin_exception_comes_back(cls: type[BaseException]) -> None:
    """Whatever fields this Python's have: 3.12 gave ImportError one more."""
    made = [cls(*ARGUMENTS.get(cls, ()))]
    for owner, name, member in members_of(cls):
        if owner in (object, BaseExceptionGroup) or (owner, name) in {(AttributeError, "obj"), (BaseException, "args")}:
            continue
        error = cls(*ARGUMENTS.get(cls, ()))
        # A Unicode error's object is read unchecked by the interpreter.
        first = b"xy" if type(getattr(error, name, None)) is bytes else "x"
        for item in (first, 5, KeyError("k"), True):
            try:
                member.__set__(error, item)
            except (TypeError, ValueError):
                continue
            break
        assert differences(error, cls(*ARGUMENTS.get(cls, ()))) != [], f"{name} was not set"
        made.append(error)
    for error in made:
        assert differences(error, round_trip(error)) == []


def test_a_field_that_this_python_lacks_is_named() -> None:
    stored = crafted("Xbuiltins:ImportError", [], {"name_of_the_future": 1}, {})
    with pytest.raises(CorruptDataError, match="name_of_the_future"):
        Serde().loads_typed(stored)


def test_a_stop_iteration_can_be_raised_again() -> None:
    """The interpreter takes its value unasked if it ends a generator; without any, it would crash."""
    code = """
from threadmark.serde import Serde
class Ending:
    def __iter__(self): return self
    def __next__(self): raise Serde().loads_typed(stored)
def generator():
    print((yield from Ending()))
stored = Serde().dumps_typed(StopIteration())
list(generator())
"""
    path = ":".join(sys.path)
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"None\n")


def test_a_name_that_was_given_to_another_class_is_refused() -> None:
    """Stored under it, the value would be loaded as one of the other."""
    registry = Registry()
    serde = Serde(registry=registry)
    serde.dumps_typed(s.SlotPoint(1))
    registry.register(s.Point, aliases=["serde.specimens:SlotPoint"])
    with pytest.raises(SerializationError, match=r"\[0\]: .*registered as the name of another class"):
        serde.dumps_typed([s.SlotPoint(1)])
    assert serde.loads_typed(serde.dumps_typed(s.Point(1))) == s.Point(1)


def nested(wrap: Callable[[Any], Any], levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: s.Many([inner]),
        lambda inner: s.Registers({1: inner}),
        ValueError,
        lambda inner: s.Model(x=[inner]),
        lambda inner: s.Pair({"k": inner}),
        s.SlotPoint,
        lambda inner: s.attach(s.NamedChild(1), note=inner),
        lambda inner: (inner, bytearray(b"x")),
    ],
)
def test_whatever_depth_is_stored_is_read(wrap: Callable[[Any], Any]) -> None:
    serde, deepest = Serde(), 0
    for levels in (*range(100, 1100, 100), 254, 255, 340, 341, 342, 509, 510, 511, 512, 513, 1022, 1023, 1024):
        try:
            stored = serde.dumps_typed(nested(wrap, levels))
        except SerializationError as error:
            assert "nested deeper" in str(error)
            continue
        assert serde.dumps_typed(serde.loads_typed(stored)) == stored
        deepest = max(deepest, levels)
    assert deepest >= 200
