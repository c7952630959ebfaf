"""What a packer would write without asking is refused, with its place, whichever packer is installed."""

import gc
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgpack
import ormsgpack
import pytest

from serde import specimens as s
from serde.packers import PACKERS, use
from serde.sameness import same
from threadmark.errors import SerializationError
from threadmark.serde import Registry, Serde, encoder, wire
from threadmark.serde.buffers import holds_buffer_or_envelope
from threadmark.serde.envelopes import Instances

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


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was looked through, value by value, because ormsgpack would not ask about all of it."""
    use("ormsgpack", monkeypatch)
    found: list[Any] = []

    def looking(roots: Any) -> bool:
        found.append(roots)
        return holds_buffer_or_envelope(roots)

    monkeypatch.setattr(encoder, "holds_buffer_or_envelope", looking)
    return found


def settled() -> Serde:
    """A serializer, when nothing is left of what others did with envelopes."""
    gc.collect()
    wire.INSTANCES.count()
    return Serde()


def test_values_are_not_looked_through_where_there_is_no_envelope(looks: list[Any]) -> None:
    """Looking takes longer than packing."""
    serde = settled()
    threads = [threading.Thread(target=lambda: [serde.dumps_typed([s.Point(1)]) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(50):
        serde.dumps_typed({"k": [s.Point(number), s.Model(x=number)]})
    for thread in threads:
        thread.join()
    assert looks == []


def test_our_own_marks_are_not_taken_for_envelopes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ormsgpack, values with marks would all be packed once more, behind shields."""
    use("msgpack", monkeypatch)
    monkeypatch.setattr(encoder, "_shielded", lambda _: pytest.fail("shielded"))
    assert Serde().dumps_typed([s.Point(1), {s.Colour.RED: (2,)}])[0] == "t"


def test_an_envelope_elsewhere_costs_a_look_until_it_is_gone(looks: list[Any]) -> None:
    serde, elsewhere = settled(), [ormsgpack.Ext(5, b"x")]
    serde.dumps_typed([1])
    assert len(looks) == 1
    elsewhere.clear()
    serde.dumps_typed([1])
    assert len(looks) == 1


def test_a_modules_name_for_the_class_is_not_taken_for_an_instance(looks: list[Any]) -> None:
    """Not for long; and an instance that comes when the name goes is one all the same."""
    serde = settled()
    module = ModuleType("serde_with_names")
    module.Ext, module.Again = ormsgpack.Ext, ormsgpack.Ext  # type: ignore[attr-defined]  # as an import would
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        wire.INSTANCES._wrong_suspicions = 0
        for _ in range(20):
            serde.dumps_typed([1])
        assert len(looks) == 1
    vars(module).clear()
    serde.dumps_typed([1])
    with pytest.raises(SerializationError):
        serde.dumps_typed([ormsgpack.Ext(5, b"x")])


def test_a_local_name_that_goes_makes_no_room_for_an_instance() -> None:
    serde, name = settled(), [ormsgpack.Ext, ormsgpack.Fragment]
    wire.INSTANCES._wrong_suspicions = 0
    serde.dumps_typed([1])
    name.clear()
    for envelope in (ormsgpack.Ext(5, b"x"), ormsgpack.Fragment(b"\x01")):
        with pytest.raises(SerializationError):
            serde.dumps_typed([envelope])


def may_be_more(instances: Instances, known: int) -> bool:
    """What the encoder would be told if this many instances were its own."""
    return instances.may_be_more(instances._references() - known)


def test_instances_from_before_the_count_are_counted() -> None:
    gc.collect()
    held = [ormsgpack.Ext(5, b"x") for _ in range(3)]
    instances, known = Instances({ormsgpack.Ext: (5, b"")}), len(wire.FAST_MARKS)
    assert may_be_more(instances, known + 3)
    instances.count()
    assert may_be_more(instances, known + 2)
    assert not may_be_more(instances, known + 3)
    held.pop()
    assert not may_be_more(instances, known + 2)


def test_where_instances_cannot_be_counted_there_always_seem_to_be_some() -> None:
    """Those of a class made in C before the interpreter started hold no reference to it."""
    instances = Instances({bytearray: (b"",)})
    for _ in range(3):
        instances.count()
        assert may_be_more(instances, 0)
