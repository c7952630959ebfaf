"""The serializer's round trip, for the kinds that every state has."""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from threadmark.errors import SerializationError
from threadmark.serde import Serde


@dataclass
class Step:
    name: str
    parts: list[Any]


class Reply(BaseModel):
    text: str
    at: datetime | None = None


class Mood(enum.Enum):
    GOOD = 1


VALUES = [
    None,
    [True, 1, 1 << 90, -(1 << 90), 1.5, "a\ud800", b"b"],
    {"a": (1, (2,)), (1, 2): {3}, None: frozenset({"x", 1})},
    [Step("a", [bytearray(b"x")]), Reply(text="x"), Mood.GOOD],
    [datetime(2026, 1, 1, tzinfo=UTC), UUID(int=7)],
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_comes_back(value: Any) -> None:
    serde = Serde()
    assert serde.loads_typed(serde.dumps_typed(value)) == value


def test_a_function_is_refused() -> None:
    with pytest.raises(SerializationError, match="functions are code"):
        Serde().dumps_typed([lambda: 1])
