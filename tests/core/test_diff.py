"""The changes that `diff` finds: applied to one value they give the other, and equal values have none."""

import json
import re
from collections import OrderedDict, defaultdict
from copy import deepcopy
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadmark.serde import Serde
from threadmark.serde.exact import exactly_equal
from threadmark.travel.aligning import aligned, text_edits
from threadmark.travel.diffing import Changes, Place
from threadmark.types import ObjectView, ValueChange

LIMIT = 10_000


@dataclass
class Plan:
    """An object that is compared by its fields."""

    steps: list[Any] = field(default_factory=list)
    note: Any = None


class Tools(list[Any]):
    """A list with its own class."""


def shown(value: Any) -> Any:
    return Serde().showing().loads_typed(Serde().dumps_typed(value))


def changes_of(before: Any, after: Any, limit: int = LIMIT) -> Changes:
    changes = Changes(limit)
    changes.compare(Place("c", "c"), shown(before), shown(after))
    return changes


def paths_of(before: Any, after: Any) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in changes_of(before, after).found]


STEP = re.compile(r'\.(\w+)|\[("(?:[^"\\]|\\.)*")\]|\[(\d+)\]', re.DOTALL)


def steps_of(path: str) -> list[Any]:
    assert path.startswith("c")
    found = list(STEP.finditer(path, 1))
    assert "".join(each[0] for each in found) == path[1:]
    return [each[1] or (json.loads(each[2], strict=False) if each[2] else int(each[3])) for each in found]


def applied(before: Any, changes: list[ValueChange]) -> Any:
    """The old value with the changes made to it: removals go first, from behind."""
    holder = {"c": deepcopy(before)}
    for change in reversed([each for each in changes if each.kind == "removed"]):
        here, last = entered(holder, change.path)
        del here[last]
    for change in changes:
        if change.kind == "removed":
            continue
        here, last = entered(holder, change.path)
        if change.kind == "added" and isinstance(here, list):
            here.insert(last, change.after)
        elif change.kind == "added":
            assert last not in here
            here[last] = change.after
        elif type(change.before) is type(change.after) is dict:  # entries that no path leads to
            for key in change.before:
                del here[last][key]
            here[last].update(change.after)
        else:
            assert exactly_equal(here[last], change.before)
            here[last] = change.after
    return holder["c"]


def entered(holder: dict[str, Any], path: str) -> tuple[Any, Any]:
    *steps, last = ["c", *steps_of(path)]
    here: Any = holder
    for step in [*steps, None]:
        if isinstance(here, ObjectView):
            here = here.fields
        if step is not None:
            here = here[step]
    return here, last


def normal(value: Any) -> Any:
    """The value with its dictionaries in one order, which counts as little as anywhere in Python."""
    if isinstance(value, dict):
        return dict(sorted(((key, normal(item)) for key, item in value.items()), key=repr))
    if isinstance(value, ObjectView):
        return ObjectView(value.name, normal(value.fields))
    return [normal(item) for item in value] if isinstance(value, list) else value


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(0, 3), st.sampled_from([0.0, 1.0, "", "a", "a b", "b\nc\n", b""])
)
IDS = st.sampled_from(["1", "2", "3", "4"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(st.one_of(st.sampled_from(["a", "b", 'q"', "id", "é"]), st.integers(0, 2)), inner, max_size=4),
        st.builds(Plan, st.lists(inner, max_size=3), inner),
        st.lists(st.builds(lambda id_, text: {"id": id_, "text": text}, IDS, inner), max_size=5),
    ),
    max_leaves=20,
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(VALUES, VALUES)
def test_the_changes_make_the_new_value_of_the_old_one(before: Any, after: Any) -> None:
    found = changes_of(before, after)
    assert found.left_out == 0
    assert exactly_equal(normal(applied(shown(before), found.found)), normal(shown(after)))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(VALUES)
def test_of_equal_values_there_are_no_changes(value: Any) -> None:
    assert len(changes_of(value, deepcopy(value))) == 0


TEXTS = st.text(st.sampled_from("ab \n\té"), max_size=60)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TEXTS, TEXTS)
def test_the_pieces_of_an_edit_joined_are_both_texts(before: str, after: str) -> None:
    edits = text_edits(before, after)
    assert "".join(edit.text for edit in edits if edit.kind != "added") == before
    assert "".join(edit.text for edit in edits if edit.kind != "removed") == after
    assert all(edit.text for edit in edits)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 5), max_size=30))
def test_the_runs_cover_both_sequences_in_order(one: list[int], other: list[int]) -> None:
    at, other_at = 0, 0
    for start, stop, other_start, other_stop, same in aligned(one, other):
        assert (start, other_start) == (at, other_at)
        assert (one[start:stop] == other[other_start:other_stop]) == same
        at, other_at = stop, other_stop
    assert (at, other_at) == (len(one), len(other))


@pytest.mark.parametrize(
    ("before", "after"),
    [(True, 1), (1, 1.0), ((1,), [1]), ("a", b"a"), ([True], [1]), ({"a": {1}}, {"a": frozenset({1})}), (0.0, -0.0)],
)
def test_types_count(before: Any, after: Any) -> None:
    assert len(changes_of(before, after)) == 1
    assert len(changes_of([before] * 3, [before, after, before])) == 1


def test_what_is_equal_though_nothing_equals_it_is_no_change() -> None:
    assert len(changes_of({"a": [float("nan")]}, {"a": [float("nan")]})) == 0
    assert len(changes_of({"a": 1, "b": 2}, {"b": 2, "a": 1})) == 0
    assert len(changes_of([{"a": 1, "b": 2}, 1], [{"b": 2, "a": 1}, 1])) == 0
    assert len(changes_of({1: {"a": 1, "b": 2}, "k": 1}, {1: {"b": 2, "a": 1}, "k": 1})) == 0


def test_items_with_ids_belong_together() -> None:
    items = [{"id": str(number), "text": "x"} for number in range(6)]
    edited = [dict(item) for item in items]
    edited[4]["text"] = "y"
    del edited[1]
    edited.insert(0, {"id": "new"})
    assert paths_of(items, edited) == [("c[0]", "added"), ("c[1]", "removed"), ('c[4]["text"]', "changed")]
    assert paths_of([{"id": "1", "a": 1}, 0], [{"id": "2", "a": 1}, 0]) == [("c[0]", "removed"), ("c[0]", "added")]
    assert paths_of([1, 2, 3, 4], [1, 5, 3, 4, 6]) == [("c[1]", "changed"), ("c[4]", "added")]


def test_places_are_paths() -> None:
    assert paths_of(Plan([1, 2]), Plan([1, 3])) == [("c.steps[1]", "changed")]
    assert paths_of({"a b": Plan(note="x")}, {"a b": Plan(note="y")}) == [('c["a b"].note', "changed")]
    assert paths_of(Tools([1, 2]), Tools([1, 2, 3])) == [("c[2]", "added")]
    assert paths_of(OrderedDict(a=1), OrderedDict(a=2)) == [('c["a"]', "changed")]
    assert paths_of(defaultdict(list, a=1), defaultdict(int, a=1)) == [("c", "changed")]
    assert paths_of(ValueError("a"), ValueError("b")) == [("c.args[0]", "changed")]
    # No path leads to a cause: the exception is named that has it.
    one, other = ValueError("a"), ValueError("a")
    one.__cause__, other.__cause__ = KeyError(1), KeyError(2)
    assert paths_of(one, other) == [("c", "changed")]


def test_keys_that_no_path_leads_to_are_told_together() -> None:
    (change,) = changes_of({1: "a", 2: "b", "k": 0}, {1: "a", 2: "c", (3,): "d", "k": 0}).found
    assert change == ValueChange("c", "changed", {2: "b"}, {2: "c", (3,): "d"})


def test_types_of_keys_count_and_what_equals_nothing_is_a_key() -> None:
    nan, same = float("nan"), {(1,): "a", 0.0: 0}
    assert len(changes_of({nan: 1, "k": 1}, {float("nan"): 1, "k": 1})) == 0
    for other in ({(True,): "a", 0.0: 0}, {(1,): "a", -0.0: 0}, {(1,): "a", 0: 0}):
        assert paths_of(same, other) == [("c", "changed")]


def test_a_limit_cuts_and_counts() -> None:
    found = changes_of({str(number): 1 for number in range(9)}, {}, limit=4)
    assert (len(found.found), found.left_out) == (4, 5)


def test_text_is_compared_by_lines_or_words() -> None:
    (change,) = changes_of("one two three", "one 2 three").found
    assert [tuple(edit) for edit in change.edits] == [
        *(("equal", "one "), ("removed", "two"), ("added", "2"), ("equal", " three"))
    ]
    (change,) = changes_of("one two\nthree\n", "one 2\nthree\n").found
    assert [tuple(edit) for edit in change.edits] == [
        *(("removed", "one two\n"), ("added", "one 2\n"), ("equal", "three\n"))
    ]


@pytest.mark.parametrize("text", ["a b" * 300_000, "ab\n" * 400_000, "x" * 1_000_000, "ab\nba\n\n" * 20_000])
def test_a_large_text_does_not_hang(text: str) -> None:
    """Quadratic work would take hours; the deadline only tells that from any machine that is slow."""
    began = monotonic()
    edits = text_edits(text, f"{text[:1000]}new{text[1000:-1000]}{text[-900:]}")
    assert monotonic() - began < 60
    assert "".join(edit.text for edit in edits if edit.kind != "added") == text


def test_lists_of_thousands_are_compared_in_little_more_than_linear_time() -> None:
    items = [{"id": str(number), "text": "x"} for number in range(5000)]
    alike = [{"text": str(number % 7)} for number in range(5000)]
    began = monotonic()
    assert len(changes_of(items, items[::-1])) >= 5000
    assert len(changes_of(alike, alike[3:] + alike[:5])) > 0
    assert len(changes_of(alike, [{"text": str(number % 5)} for number in range(5000)])) > 0
    assert monotonic() - began < 60


def test_what_lies_very_deep_is_compared_as_a_whole() -> None:
    before, after = 1, 2
    for _ in range(500):
        before, after = [before, 0], [after, 0]  # type: ignore[assignment]  # it grows
    (change,) = changes_of(before, after).found
    assert change.path == "c" + "[0]" * 101
