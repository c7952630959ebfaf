"""Ids as columns: a UUID is 16 bytes, and every id comes back as it was."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as some

from threadmark_sqlite.columns import from_id_column, id_column


@given(some.uuids())
def test_a_uuid_is_its_sixteen_bytes(number: UUID) -> None:
    assert id_column(str(number)) == bytearray(number.bytes)
    assert from_id_column(number.bytes) == str(number)


@given(some.just("sixteen letters.") | some.text(some.characters(codec=None, exclude_categories=[]), max_size=40))
def test_every_id_comes_back(text: str) -> None:
    column = id_column(text)
    assert from_id_column(bytes(column) if isinstance(column, bytearray) else column) == text
