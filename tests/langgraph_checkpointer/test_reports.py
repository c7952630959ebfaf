"""The report of a move about threads that did not move, and about changes by LangGraph's serializer."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import numpy as np
import pytest
from langgraph.checkpoint.memory import InMemorySaver as TheirMemory
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Interrupt, interrupt
from pydantic import BaseModel, Field

from langgraph_checkpointer.command import run_command
from langgraph_checkpointer.theirs import THEIRS, checkpoint, location, store, their_sqlite
from threadmark import Serde
from threadmark.serde.exact import exactly_equal
from threadmark_langgraph import InMemorySaver, SqliteSaver, export, migrate
from threadmark_langgraph.moving.comparing import alike, kept_by
from threadmark_langgraph.moving.differences import first_difference

PLACE = location("one")


class Asked(TypedDict):
    answer: str


@pytest.mark.parametrize("theirs", THEIRS)
def test_open_questions_go_back_without_a_word(theirs: Any, tmp_path: Path) -> None:
    builder: Any = StateGraph(Asked).add_node("ask", lambda _: {"answer": interrupt(("which", (1, 2)))})
    with SqliteSaver(tmp_path / "ours.db") as source, theirs(tmp_path) as target:
        builder.add_edge(START, "ask").compile(checkpointer=source).invoke({}, PLACE)
        moved = export(source, target)
        assert (moved.checkpoints, moved.problems, moved.changed) == (2, [], [])
        assert export(source, target).already_there == 2
        found = target.get_tuple(PLACE)
        assert found is not None
        assert [value for *_, value in found.pending_writes] == [[Interrupt(["which", [1, 2]], id=_id_of(found))]]


def _id_of(found: Any) -> str:
    ((*_, (question,)),) = found.pending_writes
    identity: str = question.id
    return identity


def test_what_their_serializer_cannot_keep_goes_back_and_is_told() -> None:
    source, target = InMemorySaver(), TheirMemory()
    for thread in ("one", "two"):
        config = store(source, location(thread), checkpoint({"m": {"kept": (1, 2), "lost": ValueError("no")}}))
        source.put_writes(config, [("__error__", KeyError(thread))], "task")
    moved = export(source, target)
    assert (moved.checkpoints, moved.problems, len(moved.changed)) == (2, [], 2)
    cause, counts = str(moved).splitlines()
    assert counts == moved.counts
    assert cause.startswith(
        "2 moved, but changed: LangGraph's serializer does not give channel 'm' back as it was (such"
    )
    assert cause.endswith("at ['lost'], ValueError('no') in the source, \"ValueError('no')\" in the target)")


def test_report_groups_what_did_not_move_by_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with their_sqlite(tmp_path) as saver:
        for number in range(3):
            for module in ("__main__", "gone_from_here"):
                kind: Any = dataclass(type("Order", (), {"__annotations__": {"number": int}, "__module__": module}))
                store(saver, location(f"{module} {number}"), checkpoint({"order": kind(number)}))
        store(saver, PLACE, checkpoint({"m": 1}))
    assert run_command(monkeypatch, str(tmp_path / "theirs.db"), str(tmp_path / "ours.db")) == 1
    mine, gone, incomplete, counts = capsys.readouterr().out.splitlines()
    assert mine.startswith("3 not moved: Order is a class of the application's own program (__main__)")
    assert (
        "call threadmark_langgraph.migrate() (or export()) from the application (such as thread '__main__ 0'," in mine
    )
    assert gone.startswith("3 not moved: gone_from_here.Order cannot be imported here")
    assert incomplete.startswith("6 threads lack checkpoints in the target (such as '__main__ 0'): move these before")
    assert counts == "1 checkpoint with 0 pending writes of 7 threads, 0 already there, 6 not moved"


def test_class_of_the_program_is_told_on_the_way_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = dataclass(type("Order", (), {"__annotations__": {"number": int}, "__module__": "__main__"}))
    with SqliteSaver(tmp_path / "ours.db") as source, monkeypatch.context() as program:
        program.setattr(sys.modules["__main__"], "Order", kind, raising=False)
        store(source, PLACE, checkpoint({"order": kind(1)}))
    (problem,) = export(tmp_path / "ours.db", TheirMemory()).problems
    assert problem.cause.startswith("one is a class of the application's own program (__main__)")
    assert "__main__:Order" in problem.detail


def test_class_that_is_not_imported_is_told_what_imports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop: Any = ModuleType("shop_to_be_imported")
    shop.Order = dataclass(type("Order", (), {"__annotations__": {"n": int}, "__module__": "shop_to_be_imported"}))
    with SqliteSaver(tmp_path / "ours.db") as source, monkeypatch.context() as program:
        program.setitem(sys.modules, "shop_to_be_imported", shop)
        store(source, PLACE, checkpoint({"order": shop.Order(1)}))
    moved = migrate(tmp_path / "ours.db", tmp_path / "new.db")
    (problem,) = moved.problems
    assert "where its module was not imported, do that first, or on the command line give --allow" in problem.cause
    assert moved.incomplete == ["one"]
    monkeypatch.setitem(sys.modules, "shop_to_be_imported", shop)
    assert migrate(tmp_path / "ours.db", tmp_path / "new.db").problems == []


def test_class_that_left_its_module_is_not_moved_as_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop: Any = ModuleType("shop_with_a_shelf")
    monkeypatch.setitem(sys.modules, "shop_with_a_shelf", shop)
    order: Any = dataclass(type("Order", (), {"__annotations__": {"n": int}, "__module__": "shop_with_a_shelf"}))
    with their_sqlite(tmp_path) as source, InMemorySaver() as target:
        store(source, PLACE, checkpoint({"order": order(1)}))
        (problem,) = migrate(source, target).problems
        assert "the module 'shop_with_a_shelf' has no class 'Order'" in problem.reason
        assert target.get_tuple(PLACE) is None
        shop.Order = order
        assert migrate(source, target).problems == []
        found = target.get_tuple(PLACE)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"order": order(1)}


def test_difference_says_where_and_what() -> None:
    one = {"items": [{"name": "a"}, {"name": "b" * 200 + "tea"}], "same": 1}
    other = {"items": [{"name": "a"}, {"name": "b" * 200 + "coffee"}], "same": 1}
    what, detail = first_difference("channel 'm'", one, other, exactly_equal)
    assert what == "channel 'm'"
    text = "b" * 20
    assert detail == f"at ['items'][1]['name'], ...'{text}tea' in the source, ...'{text}coffee' in the target"


@pytest.mark.parametrize(
    ("one", "other", "detail"),
    [
        ((1, 2), [1, 2], "(1, 2) in the source, [1, 2] in the target"),
        ([1], [1, 2], "at [1], nothing in the source, 2 in the target"),
        ({"a": 1}, {}, "at ['a'], 1 in the source, nothing in the target"),
        (Interrupt(1, id="a"), Interrupt(1, id="b"), "at .id, 'a' in the source, 'b' in the target"),
        ("ab", "abc", "'ab' in the source, 'abc' in the target"),
        (math.pi, None, "3.141592653589793 in the source, None in the target"),
    ],
)
def test_differences_of_every_shape(one: Any, other: Any, detail: str) -> None:
    assert first_difference("it", one, other, exactly_equal).detail == detail


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((), [], True),
        ({"a": [(1, (2,))]}, {"a": [[1, [2]]]}, True),
        ((1, 2), [1, 3], False),
        ((1, 2), [1], False),
        ({1}, [1], False),
        (ValueError("x"), "ValueError('x')", False),
        (1, 1.5, False),
    ],
)
def test_lists_may_stand_for_tuples_and_nothing_else(one: Any, other: Any, expected: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert alike(one, other) is expected


def test_what_goes_back_wrong_is_still_a_problem() -> None:
    class Wrong(JsonPlusSerializer):
        """Turns a value into another one after it was stored."""

        calls = 0

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            value = super().loads_typed(data)
            self.calls += value == "this"
            return f"{value} {self.calls}" if value == "this" else value

    source = InMemorySaver(serde=Serde())
    store(source, PLACE, checkpoint({"m": ["that", 1], "n": "this"}))
    (problem,) = export(source, TheirMemory(serde=Wrong())).problems
    assert problem.reason.startswith("stored and read back, it differs in channel 'n': 'this' in the source, 'this ")


class _Plan(BaseModel):
    title: str = ""
    steps: list[str] = Field(default_factory=list)


@dataclass(eq=False)
class _Holder:
    plan: _Plan


@pytest.mark.parametrize("hold", [_Holder, lambda plan: [plan, np.arange(3)], lambda plan: {"a": _Holder(plan)}])
def test_models_of_which_other_fields_were_set_are_the_same_in_whatever_holds_them(hold: Callable[[Any], Any]) -> None:
    same = kept_by(JsonPlusSerializer())
    one, other = _Plan(title="x"), _Plan(title="x", steps=[])
    assert one.model_fields_set != other.model_fields_set
    assert same(hold(one), hold(other))
    assert not same(hold(one), hold(_Plan(title="y")))
    assert not same(hold(one), hold(1))


class _Closed:
    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "_Closed()"


def test_a_difference_that_is_not_shown_does_not_show_two_equal_texts() -> None:
    found = first_difference("channel 'a'", {"a": _Closed("x")}, {"a": _Closed("y")}, lambda *_: False)
    assert found.detail == "at ['a'], _Closed() in both, and different in something that is not shown here"
