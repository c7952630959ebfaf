"""Statements made of others by replacing text: one that lacks the text to replace is refused."""

import pytest

from threadmark_postgres.sql.editing import replaced


def test_what_is_replaced_must_be_there() -> None:
    assert replaced("a b a", ("a", "c"), ("b", "d")) == "c d c"
    with pytest.raises(ValueError, match="this was to be replaced by 'd', and is not in the statement: 'b'"):
        replaced("a", ("a", "c"), ("b", "d"))
