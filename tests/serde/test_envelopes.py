"""Values that a packer would write without asking are refused, with their place, by both packers."""

from collections.abc import Callable
from typing import Any

import msgpack
import ormsgpack
import pytest

from serde import specimens as s
from serde.packers import PACKERS, use
from serde.sameness import same
from threadmark.errors import SerializationError
from threadmark.serde import Registry, Serde, encoder, wire

MARK = wire.new_pack(lambda _: None)(["Dserde.specimens:Point", ["x", "y"]])
ENVELOPES: dict[str, Callable[[], Any]] = {
    "an extension": lambda: ormsgpack.Ext(5, b"x"),
    "an extension that is a mark": lambda: ormsgpack.Ext(wire.MARK_CODE, MARK),
    "a fragment": lambda: ormsgpack.Fragment(b"\x93\x01\x02\x03"),
    "a timestamp": lambda: msgpack.Timestamp(1),
}
PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "alone": (lambda value: value, ""),
    "in a list": (lambda value: [1, [value]], "[1][0]"),
    "at the head of a list, as a mark is": (lambda value: [value, 1, 2], "[0]"),
    "in a dict": (lambda value: {"a": {"b": value}}, "['a']['b']"),
    "in a dict with other keys": (lambda value: {1: value}, "[1]"),
    "as a key": (lambda value: {value: 1}, "{key}"),
    "in a tuple": (lambda value: {"k": (value,)}, "['k'][0]"),
    "in a set": (lambda value: [{value}], "[0][0]"),
    "in a dataclass": (lambda value: [s.Point([value])], "[0].x[0]"),
    "in a model": (lambda value: s.Model(y={"k": value}), ".y['k']"),
    "beside a bytearray": (lambda value: [bytearray(b"x"), value], "[1]"),
    "beside a surrogate": (lambda value: ["\ud800", value], "[1]"),
}


@pytest.fixture(params=PACKERS)
def _packer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(request.param, monkeypatch)


@pytest.mark.usefixtures("_packer")
@pytest.mark.parametrize("location", PLACES)
@pytest.mark.parametrize("envelope", ENVELOPES)
def test_an_envelope_is_refused_with_its_place(envelope: str, location: str) -> None:
    serde = Serde()
    wrap, where = PLACES[location]
    serde.dumps_typed([s.Point(1)])
    with pytest.raises(SerializationError) as refused:
        serde.dumps_typed(wrap(ENVELOPES[envelope]()))
    assert refused.value.location == where
    assert "cannot be stored" in str(refused.value)


@pytest.mark.usefixtures("_packer")
def test_an_extension_of_msgpack_is_a_named_tuple() -> None:
    value = [msgpack.ExtType(wire.MARK_CODE, MARK), 1, 2]
    assert same(value, Serde().loads_typed(Serde().dumps_typed(value)))


@pytest.mark.usefixtures("_packer")
def test_one_that_a_registered_function_returns_is_refused() -> None:
    registry = Registry()
    registry.register(s.Data, "data", lambda data: {"k": [ormsgpack.Ext(5, bytes(data))]}, s.Data)
    with pytest.raises(SerializationError, match=r"ormsgpack\.Ext cannot be stored"):
        Serde(registry=registry).dumps_typed([s.Data(b"x")])


@pytest.mark.usefixtures("_packer")
def test_one_that_was_registered_is_stored() -> None:
    registry = Registry()
    registry.register(ormsgpack.Ext, "ext", lambda _: b"x", lambda content: ormsgpack.Ext(5, content))
    serde = Serde(registry=registry)
    number, extension = serde.loads_typed(serde.dumps_typed([1, ormsgpack.Ext(5, b"x")]))
    assert (number, type(extension)) == (1, ormsgpack.Ext)


def test_our_own_marks_are_not_taken_for_envelopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or values with marks would all be packed once more, behind shields."""
    use("msgpack", monkeypatch)
    monkeypatch.setattr(encoder, "_shielded", lambda _: pytest.fail("shielded"))
    assert Serde().dumps_typed([s.Point(1), {s.Colour.RED: (2,)}])[0] == "t"
