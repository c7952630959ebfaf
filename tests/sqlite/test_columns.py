"""Ids as columns: a UUID is 16 bytes, and whatever is none comes back as it was."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from threadmark_sqlite.columns import from_id_column, id_column

_UUID = "018f2c3e-7b5a-7c11-9d3f-2a6b4c8d0e1f"


@given(some.uuids())
def test_a_uuid_is_its_sixteen_bytes(number: UUID) -> None:
    assert id_column(str(number)) == number.bytes
    assert from_id_column(number.bytes) == str(number)


@pytest.mark.parametrize(
    "text",
    [
        _UUID.upper(),
        _UUID.replace("-", ""),
        f"{{{_UUID}}}",
        _UUID[:8] + "-" + _UUID[9:13] + " " + _UUID[14:],
        _UUID[:8] + "-" + " " * 27,
        _UUID[:8] + "-" * 28,
        _UUID[:8] + "-" + "0" * 27,
        _UUID[:35] + "x",
        _UUID[:35] + "\u0661",
        "sixteen letters.",
    ],
)
def test_what_is_no_uuid_as_it_is_usually_written_stays_text(text: str) -> None:
    assert isinstance(id_column(text), str)
    assert from_id_column(id_column(text)) == text


@given(some.text(some.characters(codec=None, exclude_categories=[]), max_size=40))
def test_every_id_comes_back(text: str) -> None:
    assert from_id_column(id_column(text)) == text
