"""Namespaces of stores: labels and their text, ranges of what lies below, and the list as LangGraph's store has it."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp
from langgraph.store.memory import InMemoryStore

from length import times
from threadmark.backends import from_column, to_column
from threadmark.memory import MemorySaver
from threadmark.saver import Saver
from threadmark_sqlite import SqliteSaver
from threadmark_store import Store
from threadmark_store.namespaces import bounds_below, is_within, joined, labels_of, literal_prefix, selected
from threadmark_store.shapes import Match

SIGNS = [
    "a",
    "b",
    "ab",
    "*",
    "/",
    "-",
    "%",
    "_",
    "é",
    "\ud800",
    "\uffff",
    "\U0001f600",
    " ",
    "\n",
    "a\n",
    "[a]",
    "\x01",
]
LABEL = st.one_of(
    st.sampled_from(SIGNS), st.text(st.characters(codec=None, exclude_characters=".\x00"), min_size=1, max_size=3)
)
FEW = st.sampled_from(["a", "b", "*", "é"])
LABELS = st.lists(LABEL, max_size=4).map(tuple)
SPACES = st.lists(st.lists(FEW, min_size=1, max_size=4).map(tuple), max_size=8)
CONDITIONS = st.lists(
    st.tuples(st.sampled_from(["prefix", "suffix"]), st.lists(FEW, max_size=4).map(tuple)), max_size=3
).map(tuple)


@given(LABELS)
def test_labels_come_back_from_their_text(labels: tuple[str, ...]) -> None:
    assert labels_of(joined(labels)) == labels


@settings(max_examples=times(150, at_length=20_000))
@given(LABELS, LABELS)
def test_within_a_namespace_is_a_matter_of_labels(labels: tuple[str, ...], prefix: tuple[str, ...]) -> None:
    for each in (prefix, labels[: len(prefix)]):
        assert is_within(joined(labels), joined(each)) == (labels[: len(each)] == each)


@settings(max_examples=times(150, at_length=20_000))
@given(st.lists(LABEL, min_size=1, max_size=4).map(tuple), st.lists(LABEL, min_size=1, max_size=2).map(tuple))
def test_those_below_a_namespace_are_a_range(labels: tuple[str, ...], prefix: tuple[str, ...]) -> None:
    """In the order of code points, and in that of the bytes of a column."""
    for each in (prefix, labels[:1]):
        text, (low, high) = joined(labels), bounds_below(joined(each))
        below = is_within(text, joined(each)) and text != joined(each)
        assert (low <= text < high) == below
        column, least, most = (to_column(part).encode() for part in (text, low, high))
        assert (least <= column < most) == below
        assert from_column(to_column(text)) == text


@settings(max_examples=times(150, at_length=20_000))
@given(SPACES, CONDITIONS)
def test_what_meets_the_conditions_is_within_the_literal_prefix(spaces: Any, conditions: Any) -> None:
    matches = [Match(kind, path) for kind, path in conditions]
    names = [joined(labels) for labels in spaces]
    found = selected(names, matches, None)
    assert all(is_within(joined(labels), literal_prefix(matches)) for labels in found)
    assert selected([name for name in names if is_within(name, literal_prefix(matches))], matches, None) == found


@pytest.fixture(scope="module", params=["memory", "SQLite"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that all examples share; each empties it."""
    file = tmp_path_factory.mktemp("namespaces") / "items.db"
    saver: Saver = MemorySaver() if request.param == "memory" else SqliteSaver(file, durability="normal")
    with saver:
        yield Store(saver)


@settings(max_examples=times(75, at_length=10_000))
@given(SPACES, CONDITIONS, st.none() | st.integers(1, 5), st.integers(0, 4), st.integers(0, 3))
def test_the_list_is_that_of_langgraph(
    store: Store, spaces: Any, conditions: Any, depth: int | None, limit: int, offset: int
) -> None:
    store.batch([PutOp(item.namespace, item.key, None) for item in store.search((), limit=100)])
    theirs = InMemoryStore()
    for each in (store, theirs):
        each.batch([PutOp(labels, f"k{number}", {}) for number, labels in enumerate(spaces)])
    asked = tuple(MatchCondition(kind, path) for kind, path in conditions)
    for op in (ListNamespacesOp(asked, depth), ListNamespacesOp(asked, depth, limit, offset)):
        assert store.batch([op]) == theirs.batch([op])
