"""Any Python string as text that every database holds, in the same order."""

from hypothesis import given
from hypothesis import strategies as st

from threadmark.names import from_column, to_column

ANY_TEXT = st.text(st.characters(codec=None, categories=None) | st.sampled_from("\x00\x01\x02\ud7ff\ud800\udfff\ue000"))


@given(ANY_TEXT)
def test_text_comes_back(text: str) -> None:
    assert from_column(to_column(text)) == text


@given(ANY_TEXT)
def test_a_column_has_no_nul_and_is_utf8(text: str) -> None:
    column = to_column(text)
    assert "\x00" not in column
    assert column.encode("utf-8").decode("utf-8") == column


@given(ANY_TEXT, ANY_TEXT)
def test_the_order_is_kept(one: str, other: str) -> None:
    # Databases compare the bytes of UTF-8, which is the order of code points.
    assert (one < other) == (to_column(one).encode() < to_column(other).encode())


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_ordinary_text_stays_readable(text: str) -> None:
    assert to_column(text) == text


@given(ANY_TEXT)
def test_a_damaged_column_gives_some_text(text: str) -> None:
    assert isinstance(from_column(text), str)
