"""The page about types agrees with the serializer."""

from serde.types_table import TABLE, table


def test_the_page_is_the_generated_one() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "generate it again: see tests/serde/types_table.py"


def test_no_kind_comes_back_changed() -> None:
    page = table()
    assert ", 0 come back changed." in page
    assert not any(word in page for word in ("CHANGED", "STORED", "OTHER WORDS"))
