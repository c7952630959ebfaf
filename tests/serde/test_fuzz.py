"""Damaged bytes give a value or one of our errors, and nothing else."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serde.catalogue import EXACT
from threadmark.errors import CorruptDataError, ForbiddenTypeError, SerializationError
from threadmark.serde import Serde

SERDE = Serde()
STORED = [SERDE.dumps_typed(make()) for kinds in EXACT.values() for make in kinds.values()]


def read(tag: str, encoded: bytes) -> None:
    try:
        SERDE.loads_typed((tag, encoded))
    except (CorruptDataError, ForbiddenTypeError, SerializationError):
        return


def damaged(encoded: bytes, rng: random.Random) -> Iterator[bytes]:
    """One damage of each kind."""
    location = rng.randrange(len(encoded) + 1)
    yield encoded[:location]
    yield encoded + rng.randbytes(3)
    yield encoded[:location] + rng.randbytes(1) + encoded[location:]
    yield encoded[:location] + encoded[location + 1 :]
    yield encoded[:location] + rng.randbytes(1) + encoded[location + 1 :]
    other = rng.choice(STORED)[1]
    yield encoded[:location] + other[rng.randrange(len(other) + 1) :]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(20))
def test_damaged_values(seed: int) -> None:
    rng = random.Random(seed)
    for tag, encoded in STORED:
        for bytes_ in damaged(encoded, rng):
            read(rng.choice([tag, "m", "t"]), bytes_)


@settings(max_examples=500)
@given(st.binary(max_size=60), st.sampled_from("mt"))
def test_any_bytes(encoded: bytes, tag: str) -> None:
    read(tag, encoded)
