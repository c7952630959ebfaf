"""A session's checkpoint as a dictionary: values that JSON carries come back equal, anything else is refused."""

import json
import math
from collections import OrderedDict
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd  # type: ignore[import-untyped]  # its stubs are a separate package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark import ConfigError, SerializationError
from threadmark.types import SessionCheckpoint, SessionMetadata

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(-timedelta(hours=3, minutes=30)))
ABOUT = SessionMetadata(checkpoint_id="c", session_id="s", timestamp=WHEN, node_name="plan", step=3)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
STATES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


class Number(IntEnum):
    ONE = 1


def _exact(value: Any) -> str:
    """Text that tells types apart, and the order of keys."""
    return repr(value)


@given(STATES)
def test_what_json_carries_comes_back_equal(state: Any) -> None:
    checkpoint = SessionCheckpoint(ABOUT, state)
    found = SessionCheckpoint.from_dict(json.loads(json.dumps(checkpoint.to_dict())))
    assert found == checkpoint
    assert _exact(found.state) == _exact(state)
    assert json.dumps(checkpoint.to_dict(), ensure_ascii=False, allow_nan=False).encode()


def test_the_dictionary_is_plain() -> None:
    assert SessionCheckpoint(ABOUT, {"a": [1]}).to_dict() == {
        "metadata": {
            "checkpoint_id": "c",
            "session_id": "s",
            "timestamp": "2026-01-02T03:04:05.678901-03:30",
            "node_name": "plan",
            "step": 3,
        },
        "state": {"a": [1]},
    }


def test_what_is_missing_stays_missing() -> None:
    checkpoint = SessionCheckpoint(SessionMetadata(session_id="s"), None)
    assert SessionCheckpoint.from_dict(checkpoint.to_dict()) == checkpoint


@pytest.mark.parametrize(
    ("state", "location"),
    [
        ((1, 2), "state"),
        ({"items": [0, 1, 2, (3,)]}, "state.items[3]"),
        ({"a": {"b": [{"c": b"bytes"}]}}, "state.a.b[0].c"),
        ({"two words": {1: "a"}}, "state['two words']"),
        ({"a": {None: 1}}, "state.a"),
        ({"a": [math.nan]}, "state.a[0]"),
        ({"a": [-math.inf]}, "state.a[0]"),
        ({"a": OrderedDict(b=1)}, "state.a"),
        ({"a": Number.ONE}, "state.a"),
        ({"a": {Number.ONE: 1}}, "state.a"),
        ({"a": {"x"}}, "state.a"),
        ({"a": WHEN}, "state.a"),
        ({"a": "\ud83d"}, "state.a"),
        ({"\ud83d": 1}, "state"),
        ({"a": 10**5000}, "state.a"),
        ({"a": bytearray(b"x")}, "state.a"),
        ({"a": 1j}, "state.a"),
    ],
)
def test_what_json_would_change_is_refused_with_its_place(state: Any, location: str) -> None:
    with pytest.raises(SerializationError) as raised:
        SessionCheckpoint(ABOUT, state).to_dict()
    assert raised.value.location == location


def test_a_state_that_contains_itself_is_refused() -> None:
    state: dict[str, Any] = {}
    state["again"] = [state]
    with pytest.raises(SerializationError, match="contains itself") as raised:
        SessionCheckpoint(ABOUT, state).to_dict()
    assert len(raised.value.location) < 300


def test_metadata_that_json_does_not_carry_is_refused_with_its_place() -> None:
    with pytest.raises(SerializationError) as raised:
        SessionCheckpoint(SessionMetadata(session_id="\ud83d"), 1).to_dict()
    assert raised.value.location == "metadata.session_id"


def test_dictionary_and_checkpoint_share_nothing() -> None:
    state = {"items": [1]}
    checkpoint = SessionCheckpoint(ABOUT, state)
    made = checkpoint.to_dict()
    found = SessionCheckpoint.from_dict(made)
    made["state"]["items"].append(2)
    state["items"].append(3)
    assert found.state == {"items": [1]}


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        {"metadata": {}, "state": 1},
        {"metadata": ABOUT, "state": 1},
        {"metadata": {**SessionCheckpoint(ABOUT, 1).to_dict()["metadata"], "more": 1}, "state": 1},
        {"metadata": {**SessionCheckpoint(ABOUT, 1).to_dict()["metadata"], "timestamp": "yesterday"}, "state": 1},
        {"metadata": {**SessionCheckpoint(ABOUT, 1).to_dict()["metadata"], "timestamp": 3}, "state": 1},
        {"metadata": {**SessionCheckpoint(ABOUT, 1).to_dict()["metadata"], "timestamp": "2026-01-01"}, "state": 1},
        {"metadata": {**SessionCheckpoint(ABOUT, 1).to_dict()["metadata"], "step": "3"}, "state": 1},
        {**SessionCheckpoint(ABOUT, 1).to_dict(), "state": (1,)},
        {**SessionCheckpoint(ABOUT, 1).to_dict(), "more": 1},
    ],
)
def test_another_dictionary_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError):
        SessionCheckpoint.from_dict(given)


@pytest.mark.parametrize(
    "fields",
    [
        {"session_id": None},
        {"session_id": 3},
        {"session_id": "s", "checkpoint_id": ""},
        {"session_id": "s", "checkpoint_id": 3},
        {"session_id": "s", "node_name": 3},
        {"session_id": "s", "step": True},
        {"session_id": "s", "step": 1.0},
        {"session_id": "s", "timestamp": "2026-01-01"},
        {"session_id": "s", "timestamp": WHEN.replace(tzinfo=None)},
    ],
)
def test_odd_metadata_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        SessionMetadata(**fields)


def test_the_shapes_are_frozen() -> None:
    checkpoint = SessionCheckpoint(ABOUT, 1)
    with pytest.raises(FrozenInstanceError):
        checkpoint.state = 2  # type: ignore[misc]  # that is the point
    with pytest.raises(FrozenInstanceError):
        ABOUT.step = 2  # type: ignore[misc]  # that is the point
    with pytest.raises(ConfigError, match="SessionMetadata"):
        SessionCheckpoint({"session_id": "s"}, 1)  # type: ignore[arg-type]  # that is the point


def test_equal_times_in_other_zones_are_equal() -> None:
    other = SessionMetadata(checkpoint_id="c", session_id="s", timestamp=WHEN.astimezone(UTC), node_name="plan", step=3)
    assert other == ABOUT


@pytest.mark.parametrize(
    "when",
    [
        # Python takes no time of another zone for equal to one in an hour that comes twice.
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Vienna")),
        datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Vienna")),
        pd.Timestamp("2026-01-01T00:00:00.123456789", tz="UTC"),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(seconds=1))),
    ],
)
def test_any_time_is_one_that_comes_back_equal(when: datetime) -> None:
    checkpoint = SessionCheckpoint(SessionMetadata(session_id="s", timestamp=when), None)
    assert SessionCheckpoint.from_dict(json.loads(json.dumps(checkpoint.to_dict()))) == checkpoint
    assert checkpoint.metadata.timestamp is not None
    assert checkpoint.metadata.timestamp.timestamp() == pytest.approx(when.timestamp(), abs=1e-6)
