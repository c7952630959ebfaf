"""Channel versions are continued in kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.errors import ConfigError
from threadmark.ids import next_version


@given(st.integers(0, 1 << 60))
def test_integers_count(number: int) -> None:
    assert next_version(number) == number + 1
    assert type(next_version(number)) is int


@given(st.integers(0, 1 << 40), st.floats(0, 0.999))
def test_floats_count(number: int, fraction: float) -> None:
    following = next_version(number + fraction)
    assert isinstance(following, float)
    assert following > number + fraction


@given(st.integers(0, 10**31), st.integers(0, 10**16 - 1))
def test_langgraphs_strings_count_and_keep_their_form(number: int, fraction: int) -> None:
    version = f"{number:032d}.{fraction:016d}"
    following = next_version(version)
    assert isinstance(following, str)
    count, dot, rest = following.partition(".")
    assert (int(count), len(count), dot, len(rest), rest.isdigit()) == (number + 1, 32, ".", 16, True)
    assert following > version


def test_strings_tell_forks_apart() -> None:
    assert len({next_version("00000000000000000000000000000001.5") for _ in range(50)}) == 50


def test_a_bare_number_as_text_is_continued() -> None:
    assert str(next_version("7")).startswith(f"{8:032d}.")


@pytest.mark.parametrize("version", ["", ".", "x", "-1", "1x.2", "\u0661", " 1"])
def test_other_text_is_refused(version: str) -> None:
    with pytest.raises(ConfigError, match="not one that can be continued"):
        next_version(version)
