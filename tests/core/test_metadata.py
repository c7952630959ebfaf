"""Metadata as JSON, and the filter that searches it."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadmark.errors import ConfigError, CorruptDataError, SerializationError
from threadmark.metadata import certain_fragments, checked_filter, from_json, matches, merged, run_id_in, to_json
from threadmark.names import from_column, to_column

TEXT = st.text() | st.text(st.characters(codec=None, exclude_categories=[])) | st.just("\ud83d\ude00")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
METADATA = st.dictionaries(TEXT, JSON, max_size=4)
TRICKY = [0, 1, 1.0, True, False, None, "1", "true", "null", [], [1], [True], [1.0], {}, {"a": 1}, {"a": True}, "", 0.0]


@given(METADATA)
def test_metadata_comes_back(metadata: dict[str, Any]) -> None:
    column = to_column(to_json(metadata))
    assert repr(from_json(from_column(column))) == repr(metadata)
    assert column.encode("utf-8").decode("utf-8") == column
    assert "\x00" not in column


@given(METADATA, st.data())
def test_a_part_of_metadata_finds_it(metadata: dict[str, Any], data: st.DataObject) -> None:
    keys = data.draw(st.sets(st.sampled_from(sorted(metadata)))) if metadata else set()
    wanted = {key: metadata[key] for key in keys}
    stored = from_json(to_json(metadata))
    assert matches(stored, checked_filter(wanted))
    # A backend leaves rows out by these; so every row that matches must have them.
    assert all(fragment in to_json(metadata) for fragment in certain_fragments(wanted))


@pytest.mark.parametrize("stored", TRICKY, ids=repr)
def test_values_are_equal_when_their_json_is(stored: Any) -> None:
    for wanted in TRICKY:
        assert matches({"key": stored}, {"key": wanted}) == (_spelled(stored) == _spelled(wanted)), wanted


def _spelled(value: Any) -> str:
    """JSON in which equal numbers are spelled alike."""
    if isinstance(value, list):
        return f"[{','.join(map(_spelled, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{_spelled(item)}' for key, item in value.items())}}}"
    return json.dumps(float(value) if type(value) in {int, float} else value)


def test_a_missing_key_matches_nothing() -> None:
    assert not matches({}, {"key": None})
    assert matches({"key": None}, {"key": None})
    assert matches({"other": 1}, {})


def test_nan_matches_nan_at_any_depth() -> None:
    assert matches({"a": [{"b": math.nan}]}, {"a": [{"b": math.nan}]})
    assert not matches({"a": math.nan}, {"a": 0.0})
    assert not matches({"a": 0.0}, {"a": math.nan})


@pytest.mark.parametrize(
    "metadata", [{"a": b"x"}, {"a": {1: 2}}, {1: 2}, {"a": [Ellipsis]}, {"a": {1, 2}}, {"a": 10**5000}]
)
def test_what_is_no_json_is_refused(metadata: dict[Any, Any]) -> None:
    with pytest.raises(SerializationError, match="metadata"):
        to_json(metadata)


def test_a_cycle_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(SerializationError, match="contains itself"):
        to_json({"a": cycle})
    with pytest.raises(ConfigError, match="contains itself"):
        checked_filter({"a": cycle})


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", '"a"', "[" * 100_000], ids=lambda text: text[:5])
def test_damaged_json_is_said_to_be(text: str) -> None:
    with pytest.raises(CorruptDataError, match="metadata"):
        from_json(text)


def test_a_filter_names_the_key_that_it_cannot_compare() -> None:
    with pytest.raises(ConfigError, match=r"filter.*'when'"):
        checked_filter({"ok": 1, "when": object()})


def test_the_callers_metadata_wins_over_the_configurations() -> None:
    config = {"metadata": {"a": "run", "b": "run"}, "configurable": {"thread_id": "t", "b": "c", "c": "c", "d": None}}
    assert merged(config, {"a": "mine"}) == {"a": "mine", "b": "run", "c": "c"}


def test_a_run_is_found_whatever_else_the_metadata_holds() -> None:
    assert run_id_in('{"x":{"run_id":"b"},"run_id":"a"}') == "a"
    assert run_id_in('{"run_id":7}') is run_id_in('{"x":{"run_id":"a"}}') is run_id_in("{}") is None
