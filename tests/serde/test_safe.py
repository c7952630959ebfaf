"""Stored bytes choose values, never code: whatever they name, nothing of it runs, and nothing is imported."""

import sys
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # its stubs are a separate package
import pytest
from msgpack import ExtType, packb

from serde import specimens as s
from threadmark.errors import ConfigError, CorruptDataError, ForbiddenTypeError, SerializationError
from threadmark.serde import Registry, Serde


def crafted(head: str, *items: Any, details: tuple[Any, ...] = ()) -> tuple[str, bytes]:
    """A typed array as an attacker would write it."""
    payload = head.encode() if len(head) == 1 else packb([head, *details])
    return "t", packb([ExtType(84, payload), *items])


def test_what_put_refuses_has_no_mark_of_its_own() -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(crafted("v", 1))
    with pytest.raises(SerializationError, match="factory"):
        Serde().dumps_typed(defaultdict(memoryview))  # type: ignore[arg-type]  # the very mistake


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that would leave a file behind if it were imported."""
    sprung = tmp_path / "sprung"
    source = f"""
        from dataclasses import dataclass
        from pathlib import Path

        Path({str(sprung)!r}).touch()

        @dataclass
        class Bait:
            x: int
    """
    (tmp_path / "threadmark_trap.py").write_text(textwrap.dedent(source))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "threadmark_trap", raising=False)
    return sprung


# CVE-2025-64439, CVE-2026-28277, CVE-2026-48775: the peers called functions that the data named.
CALLABLES = [
    "os:system",
    "builtins:eval",
    "subprocess:Popen",
    "pathlib:Path.unlink",
    "functools:partial",
    "os:path.join",
]


@pytest.mark.parametrize("name", CALLABLES)
@pytest.mark.parametrize("letter", "EMmDASTBXKYyV#FO=")
def test_no_family_takes_a_name_that_is_not_of_it(letter: str, name: str) -> None:
    variants: list[tuple[Any, ...]] = [(), (["x"],), (["x"], [], 0, 0), ("RED",), (None,), ("<f8", "C")]
    for details in variants:
        with pytest.raises((CorruptDataError, ForbiddenTypeError, SerializationError)):
            Serde().loads_typed(crafted(letter + name, "echo crafted", details=details))


@pytest.mark.parametrize("method", ["model_validate_json", "parse_raw", "parse_file", "__init__", "construct"])
def test_a_method_cannot_be_named(method: str) -> None:
    with pytest.raises((CorruptDataError, ForbiddenTypeError)):
        Serde().loads_typed(crafted(f"Mserde.specimens:Model.{method}", "{}", details=(["x"], [], 0, 0)))


@pytest.mark.parametrize("head", ["Dthreadmark_trap:Bait", "Ethreadmark_trap:Bait", "Mthreadmark_trap:Bait"])
def test_a_stored_name_imports_nothing(trap: Path, head: str) -> None:
    with pytest.raises(ForbiddenTypeError, match="import it before loading"):
        Serde().loads_typed(crafted(head, 1, details=(["x"],)))
    assert not trap.exists()


def test_a_name_on_the_allowlist_is_imported(trap: Path) -> None:
    loaded = Serde(allow=["threadmark_trap:Bait"]).loads_typed(crafted("Dthreadmark_trap:Bait", 1, details=(["x"],)))
    assert loaded.x == 1
    assert trap.exists()


def test_importing_anything_must_be_asked_for_by_its_name(trap: Path) -> None:
    serde = Serde(dangerously_import_anything=True)
    assert serde.loads_typed(crafted("Dthreadmark_trap:Bait", 1, details=(["x"],))).x == 1
    assert trap.exists()


# CVE-2025-64439 began in a second, weaker format that the decoder fell back to.
@pytest.mark.parametrize("tag", ["json", "pickle", "msgpack", "null", "bytes", "", "T"])
def test_there_is_no_other_format(tag: str) -> None:
    with pytest.raises(CorruptDataError, match="tag"):
        Serde().loads_typed((tag, b"cos\nsystem\n(S'true'\ntR."))


# CVE-2026-27794: a blob of one kind was read as pickle.
def test_pickled_bytes_are_not_unpickled() -> None:
    for tag in ("m", "t"):
        with pytest.raises(CorruptDataError):
            Serde().loads_typed((tag, b"cos\nsystem\n(S'true'\ntR."))


@pytest.mark.parametrize(
    "arguments",
    [
        "builtins:list[os:system]",
        "builtins:list[]",
        "os:system[builtins:int]",
        "serde.specimens:Point[builtins:int]",
        "typing:Union[]",
        "typing:cast[builtins:int,builtins:str]",
        "types:UnionType[serde.specimens:Model,x]",
        "builtins:list[" * 60 + "os:system" + "]" * 60,
    ],
)
def test_type_arguments_are_classes_and_what_typing_makes_of_them(arguments: str) -> None:
    with pytest.raises((CorruptDataError, ForbiddenTypeError)):
        Serde().loads_typed(crafted(f"Mserde.specimens:Box[{arguments}]", 1, details=(["item"], [], 0, 0)))


def test_a_nested_class_is_read_from_the_namespace_and_not_by_attribute() -> None:
    """A metaclass, a descriptor or a module's `__getattr__` would otherwise run."""
    for name in ("serde.specimens:Point.__class__", "serde.specimens:Computed.double", "numpy:testing"):
        with pytest.raises((CorruptDataError, ForbiddenTypeError)):
            Serde().loads_typed(crafted("D" + name, 1, details=(["x"],)))


def test_a_class_answers_to_its_own_name_only() -> None:
    """Imported names are other names for a class: `serde.test_safe:s` would be a way round the allowlist."""
    with pytest.raises(ForbiddenTypeError):
        Serde().loads_typed(crafted("Eserde.specimens:enum.Enum", details=("A",)))


@pytest.mark.parametrize("items", [(), (1, 2, 3), ({"x": 1},), (b"",), ([],)])
@pytest.mark.parametrize("head", ["Dserde.specimens:Point", "Sserde.specimens:Struct", "Tserde.specimens:Pair"])
def test_items_that_do_not_fit_the_mark_are_corrupt(head: str, items: tuple[Any, ...]) -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(crafted(head, *items, details=(["x", "y"] if "Point" in head else ["left", "right"],)))


def test_an_array_is_read_as_this_module_crafts_it() -> None:
    """So that the crafted ones below fail for their faults."""
    loaded = Serde().loads_typed(crafted("Ynumpy:ndarray", [1], b"\0" * 8, details=("<f8", "C")))
    assert np.array_equal(loaded, [0.0])


def test_arrays_of_objects_cannot_be_made_of_bytes() -> None:
    """Bytes taken for pointers would crash the process."""
    shape = [["a", "O", 0]]
    for dtype in ("O", "|O", ["fields", shape, 8, False], ["items", "O", [1]]):
        with pytest.raises(CorruptDataError):
            Serde().loads_typed(crafted("Ynumpy:ndarray", [1], b"\1" * 8, details=(dtype, "C")))


HUGE = 0xCECECECE
CONFUSED = [
    *[
        ("b", HUGE),
        ("i", [1] * 9),
        ("x", 1),
        ("x", (1,)),
        ("/", 1.5, 2),
        ("c", "1", "2"),
        ("u", "0" * 32),
        ("q", "a"),
    ],
    *[
        ("d", None, [(1, 2)]),
        ("d", HUGE, {}),
        ("o", [[1, 2]]),
        ("m", [1]),
        ("m", "a"),
        ("n", "abab"),
        ("h", 1),
    ],
    *[
        ("r", 0, "a", 1),
        ("a", "z", 4, b"abcd"),
        ("a", "B", 1, HUGE),
        ("p", b"a"),
        ("R", 5, 0),
        ("R", "a", 128),
    ],
    *[
        ("4", HUGE),
        ("8", b"1"),
        ("Z", "../../etc/passwd"),
        ("Z", HUGE),
        ("Z", "Europe/Berlin", 0),
        ("Z", "../../etc/passwd", False),
        ("T", 1),
        ("T", 2026, 1, 2, 3, 4, 5, 6, "UTC"),
    ],
    *[("z", 10**15, 0, 0), ("g", 1), ("k", 25, 0, 0, 0)],
]


@pytest.mark.parametrize("confused", CONFUSED, ids=repr)
def test_state_of_another_type_is_corrupt(confused: tuple[Any, ...]) -> None:
    """A number in place of bytes would be taken for a length to allocate."""
    letter, *items = confused
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(crafted(letter, *items))


@pytest.mark.parametrize(
    "name", ["Data", "Buffer", "Text", "Number", "Many", "Row", "Bag", "Registers", "Money", "Queue"]
)
@pytest.mark.parametrize("content", [HUGE, None, "12", b"\1", [1], {"a": 1}, 1.5])
def test_content_of_another_type_is_never_converted(name: str, content: Any) -> None:
    writes = {
        "Data": bytes,
        "Buffer": bytes,
        "Text": str,
        "Number": int,
        "Registers": dict,
        "Money": str,
        "Bag": set,
    }
    if type(content) is writes.get(name, list):
        content = None
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(crafted(f"Bserde.specimens:{name}", content))


def test_a_structured_dtype_without_bytes_is_corrupt() -> None:
    """None is stored; an array of it could be of any length."""
    details = (["fields", [], 0, False], "C")
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(crafted("Ynumpy:ndarray", [2**40], b"", details=details))


@pytest.mark.parametrize("name", ["../../etc/passwd", "Europe/../../passwd", ".", "/etc/passwd"])
def test_the_name_of_a_zone_is_refused_before_a_file_is_looked_for(name: str) -> None:
    with pytest.raises(CorruptDataError, match="is not the name of a time zone"):
        Serde().loads_typed(crafted("Z", name))


@pytest.mark.parametrize("order", [True, 0.0, "0", [0]])
def test_the_order_of_a_multiindex_is_a_number(order: Any) -> None:
    levels = [ExtType(84, packb(["Vpandas:RangeIndex"])), 0, 1, 1, None]
    codes = [ExtType(84, packb(["Ynumpy:ndarray", "|i1", "C"])), [1], b"\0"]
    serde = Serde()
    found = serde.loads_typed(crafted("Vpandas:MultiIndex", [levels], [codes], [None], 0))
    assert type(found) is pd.MultiIndex
    assert found.sortorder == 0
    with pytest.raises(CorruptDataError):
        serde.loads_typed(crafted("Vpandas:MultiIndex", [levels], [codes], [None], order))


@pytest.mark.parametrize("shape", [[2**62, 2**62], [-1], [3], ["a"], [2**63]])
def test_the_shape_of_an_array_must_fit_its_bytes(shape: list[Any]) -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(crafted("Ynumpy:ndarray", shape, b"\1" * 8, details=("<f8", "C")))


@pytest.mark.parametrize(
    "header",
    [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xffT"],
)
@pytest.mark.parametrize("tag", ["m", "t"])
def test_a_length_of_four_gigabytes_is_refused(header: bytes, tag: str) -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed((tag, header + b"\1" * 100))


@pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1a", b"\x92\xd4Tt", b"\x81\x91"])
@pytest.mark.parametrize("tag", ["m", "t"])
def test_a_hundred_thousand_levels_are_refused(level: bytes, tag: str) -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed((tag, level * 100_000 + b"\xc0"))


@pytest.mark.parametrize("blob", [b"", b"\xc1", b"\x92\x01", b"\x01\x02", b"\xa3a", b"\xd4\x05x"])
@pytest.mark.parametrize("tag", ["m", "t"])
def test_bytes_that_are_not_a_value_are_corrupt(blob: bytes, tag: str) -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed((tag, blob))


def test_a_mark_in_another_place_is_corrupt() -> None:
    orphan = ExtType(84, b"t")
    for value in (orphan, [1, orphan], {"a": orphan}, {"a": [1, [orphan, 1], orphan]}):
        with pytest.raises(CorruptDataError):
            Serde().loads_typed(("t", packb(value)))


def test_a_reference_to_no_mark_is_corrupt() -> None:
    with pytest.raises(CorruptDataError):
        Serde().loads_typed(("t", packb([ExtType(84, b"zz"), 1])))


def test_a_defaultdicts_factory_must_be_a_class_of_data() -> None:
    for name in ("subprocess:Popen", "threading:Thread", "builtins:eval", "builtins:open"):
        with pytest.raises((ForbiddenTypeError, CorruptDataError)):
            Serde().loads_typed(crafted("d", name, {}))


class TestTheAllowlist:
    """With `allow`, put and load refuse the same classes, so that nothing is stored that cannot be read."""

    def test_refuses_others_at_put(self) -> None:
        with pytest.raises(ForbiddenTypeError, match=r'\[0\]: .*Serde\(allow=\[\.\.\., "serde\.specimens:Point"\]\)'):
            Serde(allow=[s.Model]).dumps_typed([s.Point(1)])

    def test_refuses_others_at_load(self) -> None:
        stored = Serde().dumps_typed({"a": s.Point(1)})
        with pytest.raises(ForbiddenTypeError, match=r"\['a'\]: serde\.specimens:Point is not allowed here"):
            Serde(allow=[]).loads_typed(stored)

    @pytest.mark.parametrize("allow", [s.Point, "serde.specimens:Point", "serde.specimens:*"])
    def test_takes_classes_and_names(self, allow: Any) -> None:
        serde = Serde(allow=[allow])
        assert serde.loads_typed(serde.dumps_typed(s.Point(1))) == s.Point(1)

    def test_does_not_take_a_prefix(self) -> None:
        for allow in ("serde.specimens:Poin", "serde:*", "serde.specimens:", ":*"):
            with pytest.raises(ForbiddenTypeError):
                Serde(allow=[allow]).dumps_typed(s.Point(1))

    @pytest.mark.parametrize(
        "allow",
        [
            "serde.specimens:Point",
            s.Point,
            5,
            ["serde.specimens.Point"],
            ["*"],
            [None],
            [s.Point(1)],
            [list[int]],
            [s.Box[int]],
        ],
    )
    def test_says_at_once_where_an_entry_can_match_nothing(self, allow: Any) -> None:
        with pytest.raises(ConfigError, match=r"allow .*: write allow=\[TheClass, \"module:Class\", \"module:\*\"\]"):
            Serde(allow=allow)
        with pytest.raises(ConfigError, match="allow"):
            Serde(allow=[]).allowing(allow)

    def test_leaves_builtin_kinds_alone(self) -> None:
        serde = Serde(allow=[])
        value = [{1, "a"}, (2,), ValueError("x"), defaultdict(list), 1 << 99]
        assert str(serde.loads_typed(serde.dumps_typed(value))) == str(value)

    def test_has_room_for_registered_classes(self) -> None:
        registry = Registry()
        registry.register(s.Point)
        serde = Serde(allow=[], registry=registry)
        assert serde.loads_typed(serde.dumps_typed(s.Point(1))) == s.Point(1)

    def test_checks_the_arguments_of_generic_models(self) -> None:
        stored = Serde().dumps_typed(s.Box[s.Model](item=s.Model()))
        with pytest.raises(ForbiddenTypeError):
            Serde(allow=[s.Box]).loads_typed(stored)
        assert Serde(allow=[s.Box, s.Model]).loads_typed(stored).item == s.Model()

    def test_type_arguments_are_checked_at_every_depth(self) -> None:
        """Also inside typing's own forms of them."""
        value = s.Box[dict[str, s.Model | None]](item={})
        for allow in ([s.Box], [s.Model]):
            with pytest.raises(ForbiddenTypeError):
                Serde(allow=allow).loads_typed(Serde().dumps_typed(value))
            with pytest.raises(ForbiddenTypeError):
                Serde(allow=allow).dumps_typed(value)
        serde = Serde(allow=[s.Box, s.Model])
        assert serde.loads_typed(serde.dumps_typed(value)) == value


def test_a_registration_cannot_take_anothers_name() -> None:
    registry = Registry()
    registry.register(s.Point, "point", lambda point: point.x, s.Point)
    with pytest.raises(ConfigError, match="belongs to"):
        registry.register(s.Model, "point", lambda model: model.x, lambda x: s.Model(x=x))
