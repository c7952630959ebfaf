"""Workers that are killed, stopped and left without answers charge each order once; LangGraph alone does not."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from length import times
from rounds import database_of, output_of

CALLS = times(8, at_length=200)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the receiver looks into /proc")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """The argument of the script: a kind of database that it makes, or the URL of an empty one."""
    with database_of(request.param) as argument:
        yield argument


def rounds(database: str, way: str) -> dict[str, Any]:
    output = output_of("effect_rounds.py", database, "--calls", CALLS, "--way", way, "--seed", 3, within=60 + CALLS)
    figures: dict[str, Any] = json.loads(output)
    return figures


def test_with_a_check_nothing_happens_twice_and_nothing_is_lost(database: str) -> None:
    figures = rounds(database, "check")
    assert (figures["twice"], figures["lost"]) == (0, 0)
    assert figures["asked the receiver"] > 0


def test_each_unknown_call_is_reported() -> None:
    figures = rounds("sqlite", "raise")
    assert (figures["twice"], figures["lost"]) == (0, 0)
    assert figures["reported as unknown"] > 0


def test_without_effects_calls_happen_twice() -> None:
    assert rounds("sqlite", "langgraph")["twice"] > 0
