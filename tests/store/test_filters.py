"""Filters of stores: databases leave out only rows that do not meet the filter, whatever the values are."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langgraph.store.base import PutOp

from length import times
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store
from threadmark_store.filters import check_filter, conditions_of, meets
from threadmark_store.shapes import Condition

KEYS = st.sampled_from(["a", "b", "", "a.b", '"', "\\", "'", "é", "\x00", "\ud800", "0", "[0]", "$", " ", "\n", "\x7f"])
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 1.0, 0.5, -0.0, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 10**40]),
    st.sampled_from([1e300, -1e300, 1e-300, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), 1e16, 0.1]),
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "b", "ab", "A", "1", "true", "null", "é", "\uffff", "\U0001f600", "\x00", "\ud800", "a\x00"]
    ),
    st.text(max_size=3),
)
LEAVES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS, st.just(b"b"), st.just(float("nan")))


def _nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(parts, max_size=2), st.dictionaries(KEYS, parts, max_size=2), st.tuples(parts), st.tuples(parts, parts)
    )


VALUES = st.dictionaries(KEYS, st.recursive(LEAVES, _nested, max_leaves=4), min_size=1, max_size=3)
OPERATORS = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), LEAVES, min_size=1, max_size=2
)


@st.composite
def _filters(draw: Callable[..., Any], values: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw a filter that is likely to be met by one of the values, or nearly."""
    found: dict[str, Any] = draw(st.dictionaries(KEYS, st.one_of(LEAVES, OPERATORS), max_size=1))
    for key, value in draw(st.sampled_from(values)).items():
        found[key] = draw(_condition(value))
    return found


@st.composite
def _condition(draw: Callable[..., Any], value: Any) -> Any:
    if isinstance(value, dict) and value and draw(st.booleans()):
        return {key: draw(_condition(item)) for key, item in value.items()}
    name = draw(st.sampled_from(["", "", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]))
    asked = draw(st.one_of(st.just(value), st.just(_nearly(value)), LEAVES))
    return {name: asked} if name else asked


def _nearly(value: Any) -> Any:
    """Return another value that compares closely."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return float(value) if abs(value) < 2**1000 else value + 1
    if isinstance(value, float) and value == value and abs(value) < 2**70:  # noqa: PLR0124 - nan is no number
        return int(value)
    return value + "\x00" if isinstance(value, str) else value


@st.composite
def _cases(draw: Callable[..., Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    values = draw(st.lists(VALUES, min_size=1, max_size=4))
    return values, draw(_filters(values))


def _is_valid(condition: Any) -> bool:
    try:
        check_filter(condition)
    except ValueError:
        return False
    return True


_numbers = count()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that all examples share; each has a namespace."""
    with SqliteSaver(tmp_path_factory.mktemp("filters") / "items.db", durability="normal") as saver:
        yield Store(saver)


@settings(max_examples=times(200, at_length=20_000))
@given(_cases())
@example(([{"a": 2**53 + 1}], {"a": float(2**53)}))
@example(([{"a": True}], {"a": 1}))
@example(([{"a": 1e305}, {"a": 1.2e308}], {"a": {"$lt": 1.7e308}}))
@example(([{"a": -1e305}, {"a": -1.2e308}], {"a": {"$gt": -1.7e308}}))
@example(([{"a": 1.2e308}], {"a": 1.2e308}))
@example(([{"a\nb": 1, "\x01": 2}], {"a\nb": 1, "\x01": 2}))
@example(([{"a": {"a": 1}, "b": None}], {"a": {"a": {"$gte": 1.0}}, "b": None}))
def test_a_search_finds_all_that_meet_the_filter_and_no_others(
    store: Store, case: tuple[list[dict[str, Any]], dict[str, Any]]
) -> None:
    values, condition = case
    if not _is_valid(condition):
        return
    namespace = (f"n{next(_numbers)}",)
    store.batch([PutOp(namespace, str(number), value) for number, value in enumerate(values)])
    expected = {str(number) for number, value in enumerate(values) if meets(value, condition)}
    assert {item.key for item in store.search(namespace, filter=condition, limit=100)} == expected


@settings(max_examples=times(100, at_length=20_000))
@given(st.lists(VALUES, min_size=1, max_size=1).flatmap(_filters))
def test_every_condition_for_a_database_is_one_that_it_can_compare(condition: dict[str, Any]) -> None:
    if _is_valid(condition):
        for each in conditions_of(condition):
            assert type(each.value) in (str, bool, int, float)
            assert not isinstance(each.value, float) or abs(each.value) < float("inf")
            assert all(type(key) is str and not key.startswith("$") for key in each.path[1:])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"a": "x"}, [Condition(("a",), "=", "x")]),
        ({"a": {"b": 3}}, [Condition(("a", "b"), "=", 3)]),
        ({"a": {"$eq": True}}, [Condition(("a",), "=", True)]),
        ({"a": None, "b": {"$ne": 1}, "c": [1], "d": {"$eq": None}, "e": {"$gt": None}}, []),
        ({"a": 2**53}, []),
        ({"a": float("nan"), "b": {"$gt": float("-inf")}, "c": {"$lt": float("nan")}}, []),
        ({"a": {"$gt": "x"}}, [Condition(("a",), ">=", "x")]),
    ],
)
def test_what_a_database_compares(condition: dict[str, Any], expected: list[Condition]) -> None:
    assert list(conditions_of(condition)) == expected


def test_a_value_that_does_not_compare_meets_no_filter(store: Store) -> None:
    namespace = (f"n{next(_numbers)}",)
    store.put(namespace, "array", {"a": np.array([1, 2])})
    store.put(namespace, "text", {"a": "x"})
    assert [item.key for item in store.search(namespace, filter={"a": "x"})] == ["text"]
    assert [item.key for item in store.search(namespace, filter={"a": 1})] == []
    assert [item.key for item in store.search(namespace, filter={"a": {"$gt": 0}})] == []
    assert [item.key for item in store.search(namespace, filter={"a": {"$ne": "x"}})] == ["array"]


def test_a_filter_must_be_a_dictionary(store: Store) -> None:
    for condition in (["a"], "a", 1, [("a", 1)]):
        with pytest.raises(TypeError, match="a filter must be a dictionary, not "):
            store.search(("a",), filter=condition)  # type: ignore[arg-type]  # that is the point


def test_bounds_of_numbers_are_a_little_wider() -> None:
    (low, high) = conditions_of({"a": {"$gt": 10, "$lte": 20}})
    assert (low.operator, high.operator) == (">=", "<=")
    assert 9.9 < low.value < 10  # type: ignore[operator]  # numbers
    assert 20 < high.value < 20.1  # type: ignore[operator]  # numbers
