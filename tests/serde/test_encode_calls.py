"""A registered function that leads to its own kind for ever fails soon, and the error names the kind."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from serde import specimens as s
from serde.packers import PACKERS, use
from threadmark.errors import SerializationError
from threadmark.serde import Registry, Serde


class Handle:
    """Something of the user's, with a name."""

    def __init__(self, inner: "Handle | None" = None) -> None:
        self.inner = inner


class Other(Handle):
    """Another kind, for functions that lead to each other."""


ENDLESS: dict[str, Callable[[Serde, Any], Any]] = {
    "itself": lambda _, value: value,
    "itself in a list": lambda _, value: [value],
    "itself twice": lambda _, value: {"a": value, "b": value},
    "itself under a number": lambda _, value: {1: value},
    "itself in a set": lambda _, value: {value},
    "new ones": lambda *_: [Handle(), Handle()],
    "the other kind": lambda *_: Other(),
    "its own function": lambda serde, value: [ENDLESS["its own function"](serde, value)],
    "the serializer": lambda serde, value: serde.dumps_typed(value),
    "the serializer, for new ones": lambda serde, _: serde.dumps_typed([1, Handle(), Handle()]),
    "the serializer, for one beside what is packed slowly": lambda serde, value: serde.dumps_typed([value, {1: 2}]),
    "the serializer, for one under a number": lambda serde, value: serde.dumps_typed({1: [value, value]}),
    "the serializer, for the other kind": lambda serde, _: serde.dumps_typed(Other()),
    "the serializer, whose error it hides": lambda serde, value: [_hiding(serde, value)],
}


def _hiding(serde: Serde, value: Any) -> Any:
    try:
        return serde.dumps_typed(value)
    except SerializationError as error:
        raise ValueError("not mine") from error


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("leads_to", ENDLESS)
def test_it_fails_soon_and_names_the_kind(monkeypatch: pytest.MonkeyPatch, leads_to: str, packer: str) -> None:
    use(packer, monkeypatch)
    registry, calls = Registry(), 0
    serde = Serde(registry=registry)

    def encode(value: Any) -> Any:
        nonlocal calls
        calls += 1
        return ENDLESS[leads_to](serde, value)

    registry.register(Handle, "handle", encode, Handle)
    registry.register(Other, "other", encode, Other)
    start = time.process_time()
    with pytest.raises(SerializationError, match=r"\['k'\]\[0\].*(Handle|Other)"):
        serde.dumps_typed({"k": [Handle()]})
    assert calls < 5000
    assert time.process_time() - start < 5


@pytest.mark.parametrize("depth", [1, 20, 60])
def test_one_that_ends_is_stored(depth: int) -> None:
    """A tree of one kind, each encoded by a separate call."""
    registry = Registry()
    serde = Serde(registry=registry)
    registry.register(
        Handle,
        "handle",
        lambda handle: serde.dumps_typed(handle.inner),
        lambda stored: Handle(serde.loads_typed((stored[0], stored[1]))),
    )
    value = None
    for _ in range(depth):
        value = Handle(value)
    found, levels = serde.loads_typed(serde.dumps_typed(value)), 0
    while found is not None:
        found, levels = found.inner, levels + 1
    assert levels == depth


def test_what_fails_inside_is_called_a_few_times_only() -> None:
    """Not twice as often with each call in a call."""
    registry, calls = Registry(), 0
    serde = Serde(registry=registry)

    def encode(handle: Handle) -> Any:
        nonlocal calls
        calls += 1
        return serde.dumps_typed(handle.inner or [object()])

    registry.register(Handle, "handle", encode, Handle)
    value = Handle()
    for _ in range(30):
        value = Handle(value)
    with pytest.raises(SerializationError, match=r"^\['k'\]: .*builtins\.object cannot be stored"):
        serde.dumps_typed({"k": value})
    assert calls < 100


def test_an_interrupt_inside_is_not_lost() -> None:
    registry, calls = Registry(), 0

    def encode(_: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        return b"x"

    registry.register(s.Data, "data", encode, s.Data)
    with pytest.raises(KeyboardInterrupt):
        Serde(registry=registry).dumps_typed([s.Data(b"x")])
