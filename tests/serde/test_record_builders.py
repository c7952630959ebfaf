"""Names and items become a dictionary in their order, however many there are, and names are never code."""

import pytest

from threadmark.errors import CorruptDataError
from threadmark.serde.attributes import record_builders


@pytest.mark.parametrize("count", [0, 1, 2, 10, 63, 64, 65, 500])
def test_names_and_items_meet_in_their_order(count: int) -> None:
    names = [f"field {index}" for index in range(count)]
    found = record_builders(names)(list(range(count)))
    assert list(found.items()) == [(name, index) for index, name in enumerate(names)]


@pytest.mark.parametrize("count", [0, 1, 10, 64, 65])
@pytest.mark.parametrize("off", [-1, 1])
def test_a_wrong_number_of_items_is_corrupt(count: int, off: int) -> None:
    if count + off >= 0:
        with pytest.raises(CorruptDataError, match=f"{count + off} items where its mark has {count} names"):
            record_builders(["a"] * count)([None] * (count + off))


def test_names_are_data() -> None:
    """They come from stored bytes: whatever they say, they are keys."""
    names = ["name0", "items", "}; raise SystemExit #", "__import__('os')", "\ud800", "a\nb", "'"]
    assert list(record_builders(names)([1] * len(names))) == names
