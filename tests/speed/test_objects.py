"""The compiled part of the serializer equals the one in Python: the same bytes, values, refusals and errors."""

import random
import sys
import types
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from serde import specimens as s
from serde.catalogue import EXACT, REFUSED
from serde.hierarchies import Maker
from serde.packers import in_python
from serde.sameness import same
from serde_exact import nested
from speed.both import Both
from threadmark.errors import SerializationError
from threadmark.runtime import compiled
from threadmark.serde import Serde

pytestmark = pytest.mark.skipif(not compiled.IN_USE, reason="this run of the suite is the one in Python only")


def messages(count: int) -> list[Any]:
    """A conversation whose objects look different in turns."""
    made: list[Any] = []
    for number in range(count):
        call = {"name": "look", "args": {"at": number}, "id": f"c{number}", "type": "tool_call"}
        made += [
            HumanMessage(content=f"żółw {number}", id=f"h{number}"),
            AIMessage(content=[{"type": "text", "text": "x" * number}], response_metadata={"n": number}),
            AIMessage(content="", tool_calls=[call], usage_metadata=None),
            ToolMessage(content="3", tool_call_id=f"c{number}", artifact=number / 3),
        ]
    return made


plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(1 << 33), 1 << 33),
        st.floats(),
        st.text(st.characters(exclude_categories=()), max_size=40),
        st.binary(max_size=40),
        st.binary(max_size=4).map(bytearray),
        st.sampled_from([1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63), -(1 << 63) - 1, "x" * 31, "x" * 32, "x" * 256]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=20),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(), st.booleans()), inner, max_size=20),
        st.tuples(inner, inner),
        st.builds(s.Point, inner, inner),
        st.builds(lambda x, y: s.Model(x=x, y=y), inner, inner),
        st.builds(lambda x: s.Model(x=x), inner),
    ),
    max_leaves=30,
)


@settings(max_examples=400)
@given(plain)
def test_both_agree_on_values_of_all_lengths_and_sizes(value: Any) -> None:
    Both().agree(value)


def test_both_refuse_the_same_in_the_same_words() -> None:
    both = Both()
    for make, _ in REFUSED.values():
        assert isinstance(both.encoding([s.Point(1, {"k": make()}), s.Model(x=(make(),))]), SerializationError)


@pytest.mark.filterwarnings("ignore")
def test_both_agree_on_classes_and_values_made_at_random() -> None:
    both = Both()
    for value in islice(Maker(5).values(), 500):
        both.agree([value, value])
    for value in islice(nested(random.Random(5)), 500):
        both.agree({"k": value})


@pytest.mark.filterwarnings("ignore")
def test_both_read_damaged_bytes_alike() -> None:
    both, rng = Both(), random.Random(5)
    stored = [
        Serde().dumps_typed([make(), s.Point(1), s.Model(y=2)]) for kinds in EXACT.values() for make in kinds.values()
    ]
    for tag, encoded in [*stored, Serde().dumps_typed(messages(2))]:
        for _ in range(12):
            at = rng.randrange(len(encoded))
            damage = rng.choice([b"", rng.randbytes(1), rng.randbytes(2), encoded[:at]])
            both.value((rng.choice([tag, "t"]), encoded[:at] + damage + encoded[at + rng.randrange(3) :]))


def test_messages_of_many_layouts_are_written_the_same_in_any_order() -> None:
    both, rng, made = Both(), random.Random(5), messages(12)
    for number, message in enumerate(made):
        message.additional_kwargs = {"k": number}
        for name in rng.sample(["content", "id", "name", "extra"], number % 4):
            message.__pydantic_fields_set__.add(name)
    for _ in range(10):
        rng.shuffle(made)
        both.agree(made)


class Plain(BaseModel):
    """A model to be changed in ways of which pydantic knows nothing."""

    x: Any = None
    y: Any = 1


class Name(str):
    """A name that says so."""

    __slots__ = ()


class Entries(dict[str, Any]):
    """A dictionary with other ideas of its content."""

    def __iter__(self) -> Any:
        return iter(["x"])

    def values(self) -> Any:
        return ["another"]


def _with_slot(name: str, content: Any) -> Callable[[Any], None]:
    return lambda model: object.__setattr__(model, f"__pydantic_{name}__", content)


def _with_dict(content: dict[Any, Any]) -> Callable[[Any], None]:
    return lambda value: object.__setattr__(value, "__dict__", content)


CHANGES: dict[str, Callable[[Any], None]] = {
    "an extra value": _with_slot("extra", {"z": 1}),
    "no extra values, said with a dictionary": _with_slot("extra", {}),
    "extra values that are none": _with_slot("extra", 0),
    "a private attribute": _with_slot("private", {"_z": 1}),
    "no private attributes, said with a dictionary": _with_slot("private", {}),
    "another set": _with_slot("fields_set", {"x", "y"}),
    "a frozen set": _with_slot("fields_set", frozenset({"x"})),
    "names noted in a list": _with_slot("fields_set", ["x"]),
    "more names than fields": _with_slot("fields_set", {f"n{number}" for number in range(9)}),
    "nothing noted": lambda model: object.__delattr__(model, "__pydantic_fields_set__"),
    "another order": _with_dict({"y": 1, "x": 2}),
    "fewer entries": _with_dict({"x": 2}),
    "more entries": _with_dict({"x": 2, "y": 1, "z": 3}),
    "the same names, made of text": _with_dict({b"x".decode(): 2, b"y".decode(): 1}),
    "a name of another type": _with_dict({Name("x"): 2, "y": 1}),
    "a number for a name": _with_dict({1: 2, "y": 1}),
    "a dictionary of another type": _with_dict(Entries(x=1, y=2)),
    "what typing notes": _with_dict({"x": 1, "y": 2, "__orig_class__": int}),
    "what attrs notes": _with_dict({"x": 1, "y": 2, "_attrs_cached_hash": 5}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "make", [Plain, lambda: s.Point(1, 2), lambda: s.DictAttr(1)], ids=["model", "record", "attrs"]
)
def test_both_agree_on_an_object_that_was_tampered_with(make: Callable[[], Any], change: str) -> None:
    both = Both()
    both.agree([make()])
    tampered = make()
    try:
        CHANGES[change](tampered)
    except (AttributeError, TypeError):
        assert not isinstance(tampered, Plain)
        return
    both.agree([make(), tampered, make(), tampered])


def test_what_the_usual_case_is_needs_no_function_in_python() -> None:
    """Or the compiled part would be correct, and in vain."""
    serde, made = Serde(), messages(10)
    stored = serde.dumps_typed(made)
    serde.loads_typed(stored)
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        again = serde.dumps_typed(made)
        found = serde.loads_typed(stored)
    finally:
        sys.setprofile(None)
    assert again == stored
    assert same(found, made)
    assert not {"deconstruct", "reconstruct", "_writing", "read_array", "read_mark"}.intersection(calls)


def test_both_are_what_this_compares() -> None:
    with in_python():
        assert type(Serde()._dispatch.writer(s.Point)) is types.FunctionType
    assert type(Serde()._dispatch.writer(s.Point)).__name__ == "ObjectWriter"
