"""Values are readable without their classes, and nothing is imported for it."""

import json
import subprocess
import sys
from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pydantic
import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command, Interrupt, Send

from serde import canaries
from serde import specimens as s
from serde.test_exact import KINDS, PLACES
from serde.test_hooks import GOOD
from serde.test_safe import crafted
from threadmark.errors import CorruptDataError, SerializationError
from threadmark.serde import Registry, Serde
from threadmark.serde.families import installed_entries
from threadmark.serde.showing import _FAMILIES
from threadmark.serde.steps import NOTHING, Index, Key, Name, Slice, items_of, taken
from threadmark.types import ObjectView
from threadmark_langgraph.values import register_values

SHOWING = Serde().showing()

CHILD = """
import hashlib, json, sys
from base64 import b64decode
from threadmark.serde import Serde
from threadmark.types import ObjectView

def described(value):
    if type(value) is ObjectView:
        return f"{value.name}{described(value.fields)}"
    if isinstance(value, dict):
        return f"{type(value).__name__}{[(described(key), described(item)) for key, item in value.items()]}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}{[*map(described, value)]}"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}{sorted(map(described, value))}"
    return repr(value)

serde = Serde(allow=[], dangerously_import_anything=True).showing()
before = set(sys.modules)
shown = [
    hashlib.sha256(described(serde.loads_typed((tag, b64decode(encoded)))).encode(errors="surrogatepass")).hexdigest()
    for tag, encoded in json.load(sys.stdin)
]
imported = [name for name in set(sys.modules) - before if name.partition(".")[0] not in ("tzdata", "importlib")]
print(json.dumps([shown, imported]))
"""


def shown(value: Any) -> Any:
    return SHOWING.loads_typed(Serde().dumps_typed(value))


def in_a_process(*imports: str) -> tuple[list[str], list[str]]:
    """A process's views of every kind in every place, and the modules that it imported."""
    places = [PLACES[name] for name in ("in a list", "in a dataclass", "in a subclass of list")]
    values = [Serde().dumps_typed(put_into(make())) for make in KINDS.values() for put_into in places]
    given = json.dumps([(tag, b64encode(encoded).decode()) for tag, encoded in values])
    lines = "".join(f"import {name}\n" for name in imports)
    run = subprocess.run([sys.executable, "-c", lines + CHILD], input=given, capture_output=True, text=True, check=True)
    found, imported = json.loads(run.stdout)
    assert len(found) == len(values) > 300
    return found, imported


def test_every_kind_is_shown_without_importing_and_the_same_where_its_class_is_imported() -> None:
    without, imported = in_a_process()
    assert imported == []
    with_classes, _ = in_a_process("numpy", "pandas", "pydantic.v1", "attrs", "msgspec", "langchain_core.messages")
    assert without == with_classes


def test_nothing_of_a_class_runs_that_is_imported() -> None:
    canaries.RAN.clear()
    read = 0
    for letter, cls, details, state in GOOD:
        name = f"{canaries.__name__}:{cls.__qualname__}"
        crafted_value = crafted(letter + name, *state, details=details)
        assert SHOWING.loads_typed(crafted_value).name == name
        assert SHOWING.loads_part(crafted_value, [Name("x")]) is not None
        assert canaries.RAN == []
        read += 1
    assert read > 10


def test_an_object_is_shown_by_the_name_of_its_class_and_its_fields() -> None:
    message = shown([AIMessage("Hi", id="1")])[0]
    assert message.name == "langchain_core.messages.ai:AIMessage"
    assert message.fields["content"] == "Hi"
    assert repr(message).startswith("AIMessage(content='Hi', ")
    module = s.__name__
    assert shown(s.Point(1, [2])) == ObjectView(f"{module}:Point", {"x": 1, "y": [2]})
    assert repr(shown(s.Pair(1, "x"))) == "Pair(left=1, right='x')"
    assert shown(s.Colour.RED) == ObjectView(f"{module}:Colour", {"name": "RED"})
    assert shown(s.Rights(3)) == ObjectView(f"{module}:Rights", {"value": 3})
    assert shown(s.attach(s.Many([1]), note="x")) == ObjectView(f"{module}:Many", {"0": [1], "note": "x"})
    assert shown(s.Defaults(int, {"a": 1})) == ObjectView(
        f"{module}:Defaults", {"0": {"a": 1}, "default_factory": "builtins:int"}
    )
    assert shown(KeyError("a", 1)) == ObjectView("builtins:KeyError", {"args": ("a", 1)})
    assert shown(OSError(2, "no", "f")).fields == {"args": (2, "no"), "errno": 2, "strerror": "no", "filename": "f"}
    model = s.Extra(x=1, more=[1])  # type: ignore[call-arg]  # extra values are allowed
    assert shown(model).fields == {"x": 1, "more": [1]}
    assert shown(s.attach(s.Hidden(theName=3, secret=4), _private=[9])).fields["_private"] == [9]


def test_arrays_and_numbers_of_numpy_are_described() -> None:
    array = shown(np.arange(6.0).reshape(2, 3))
    assert {**array.fields, "0": len(array.fields["0"])} == {"dtype": "<f8", "shape": (2, 3), "order": "C", "0": 48}
    assert repr(array) == "ndarray(dtype='<f8', shape=(2, 3), order='C', <48 bytes>)"
    assert shown(np.float32(1.5)).fields == {"0": 1.5, "dtype": "<f4"}
    assert shown(np.str_("a")).fields == {"0": "a"}


def test_langgraphs_values_are_shown() -> None:
    registry = Registry()
    register_values(registry)
    encoded = Serde(registry=registry).dumps_typed(
        [Send("node", {"a": 1}), Interrupt("why?", id="i"), Command(goto="x")]
    )
    send, interrupt, command = SHOWING.loads_typed(encoded)
    assert send.name == "langgraph.types:Send"
    assert send.fields["node"] == "node"
    assert interrupt.fields["value"] == "why?"
    assert command.fields["goto"] == "x"


def test_what_is_registered_or_of_a_kind_that_no_package_here_has_is_numbered() -> None:
    registry = Registry()
    registry.register(s.Point, "point", lambda point: [point.x, point.y], lambda state: s.Point(*state))
    assert SHOWING.loads_typed(Serde(registry=registry).dumps_typed(s.Point(1, 2))) == ObjectView(
        "point", {"0": [1, 2]}
    )


def test_sets_and_dictionaries_of_objects_are_such() -> None:
    points = {s.FrozenPoint(1), s.FrozenPoint(2)}
    again = shown(points)
    assert again == shown({s.FrozenPoint(2), s.FrozenPoint(1)})
    assert len(again) == 2
    assert shown({s.Colour.RED: 1, (s.Colour.GREEN, 2): 3})[shown(s.Colour.RED)] == 1
    assert shown({s.FrozenModel(x=1): 2}) == {shown(s.FrozenModel(x=1)): 2}


@dataclass(eq=False)
class Identified:
    """Objects of this class equal nothing but themselves."""

    number: int


def test_a_set_of_objects_that_look_the_same_loses_none() -> None:
    assert len(shown({Identified(1), Identified(1)}).fields["0"]) == 2


def test_a_moment_in_a_zone_of_a_class_is_shown_with_it() -> None:
    meeting = s.Meeting.model_validate_json('{"when": "2026-11-21T09:00:00+01:00", "daily": "09:00:00-03:30"}')
    assert shown(meeting).fields["when"] == datetime.fromisoformat("2026-11-21T09:00:00+01:00")


def test_a_secret_is_not_in_the_text_of_what_is_shown() -> None:
    assert "hush" not in repr(shown([pydantic.SecretStr("hush")]))


def test_equal_objects_are_shown_as_equals_with_one_hash() -> None:
    different = 0
    for kind, make in KINDS.items():
        if kind == "Single values: Decimal":  # a signaling NaN cannot be compared at all
            continue
        one, other = shown(s.Point(make())), shown(s.Point(make()))
        different += one != other  # if there is a NaN
        assert one != other or hash(one) == hash(other), kind
    assert different < 10
    assert hash(shown(s.Point({1}))) == hash(shown(s.Point(frozenset({1}))))
    assert hash(shown(s.Point(b"a"))) == hash(shown(s.Point(bytearray(b"a"))))
    assert hash(shown(s.Point(1))) == hash(shown(s.Point(True)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_what_the_whole_has_there(kind: str) -> None:
    for put_into in PLACES.values():
        encoded = Serde().dumps_typed(put_into(KINDS[kind]()))
        whole = SHOWING.loads_typed(encoded)
        for step in (Name("x"), Name("y"), Name("args"), Name("a"), Key("a"), Index(0), Index(-1), Slice(0, 1)):
            expected, part = taken(whole, [step]), SHOWING.loads_part(encoded, [step])
            assert (part is NOTHING) == (expected is NOTHING), step
            assert repr(part) == repr(expected) or expected is NOTHING or "set" in kind, step
        items, found = SHOWING.loads_items(encoded), items_of(whole)
        if items is not None and found is not None:
            assert repr(items.between(0, len(items))) == repr(found) or "set" in kind


def test_a_shown_object_is_refused_with_its_place_and_the_way_out() -> None:
    for serde in (Serde(), SHOWING):
        with pytest.raises(SerializationError, match=r"\['plan'\]\[1\].*without_classes") as refused:
            serde.dumps_typed({"plan": [1, ObjectView("app:Plan", {})]})
        assert refused.value.location == "['plan'][1]"
    assert SHOWING.dumps_typed(s.Point(1)) == Serde().dumps_typed(s.Point(1))


def test_damaged_bytes_are_an_error() -> None:
    tag, encoded = Serde().dumps_typed([s.Point(1, [2]), s.Colour.RED, np.arange(3), KeyError(1), s.Model(y=5)])
    for cut in range(len(encoded)):
        with pytest.raises(CorruptDataError):
            SHOWING.loads_typed((tag, encoded[:cut]))


def test_every_family_has_its_way_to_be_shown() -> None:
    own = {family.code for entry in installed_entries()[:2] for family in entry.load()}
    codes = {code for code in Serde()._dispatch._families.by_code() if len(code) == 1} | own | {"="}
    assert codes - {"O"} == _FAMILIES.keys()


def test_the_serializer_says_that_it_shows() -> None:
    assert repr(Serde(allow=["a:B"]).showing()) == "Serde(allow=['a:B']).showing()"
    assert repr(Serde(allow=["a:B"]).showing().allowing(["c:D"])) == "Serde(allow=['a:B', 'c:D']).showing()"
