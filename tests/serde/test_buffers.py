"""A bytearray never slips in as bytes, however much the encoding around it looks like one or hides it."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serde.packers import PACKERS, use
from serde.sameness import same
from threadmark.serde import Serde

# Numbers, lengths and texts made of the very bytes that buffers begin with.
TELLING = [
    0xC4,
    0xC5,
    0xC6,
    0xC7,
    0xCA,
    0xCB,
    0xCC,
    0xCD,
    0xCE,
    0xCF,
    0xD3,
    0xD4,
    0xD5,
    0xD9,
    0xDA,
    0xDB,
    0xDD,
    0xDF,
]
numbers = st.lists(st.sampled_from([*TELLING, 0, 0x40, 0xA1, 0x80]), min_size=1, max_size=8).map(
    lambda digits: int.from_bytes(bytes(digits), "big")
)
texts = st.one_of(
    st.sampled_from([0, 1, 31, 0xC4, 0xC5, 0xC6, 0xD9, 0xC4C4 & 0x1FFF]).map("x".__mul__),
    st.text(st.sampled_from("aąńřĸŔżЖ漢\U0001f600"), max_size=6),
)
plain = st.recursive(
    st.one_of(numbers, texts, st.floats(), st.none(), st.booleans(), st.integers(-200, 300)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=20,
)
buffers_ = st.lists(st.sampled_from(TELLING), max_size=5).map(bytearray)


@pytest.fixture(params=PACKERS, autouse=True)
def _packer(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use(request.param, patch)
        yield


@given(plain, buffers_, plain)
def test_a_buffer_comes_back_as_one(before: Any, buffer: bytearray, after: Any) -> None:
    value = [before, buffer, {"a": (after, [buffer])}]
    assert same(value, Serde().loads_typed(Serde().dumps_typed(value)))


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 65535, 65536, 65537])
def test_a_buffer_of_any_length_comes_back_wherever_it_stands(length: int) -> None:
    buffer = bytearray(length)
    for value in (buffer, [buffer], ["x" * 70_000, buffer], [buffer, "x" * 70_000]):
        assert same(value, Serde().loads_typed(Serde().dumps_typed(value)))


@given(plain)
def test_values_without_a_buffer_come_back_too(value: Any) -> None:
    assert same(value, Serde().loads_typed(Serde().dumps_typed(value)))
