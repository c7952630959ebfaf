"""Many short values decoded in one call: the same values, or none if one of them is unsuitable."""

import random

import pytest

from threadmark.serde import Serde
from threadmark.serde.decoder import decode_together

VALUES = [
    0,
    -1,
    2**63,
    0.1,
    "",
    "text",
    "ä\0",
    b"",
    b"\xc0",
    True,
    [],
    [None],
    {},
    {"key": [1, {"deeper": "x"}]},
    {1: 2},
]


def _encoded(values: list[object]) -> list[bytes]:
    return [Serde().dumps_typed(value)[1] for value in values]


def test_values_are_those_that_were_encoded() -> None:
    chance = random.Random(1)
    for count in [1, 2, 15, 300]:
        values = chance.choices(VALUES, k=count)
        found = decode_together(_encoded(values))
        assert found == values
        assert found is not None
        assert list(map(type, found)) == list(map(type, values))
    assert decode_together([]) == []


def test_two_values_share_nothing() -> None:
    one, other = decode_together(_encoded([[1], [1]])) or [None, None]
    assert one == other == [1]
    assert one is not other


@pytest.mark.parametrize(
    "damaged",
    [
        [b"", b"\x01"],  # nothing
        [b"\x01\x02", b""],  # two values, and none
        [b"\x01\xc0\x02", b""],  # as if there were a nil between
        [b"\xa2x", b"\xa1y"],  # cut off
        [b"\x92\x01", b"\x02"],
        [b"\x01", b"\x02\x03"],
        [b"\xc1", b"\x01"],
        [b"\xa1\xff", b"\x01"],  # no text
        [b"\xdd\xff\xff\xff\xff", b"\x01"],
    ],
)
def test_what_does_not_end_where_it_should_is_left_to_the_decoder_of_one(damaged: list[bytes]) -> None:
    assert decode_together(damaged) is None
