"""An error names the place of the part that could not be stored or read."""

import threading
from typing import Any

import pytest

from serde import specimens as s
from threadmark.errors import CorruptDataError, ForbiddenTypeError, SerializationError
from threadmark.serde import Serde

LOCK = threading.Lock()
PLACES: list[tuple[Any, str]] = [
    (LOCK, ""),
    ([1, LOCK], "[1]"),
    ({"a": {"b c": LOCK}}, "['a']['b c']"),
    ({1: LOCK}, "[1]"),
    ({(1, LOCK): 1}, "{key}[1]"),
    (s.Model(x=[0, 0, 0, s.Point(LOCK)]), ".x[3].x"),
    (s.Holder(base=s.Model(), anything=(LOCK,)), ".anything[0]"),
    (s.SlotPoint([LOCK]), ".x[0]"),
    (s.Attr(1, LOCK), ".y"),
    (s.Pair(1, LOCK), ".right"),
    (s.Extra(x=1, more=LOCK), "[0]['more']"),  # type: ignore[call-arg]  # it allows extra values
    (ValueError("a", LOCK), ".args[1]"),
    (s.raised(ValueError("a"), s.attach(KeyError("b"), lock=LOCK)), ".__cause__.attributes['lock']"),
    ([s.raised(ValueError("a"), s.unbuildable())], "[0].__cause__"),
    (s.handled(ValueError("a"), s.unbuildable()), ".__context__"),
    (ExceptionGroup("g", [ValueError(1), s.unbuildable()]), ".args[1][1]"),
    (s.ExitGroup([ValueError(1), s.unbuildable()], 3), ".args[0][1]"),
]


@pytest.mark.parametrize(("value", "location"), PLACES, ids=[location or "the value" for _, location in PLACES])
def test_the_place_of_what_cannot_be_stored(value: Any, location: str) -> None:
    with pytest.raises(SerializationError) as refused:
        Serde().dumps_typed(value)
    assert refused.value.location == location
    assert str(refused.value).startswith(f"{location}: " if location else "a value of type _thread.lock")


def test_the_place_of_what_is_not_allowed() -> None:
    stored = Serde().dumps_typed({"items": [s.Model(x=1), s.Model(x=s.Point(1))]})
    with pytest.raises(ForbiddenTypeError) as refused:
        Serde(allow=[s.Model]).loads_typed(stored)
    assert refused.value.location == "['items'][1].x"


def test_the_place_of_what_is_corrupt() -> None:
    tag, encoded = Serde().dumps_typed({"items": [s.Colour.RED, s.Pair(1)]})
    with pytest.raises(CorruptDataError) as refused:
        Serde().loads_typed((tag, encoded.replace(b"Tserde.specimens:Pair", b"Dserde.specimens:Pair")))
    assert refused.value.location == "['items'][1]"


def test_an_outer_layer_adds_what_it_knows() -> None:
    with pytest.raises(SerializationError) as refused:
        Serde().dumps_typed(s.Model(x=LOCK))
    assert str(refused.value.at('channel "state"')).startswith('channel "state" -> .x: a value of type')
