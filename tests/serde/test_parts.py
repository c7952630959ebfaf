"""Decoding a part of a value equals decoding all of it and taking the part, and reads nothing else."""

import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from msgpack import ExtType, packb

from serde import specimens as s
from serde.catalogue import EXACT
from serde.sameness import same
from threadmark.errors import CorruptDataError, ForbiddenTypeError
from threadmark.serde import Serde
from threadmark.serde.kinds_api import reference_to
from threadmark.serde.registry import Registry
from threadmark.serde.steps import NOTHING, Index, Key, Name, Slice, Step, items_of, taken

SERDE = Serde()
NAMES = ("x", "y", "a", "name", "content", "id", "value", "items", "maxlen", "start", "nobody", "__class__", "real")
STEPS: tuple[Step, ...] = (
    *(Name(name) for name in NAMES),
    *(Key(name) for name in ("a", "x", "", "Straße", "nobody", "__class__")),
    *(Index(number) for number in (0, 1, -1, 7, -8)),
    *(Slice(*ends) for ends in ((None, None), (1, None), (-2, None), (0, 1), (None, -1), (5, 2))),
)


def messages(count: int) -> list[AnyMessage]:
    kinds = (HumanMessage, AIMessage, HumanMessage)
    made: list[AnyMessage] = [kinds[number % 3](f"text {number}", id=f"m{number}") for number in range(count)]
    made[count // 2] = ToolMessage("a result", tool_call_id="t", id="tool")
    return [*made, AIMessage("", id="calls", tool_calls=[{"name": "f", "args": {"a": [1, 2]}, "id": "t"}])]


VALUES: dict[str, Any] = {
    "messages": messages(40),
    "a tuple of messages": tuple(messages(5)),
    "files": {"a.py": {"size": 3, "lines": ["x", "y"]}, "Straße": s.Point(1, [2, 3]), "": None},
    "keys of every sort": {1: "one", (1, 2): "pair", next(iter(s.Word)): "word", b"a": "bytes", "a": "text", None: 0},
    "dictionaries": [OrderedDict(a={"x": [1]}), defaultdict(list, a=[1, 2]), Counter(a=1)],
    "objects": [s.Point(1, {"a": 2}), s.SlotPoint(1, [2]), s.Pair(1, "x"), s.Struct(1, [2]), s.Attr(1, [2])],
    "text": {"a": "Straße \ud800 " * 9, "x": b"bytes"},
    "others": [deque([1, [2], 3], maxlen=3), {1, 2}, range(9), slice(1, 2), Counter(a=1), 3, None, 1.5, "x"],
    "nothing": None,
}


def paths(chance: random.Random, value: Any) -> Iterator[list[Step]]:
    """Steps that mostly lead somewhere."""
    yield []
    for _ in range(30):
        steps: list[Step] = []
        here = value
        for _ in range(chance.randrange(1, 5)):
            steps.append(chance.choice(_fitting(here) if chance.random() < 0.8 else STEPS))
            here = taken(here, steps[-1:])
        yield steps


def _fitting(here: Any) -> tuple[Step, ...]:
    if isinstance(here, dict):
        return tuple(Key(key) for key in here if isinstance(key, str)) or STEPS
    if isinstance(here, (list, tuple)) and here:
        return (Index(-1), Index(len(here) // 2), Slice(-2, None), Slice(1, -1))
    return tuple(Name(name) for name in getattr(here, "__dict__", ())) or STEPS


@pytest.mark.parametrize("name", VALUES)
def test_a_part_is_what_taking_it_from_the_whole_gives(name: str) -> None:
    value = VALUES[name]
    encoded = SERDE.dumps_typed(value)
    whole, chance, found = SERDE.loads_typed(encoded), random.Random(name), 0
    ways: list[list[Step]] = [[step] for step in STEPS]
    for steps in [*ways, *paths(chance, value)]:
        part, expected = SERDE.loads_part(encoded, steps), taken(whole, steps)
        assert same(part, expected) or part is expected is NOTHING, steps
        found += part is not NOTHING
    assert found >= (name != "nothing") * 5


def test_every_kind_of_value_is_entered_as_python_does() -> None:
    every = {name: make for group in EXACT.values() for name, make in group.items()}
    for name, make in every.items():
        value = make()
        pair = SERDE.dumps_typed([{"before": value}, {"x": value, "same": value}])
        whole = SERDE.loads_typed(pair)
        for step in STEPS:
            ways: list[list[Step]] = [[Index(1), Key("x"), step], [Slice(1, None), Index(0), Name("x"), step]]
            for steps in ways:
                part, expected = SERDE.loads_part(pair, steps), taken(whole, steps)
                assert same(part, expected) or part is expected is NOTHING, (name, steps)


def test_the_items_of_a_list_are_decoded_one_by_one() -> None:
    made = messages(100)
    items = SERDE.loads_items(SERDE.dumps_typed(made))
    assert items is not None
    assert len(items) == len(made)
    assert [items.part(index, [Name("id")]) for index in range(len(made))] == [message.id for message in made]
    assert items.between(48, 53) == made[48:53]
    assert items.between(7, 7) == []
    assert items.part(3, []) == made[3]
    assert SERDE.loads_items(SERDE.dumps_typed({"a": 1})) is None
    assert SERDE.loads_items(SERDE.dumps_typed(deque([1]))) is None
    assert SERDE.loads_items(SERDE.dumps_typed(None)) is None
    pair = SERDE.loads_items(SERDE.dumps_typed((1, "x")))
    assert pair is not None
    assert pair.between(0, 2) == [1, "x"]


def test_what_is_passed_over_is_not_decoded() -> None:
    registry, decoded = Registry(), []

    def decode(state: Any) -> s.Outer:
        decoded.append(state)
        return s.Outer()

    def encode(_: s.Outer) -> int:
        decoded.append(0)
        return len(decoded)

    registry.register(s.Outer, name="outer", encode=encode, decode=decode)
    serde = Serde(registry=registry)
    encoded = serde.dumps_typed([s.Outer(), {"a": s.Outer(), "b": s.Outer()}, s.Outer()])
    decoded.clear()
    serde.loads_part(encoded, [Index(1), Key("b")])
    assert decoded == [3]
    assert serde.loads_part(encoded, [Index(1), Key("c")]) is NOTHING
    serde.loads_part(encoded, [Slice(2, None)])
    assert decoded == [3, 4]


def test_no_class_is_needed_on_the_way() -> None:
    mark = packb(["Dnowhere:Gone", ["x", "y"]])
    stored = "t", packb([[ExtType(84, mark), 1, "deep"], [ExtType(84, reference_to(mark)), 2, "deep down"]])
    assert SERDE.loads_part(stored, [Index(0), Name("y")]) == "deep"
    assert SERDE.loads_part(stored, [Index(1), Name("x")]) == 2
    with pytest.raises(ForbiddenTypeError):
        SERDE.loads_part(stored, [Index(1)])


def test_a_field_that_a_class_was_given_later_has_its_default() -> None:
    stored = "t", packb([[ExtType(84, packb(["Dserde.specimens:Child", ["x", "y"]])), 3, 4]])
    assert SERDE.loads_part(stored, [Index(0), Name("x")]) == 3
    assert SERDE.loads_part(stored, [Index(0), Name("z")]) == s.Child.z == 1


def test_properties_methods_and_class_attributes_are_no_parts() -> None:
    class Loud:
        shared = "of the class"

        def __init__(self) -> None:
            self.own = 1

        @property
        def computed(self) -> int:
            raise AssertionError

        def __getattr__(self, name: str) -> Any:
            raise AssertionError

    class LoudDict(dict[str, Any]):
        def __missing__(self, key: str) -> Any:
            raise AssertionError

        def __getitem__(self, key: str) -> Any:
            raise AssertionError

    class LoudDeque(deque[int]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError

        def __len__(self) -> int:
            raise AssertionError

    for name in ("computed", "shared", "__init__", "__class__", "__dict__", "other"):
        assert taken(Loud(), [Name(name)]) is NOTHING
    assert taken(Loud(), [Name("own")]) == 1
    assert taken(LoudDict(a=1), [Key("a")]) == 1
    assert taken(LoudDict(a=1), [Name("b")]) is NOTHING
    assert taken(defaultdict(list), [Key("a")]) is NOTHING
    assert taken(LoudDeque([1, 2, 3]), [Slice(1, None)]) == [2, 3]
    assert taken(LoudDeque([1, 2, 3]), [Index(-1)]) == 3


def test_no_method_of_a_class_of_containers_runs() -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError

    names = ("__getattribute__", "__getitem__", "__iter__", "__len__", "__contains__", "get", "keys")
    methods = dict.fromkeys(names, refuse)
    kinds: Any = {base: type("Loud", (base,), methods) for base in (list, tuple, deque, dict)}
    for base in (list, tuple, deque):
        value = kinds[base]([1, 2, 3])
        assert taken(value, [Index(-1)]) == 3
        assert list(taken(value, [Slice(-2, None)])) == [2, 3]
        assert items_of(value) == [1, 2, 3]
    for mapping in (kinds[dict](a=1), MappingProxyType(kinds[dict](a=1))):
        assert taken(mapping, [Name("a")]) == 1
        assert taken(mapping, [Name("b")]) is NOTHING
        assert items_of(mapping) is None


def test_attributes_of_a_dictionary_are_found_behind_its_keys() -> None:
    made = [s.attach(OrderedDict(a=1), note=[2]), s.attach(Counter[str](note=3), note=4)]
    encoded = SERDE.dumps_typed(made)
    assert SERDE.loads_part(encoded, [Index(0), Name("note"), Index(0)]) == 2
    assert SERDE.loads_part(encoded, [Index(0), Key("note")]) is NOTHING
    assert SERDE.loads_part(encoded, [Index(1), Name("note")]) == 3


def test_a_slot_of_another_class_is_no_part() -> None:
    class Borrowing:
        borrowed = s.SlotPoint.__dict__["x"]

    assert taken(Borrowing(), [Name("borrowed")]) is NOTHING


def test_a_reference_means_the_mark_that_came_first() -> None:
    point, other = _colliding_marks()
    assert reference_to(point) == reference_to(other)
    full = [ExtType(84, point), ExtType(84, other)]
    short = ExtType(84, reference_to(point))
    encoded = "t", packb([[full[0], 1, 2], [full[1], 3, 4], [short, 5, 6], {"a": [full[1], 7, 8], "b": [short, 9, 0]}])
    whole = SERDE.loads_typed(encoded)
    ways: list[list[Step]] = [[Index(2)], [Index(3)], [Index(3), Key("b")], [Slice(1, None)], [Slice(2, 3)]]
    for steps in ways:
        assert SERDE.loads_part(encoded, steps) == taken(whole, steps)


def _colliding_marks() -> tuple[bytes, bytes]:
    """Two marks with one reference: the second class has its fields in another order."""
    first = packb(["Dserde.specimens:Point", ["x", "y"]])
    seen = reference_to(first)
    for number in range(10**7):
        second: bytes = packb(["Dserde.specimens:Plain", ["y", "x"], ["x", "y"], [f"n{number}"]])
        if reference_to(second) == seen:
            return first, second
    raise AssertionError


@pytest.mark.parametrize("steps", [[Index(-1)], [Index(0), Name("x")], [Slice(-3, None)], [Key("a")], []])
def test_damaged_bytes_are_refused_or_read_and_take_no_more_than_their_length(steps: list[Step]) -> None:
    tag, encoded = SERDE.dumps_typed([s.Point(1, {"a": [1, 2, "x"]}), *messages(2)])
    chance = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(encoded)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        cut = bytes(damaged[: chance.choice((len(damaged), chance.randrange(len(damaged))))])
        try:
            SERDE.loads_part((tag, cut), steps)
        except Exception as error:  # noqa: BLE001 - whichever it is, it is looked at
            assert type(error).__module__ == "threadmark.errors", error


@pytest.mark.parametrize(
    "encoded",
    [b"", b"\xdd\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff" * 9, b"\xdf\xff\xff\xff\xff\xa1a", b"\x91" * 5000, b"\xc1"],
)
def test_bytes_that_announce_more_than_they_hold_are_damaged(encoded: bytes) -> None:
    for tag in ("m", "t"):
        for steps in ([Index(-1)], [Index(1)], [Slice(-3, None)], [Slice(None, None)], [Name("b")]):
            with suppress(CorruptDataError):
                assert SERDE.loads_part((tag, encoded), steps) is NOTHING
        with pytest.raises(CorruptDataError):
            SERDE.loads_part((tag, encoded), [])


def test_an_unknown_reference_or_tag_is_damage() -> None:
    lost = packb([1, [ExtType(84, b"xx"), 1, 2]])
    ways: list[list[Step]] = [[Index(1)], [Index(1), Name("x")]]
    for steps in ways:
        with pytest.raises(CorruptDataError, match="reference"):
            SERDE.loads_part(("t", lost), steps)
    with pytest.raises(CorruptDataError, match="tag"):
        SERDE.loads_part(("x", lost), [])
    with pytest.raises(CorruptDataError):
        SERDE.loads_part(("t", packb([[ExtType(5, b"xx"), 1]])), [Index(0), Name("x")])
