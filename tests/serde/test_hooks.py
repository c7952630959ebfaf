"""Nothing of a class runs while its values are read, whatever the stored bytes name and wherever they put it."""

import contextlib
import gc
import sys
import types
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pandas as pd  # type: ignore[import-untyped]  # its stubs are a separate package
import pytest
import tzdata  # type: ignore[import-untyped]  # it has data only
from msgpack import ExtType, packb

from serde import canaries
from serde.canaries import BUILTINS, CLASSES, RAN
from serde.catalogue import EXACT
from serde.test_safe import crafted
from threadmark.errors import CorruptDataError, ForbiddenTypeError, SerializationError
from threadmark.serde import Serde

OURS = (CorruptDataError, ForbiddenTypeError, SerializationError)
FAMILIES = "DAMmKSTEXBFYy#VO="
DETAILS: list[tuple[Any, ...]] = [
    (),
    (["x"],),
    ([],),
    ([], ["x"]),
    (["x"], ["x"], 0, 0),
    ([], [], 2, 2),
    (["item"], [], 0, 0),
    ("A",),
    (None,),
    (["x"], "attributes"),
    ("<f8", "C"),
]
STATES: list[tuple[Any, ...]] = [
    (),
    (1,),
    (3,),
    ("1",),
    (b"1",),
    ({"x": 1},),
    ([1, 2],),
    ([2026, 1, 1],),
    ([1, 2, 3],),
    ([], {}, {"x": 1}),
    (["", []], {}, {}),
    ([], {"characters_written": 1}, {"args": 1}, None, None, True),
    (None, {"a": 1}, {"x": 1}),
    ({"x": 1}, 1),
]


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    RAN.clear()
    yield
    assert RAN == []


@pytest.mark.parametrize("letter", FAMILIES)
def test_naming_a_class_runs_nothing_of_it(letter: str) -> None:
    serde = Serde()
    for cls in CLASSES:
        name = f"{canaries.__name__}:{type.__getattribute__(cls, '__qualname__')}"
        for details in DETAILS:
            for state in STATES:
                try:
                    serde.loads_typed(crafted(letter + name, *state, details=details))
                except OURS as error:
                    if "and it is not one" in str(error):
                        break
                finally:
                    assert RAN == [], (name, details, state)


GOOD: list[tuple[str, Any, tuple[Any, ...], tuple[Any, ...]]] = [
    ("D", canaries.Record, (["x"],), (1,)),
    ("D", canaries.Slotted, (["x"],), (1,)),
    ("D", canaries.NotedRecord, (["x"],), (1,)),
    ("A", canaries.AttrsRecord, (["x"],), (1,)),
    ("S", canaries.NotedStruct, (["x"],), (1,)),
    ("S", canaries.TextAnnotated, (["x"],), (1,)),
    ("M", canaries.Model, (["x"], ["x"], 0, 0), (1,)),
    ("T", canaries.Pair, (["x"],), (1,)),
    ("E", canaries.Choice, ("A",), ()),
    ("E", canaries.Flags, (None,), (3,)),
    ("X", canaries.ERRORS["Exception"], (), ([1], {}, {"x": 1})),
    ("X", canaries.ERRORS["OSError"], (), ([1], {"errno": 1}, {})),
    (
        "X",
        canaries.ERRORS["group"],
        (),
        (["", [[ExtType(84, packb(["Xbuiltins:ValueError"])), [], {}, {}]]], {}, {}),
    ),
    ("B", BUILTINS["str"], (), ("a", {"x": 1})),
    ("B", BUILTINS["dict"], (), ({"a": 1}, {"x": 1})),
    ("B", BUILTINS["deque"], (), ([None, 1],)),
    ("B", BUILTINS["datetime"], (), ([ExtType(84, b"t"), 2026, 1, 1, 1, 1, 1, 1],)),
    ("F", BUILTINS["defaultdict"], (), (None, {"a": 1}, {"x": 1})),
]
"""Values of those classes that can be read: the beginning of the mark, the class, details and state."""


def test_values_of_those_classes_are_read() -> None:
    """So that the test above is none of refusals only."""
    for letter, cls, details, state in GOOD:
        name = f"{canaries.__name__}:{cls.__qualname__}"
        value = Serde().loads_typed(crafted(letter + name, *state, details=details))
        assert type(value) is cls


def _instances() -> list[Any]:
    """Crafted instances of classes with every hook, one of each sort that a reader might convert."""
    content = {
        "str": "UTC",
        "int": 1,
        "float": 1.0,
        "bytes": b"12345678",
        "list": [1],
        "dict": {"a": 1},
        "bytearray": b"1",
    }
    name = f"{canaries.__name__}:"
    made = [[ExtType(84, packb([f"B{name}My_{base}"])), value] for base, value in content.items()]
    return [*made, [ExtType(84, packb([f"D{name}Record", ["x"]])), 1]]


def _with_one_replaced(tree: Any, other: Any) -> Iterator[Any]:
    """The same tree with each of its parts replaced by another, one at a time; marks stay."""
    if isinstance(tree, list):
        for location, part in enumerate(tree):
            if not isinstance(part, ExtType):
                yield from (
                    [*tree[:location], new, *tree[location + 1 :]] for new in (other, *_with_one_replaced(part, other))
                )
    elif isinstance(tree, dict):
        for key, part in tree.items():
            yield from ({**tree, key: new} for new in (other, *_with_one_replaced(part, other)))


def _trees() -> dict[str, Any]:
    """One small encoding of each kind, by name, without references that a replaced part could take away."""
    serde, found = Serde(), {}
    for group, kinds in EXACT.items():
        for name, make in kinds.items():
            tag, encoded = serde.dumps_typed(make())
            if tag == "t" and len(encoded) < 600:
                with contextlib.suppress(TypeError):  # a key that is an object
                    found[f"{group}: {name}"] = msgpack.unpackb(
                        encoded, strict_map_key=False, unicode_errors="surrogatepass"
                    )
    return found


TREES = _trees()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TREES)
def test_an_instance_in_the_place_of_any_part_is_not_asked_anything(name: str) -> None:
    serde, ended = Serde(), set()
    for other in _instances():
        for tree in _with_one_replaced(TREES[name], other):
            try:
                packed = packb(tree, unicode_errors="surrogatepass")
            except (TypeError, ValueError):  # it was a key
                continue
            try:
                serde.loads_typed(("t", packed))
                ended.add("value")
            except OURS:
                ended.add("error")
            assert RAN == [], tree
    assert ended or TREES[name] == [] or not list(_with_one_replaced(TREES[name], 1))


class TestGenericModels:
    """A model is found at the place of the program's own; no name makes one, unless all of its classes are listed."""

    def test_are_not_made(self) -> None:
        for name in ("Generic1[builtins:int]", "PlainBox[serde.canaries:Schemed]", "PlainBox[builtins:float]"):
            with pytest.raises(ForbiddenTypeError, match="has not made this model"):
                Serde().loads_typed(crafted(f"Mserde.canaries:{name}", 1, details=(["item"], [], 0, 0)))

    def test_are_found_once_the_program_made_them(self) -> None:
        made = canaries.PlainBox[bytes]
        value = Serde().loads_typed(
            crafted("Mserde.canaries:PlainBox[builtins:bytes]", 1, details=(["item"], [], 0, 0))
        )
        assert type(value) is made

    def test_are_made_of_listed_classes(self) -> None:
        serde = Serde(allow=["serde.canaries:PlainBox"])
        loaded = serde.loads_typed(
            crafted("Mserde.canaries:PlainBox[builtins:complex]", 1, details=(["item"], [], 0, 0))
        )
        assert type(loaded) is canaries.PlainBox[complex]

    def test_of_other_classes_are_not(self) -> None:
        for name in ("serde.canaries:Record[builtins:int]", "builtins:list[builtins:int]", "typing:List[builtins:int]"):
            for serde in (Serde(), Serde(allow=["serde.canaries:*"])):
                with pytest.raises(OURS):
                    serde.loads_typed(crafted(f"M{name}", 1, details=(["item"], [], 0, 0)))


def test_put_refuses_what_would_run_when_it_is_read() -> None:
    both = canaries.SetFlags.A | canaries.SetFlags.B
    several = canaries.NumberFlags(1) | canaries.NumberFlags(2)
    values = [canaries.Posted(), canaries.WithDel(), canaries.LoudRecord(), both, several]
    for value in values:
        with pytest.raises(OURS, match="register"):
            Serde().dumps_typed(value)
    del value, values
    gc.collect()
    RAN.clear()


def test_a_module_that_waits_for_its_first_use_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            RAN.append(f"module {name}")
            return super().__getattribute__(name)

    monkeypatch.setitem(sys.modules, "threadmark_waiting", Waiting("threadmark_waiting"))
    with pytest.raises(ForbiddenTypeError, match="no such class"):
        Serde().loads_typed(crafted("Dthreadmark_waiting:Point", 1, details=(["x"],)))


# The folder in which possible zones are looked up.
TZDATA = (*(f"open {path}" for path in (*zoneinfo.TZPATH, Path(tzdata.__file__).parent)), "import tzdata")
OPENED: list[str] = []
LISTENING = [False]


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if LISTENING[0] and event in ("open", "import", "os.system", "subprocess.Popen", "socket.connect"):
        OPENED.append(f"{event} {arguments[0]}")


sys.addaudithook(_listen)

# pandas and dateutil take names of zones for those of files.
FILES = ["dateutil/{}", "tzfile('{}')", "pytz/{}", "{}", "../../../../../../../../{}", "Europe/../../../../../../{}"]
FILES += [
    "./Europe/Paris",
    "Europe//Paris",
    "Europe\\Paris",
    "C:Paris",
    "",
    "/",
    ".",
    "..",
    "Europe/Paris\0",
    "dateutil/",
]


@pytest.mark.parametrize("name", FILES)
def test_the_name_of_a_zone_opens_no_file(name: str, tmp_path: Any) -> None:
    target = tmp_path / "zone"
    target.write_bytes(b"TZif2" + bytes(39))
    zone = name.format(target)
    moment = [ExtType(84, packb(["#numpy:datetime64", "<M8[us]", "C"])), bytes(8)]
    moments = [ExtType(84, packb(["Ynumpy:ndarray", "<M8[us]", "C"])), [1], bytes(8)]
    named = [ExtType(84, b"Z"), zone]
    clock = [2026, 1, 2, 3, 4, 5, 6]
    beside = [*named, False]
    bad: list[Any] = [named, beside]
    for each in (zone, named, beside):
        bad += [
            [ExtType(84, packb(["Vpandas:Timestamp"])), moment, each],
            [ExtType(84, packb(["Vpandas:DatetimeIndex"])), ["zoned", moments, each], None, None],
            [ExtType(84, b"T"), *clock, each],
            [ExtType(84, b"k"), *clock[3:], each],
        ]
    serde = Serde()
    for value in bad:
        OPENED.clear()
        LISTENING[0] = True
        try:
            with pytest.raises(CorruptDataError):
                serde.loads_typed(("t", packb(value)))
        finally:
            LISTENING[0] = False
        assert [event for event in OPENED if not event.startswith(TZDATA)] == []


def test_zones_that_there_are_come_back() -> None:
    serde = Serde()
    for name in sorted(zoneinfo.available_timezones())[::7]:
        zone = zoneinfo.ZoneInfo(name)
        assert serde.loads_typed(serde.dumps_typed(zone)) is zone
    moment = pd.Timestamp("2026-03-29 02:30", tz="UTC").tz_convert(zoneinfo.ZoneInfo("Europe/Paris"))
    assert serde.loads_typed(serde.dumps_typed(moment)) == moment


def test_every_kind_is_among_those_that_are_tried() -> None:
    """A kind that is added needs a specimen here too."""
    from threadmark.serde.dispatch import Dispatch
    from threadmark.serde.registry import Registry

    dispatch: Any = Dispatch(Registry(), Serde()._dispatch._classes)
    letters = {letter.decode() for letter in dispatch._kind_readers}
    tried = {mark.data.decode() for tree in TREES.values() for mark in _marks(tree) if len(mark.data) == 1}
    assert letters - tried <= {"W"}  # there are no WindowsPaths here
    families = set(dispatch._families.by_code())
    assert families <= set(FAMILIES)
    found = {msgpack.unpackb(mark.data)[0][0] for tree in TREES.values() for mark in _marks(tree) if len(mark.data) > 2}
    assert families - found == set()


def _marks(tree: Any) -> Iterator[ExtType]:
    if isinstance(tree, ExtType):
        yield tree
    for part in tree if isinstance(tree, list) else tree.values() if isinstance(tree, dict) else ():
        yield from _marks(part)


def test_masks_and_fill_values_are_not_converted() -> None:
    """An array of objects as a mask would be asked for truth, as a fill value for a number."""
    asked = [ExtType(84, packb(["Dserde.canaries:Record", ["x"]])), 1]
    objects = [ExtType(84, packb(["Ynumpy:ndarray", "|O", "C"])), [1], [asked]]
    single = [ExtType(84, packb(["Ynumpy:ndarray", "|O", "C"])), [], [asked]]
    numbers = [ExtType(84, packb(["Ynumpy:ndarray", "<f8", "C"])), [1], bytes(8)]
    for mask, fill in ((objects, None), (None, single), (single, None), (None, objects)):
        with pytest.raises(CorruptDataError):
            Serde().loads_typed(crafted("ynumpy.ma:MaskedArray", numbers, mask, fill, False))
