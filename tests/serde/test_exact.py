"""A stored value comes back the same: alone, inside every container, as a key, and as an attribute."""

import threading
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from serde import specimens as s
from serde.catalogue import EXACT, REFUSED
from serde.packers import PACKERS, use
from serde.sameness import same
from threadmark.errors import SerializationError
from threadmark.serde import Serde

KINDS = {f"{group}: {name}": make for group, kinds in EXACT.items() for name, make in kinds.items()}
PLACES: dict[str, Callable[[Any], Any]] = {
    "alone": lambda value: value,
    "in a list": lambda value: [value, value],
    "in a tuple": lambda value: (value,),
    "in a dict": lambda value: {"a": {"b": value}},
    "in a dict with other keys": lambda value: {1: value},
    "in a dataclass": lambda value: s.Point(value, [value]),
    "in slots": s.SlotPoint,
    "in a model": lambda value: s.Model(x=value),
    "in attrs": s.Attr,
    "in a named tuple": s.Pair,
    "in a subclass of list": lambda value: s.Many([value]),
    "in an exception": ValueError,
}


def round_trip(value: Any) -> Any:
    serde = Serde()
    tag, encoded = serde.dumps_typed(value)
    assert serde.dumps_typed(value) == (tag, encoded)
    return serde.loads_typed((tag, encoded))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_the_same_in_every_place(kind: str) -> None:
    for location, put_into in PLACES.items():
        value = put_into(KINDS[kind]())
        assert same(value, round_trip(value)), location


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_can_be_a_key_comes_back_as_one(kind: str) -> None:
    made = KINDS[kind]()
    for value in made if type(made) is list else [made]:
        try:
            as_key = {value: 1, ("other", value): 2}
        except TypeError:
            continue
        assert same(as_key, round_trip(as_key))
        assert same({value}, round_trip({value}))


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_come_back_is_refused_at_put(kind: str) -> None:
    make, words = REFUSED[kind]
    for location in PLACES.values():
        with pytest.raises(SerializationError) as refused:
            Serde().dumps_typed(location(make()))
        assert words in str(refused.value)


def test_all_packers_write_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that stored bytes do not depend on the installed packages."""
    values = [location(make()) for make in KINDS.values() for location in PLACES.values()]
    written = []
    for packer in PACKERS:
        with monkeypatch.context() as patch:
            use(packer, patch)
            written.append([Serde().dumps_typed(value) for value in values])
    assert len(written) == len(PACKERS)
    assert all(each == written[0] for each in written)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: (inner,), lambda inner: {1: inner}, s.Point])
def test_a_value_may_be_1024_levels_deep(wrap: Callable[[Any], Any]) -> None:
    value: Any = None
    for _ in range(1024 if wrap is not s.Point else 1023):
        value = wrap(value)
    serde = Serde()
    tag, encoded = serde.dumps_typed(value)
    assert serde.dumps_typed(serde.loads_typed((tag, encoded))) == (tag, encoded)
    with pytest.raises(SerializationError, match="nested deeper than 1024 levels"):
        serde.dumps_typed([wrap(value)])


@pytest.mark.parametrize("empty", [[], {}], ids=repr)
def test_the_deepest_level_holds_no_list_or_dictionary_not_even_an_empty_one(empty: Any) -> None:
    value = empty
    for _ in range(1023):
        value = [value]
    stored = Serde().dumps_typed(value)
    assert Serde().dumps_typed(Serde().loads_typed(stored)) == stored
    with pytest.raises(SerializationError, match="nested deeper than 1024 levels"):
        Serde().dumps_typed([value])


def test_extra_values_that_come_later_are_stored_too() -> None:
    """The writer remembers how the model before looked, and that model is the user's to change."""
    serde, model = Serde(), s.Extra()
    serde.dumps_typed(model)
    assert model.model_extra is not None
    model.model_extra["more"] = 1
    assert same(model, serde.loads_typed(serde.dumps_typed(model)))


def test_a_refusal_is_not_shown_as_if_it_came_of_another_error() -> None:
    with pytest.raises(SerializationError) as refused:
        Serde().dumps_typed([threading.Lock()])
    assert "KeyError" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize(
    "make",
    [
        lambda: s.Point(1),
        lambda: s.Model(x=1),
        s.Many,
        Counter,
        s.Tally,
        lambda: s.Defaults(int),
        lambda: s.NamedChild(1),
        ValueError,
    ],
)
def test_what_no_attribute_can_be_called_is_refused_at_put(make: Callable[[], Any]) -> None:
    """A dictionary takes such names, and reading them back would be an error too late."""
    value = make()
    vars(value)[7] = 1
    with pytest.raises(SerializationError, match="name 7"):
        Serde().dumps_typed(value)


@pytest.mark.parametrize("slot", ["__pydantic_extra__", "__pydantic_private__"])
def test_what_a_model_has_beyond_its_class_is_stored_too(slot: str) -> None:
    """As pydantic's `model_validate(..., extra="allow")` fills it, whatever the class says of extra values."""
    serde, bare, model = Serde(), s.Model(x=1), s.Model(x=1)
    object.__setattr__(model, slot, {"more": 2})
    found = serde.loads_typed(serde.dumps_typed([bare, model, bare]))
    assert same([bare, model, bare], found)
    assert [getattr(each, slot) for each in found] == [None, {"more": 2}, None]


def test_a_dtype_with_metadata_is_refused_also_after_an_equal_one() -> None:
    """Equality does not look at metadata."""
    serde, noted = Serde(), np.dtype("i4", metadata={"a": 1})
    for dtype, noted_dtype in (("i4", noted), ([("a", "i4")], [("a", noted)]), ([("a", "i4", 2)], [("a", noted, 2)])):
        serde.dumps_typed(np.zeros(1, dtype))
        with pytest.raises(SerializationError, match="metadata"):
            serde.dumps_typed(np.zeros(1, noted_dtype))
